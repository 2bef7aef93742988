//! IPv4 and IPv6 addresses of devices.

use std::net::IpAddr;

use libc::{IFA_ADDRESS, IFA_FLAGS, IFA_LOCAL, RTM_GETADDR};

use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, word32};

const IFADDRMSG: usize = 8;

/// One address of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Index of the device.
    pub index: u32,
    /// The address.
    pub ip: IpAddr,
    /// Length of its network.
    pub prefix: u8,
    /// `IFA_F_*`.
    pub flags: u32,
}

pub(crate) fn family(ip: IpAddr) -> u8 {
    (if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

pub(crate) fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The address in an attribute, by its length.
pub(super) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

impl InterfaceAddress {
    /// Reads one `RTM_NEWADDR` payload; `None` for families other than IPv4 and IPv6.
    pub fn parse(payload: &[u8]) -> Result<Option<Self>, HostError> {
        let attrs = Attrs::after(payload, IFADDRMSG)?;
        // On point-to-point links IFA_ADDRESS is the other end; the own one then is IFA_LOCAL.
        let own = attrs.get(IFA_LOCAL).or_else(|| attrs.get(IFA_ADDRESS));
        Ok(own.and_then(ip).map(|ip| Self {
            index: word32(payload, 1).unwrap_or_default(),
            ip,
            prefix: payload[1],
            flags: attrs.u32(IFA_FLAGS).unwrap_or_else(|| payload[2].into()),
        }))
    }
}

impl Netlink {
    /// All addresses of this namespace.
    pub fn addresses(&mut self) -> Result<Vec<InterfaceAddress>, HostError> {
        let replies = self.dump("list addresses", RTM_GETADDR, &[0; IFADDRMSG])?;
        replies.iter().filter_map(|reply| InterfaceAddress::parse(reply).transpose()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;
    use crate::netlink::wire::Body;

    #[test]
    fn the_own_end_of_a_point_to_point_link_is_read() {
        let body = Body::new(&[2, 32, 0, 0, 5, 0, 0, 0])
            .raw(IFA_ADDRESS, &[10, 0, 0, 2])
            .raw(IFA_LOCAL, &[10, 0, 0, 1]);
        let address = InterfaceAddress::parse(body.bytes()).unwrap().unwrap();
        assert_eq!((address.ip.to_string().as_str(), address.prefix), ("10.0.0.1", 32));
    }

    takes_any_bytes!(120, bytes => InterfaceAddress::parse(&bytes));
}
