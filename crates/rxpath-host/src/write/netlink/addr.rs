//! IPv4 and IPv6 addresses to give to devices.

use std::net::IpAddr;

use libc::{IFA_ADDRESS, IFA_F_NODAD, IFA_FLAGS, IFA_LOCAL, RTM_NEWADDR};

use crate::HostError;
use crate::netlink::socket::{CREATE, Netlink};
use crate::netlink::wire::Body;
use crate::read::netlink::addr::{family, octets};

impl Netlink {
    /// Adds an address. Usable at once: IPv6 skips duplicate address detection.
    pub fn add_address(&mut self, dev: &str, ip: IpAddr, prefix: u8) -> Result<(), HostError> {
        let mut header = vec![family(ip), prefix, 0, 0];
        header.extend(self.index(dev)?.to_ne_bytes());
        let body = Body::new(&header).raw(IFA_LOCAL, &octets(ip)).raw(IFA_ADDRESS, &octets(ip));
        let body = if ip.is_ipv6() { body.u32(IFA_FLAGS, IFA_F_NODAD) } else { body };
        self.change(&format!("add {ip}/{prefix} to {dev}"), RTM_NEWADDR, CREATE, body.bytes())
    }
}
