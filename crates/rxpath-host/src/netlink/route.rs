//! The routes that a lab needs: on-link networks, a gateway, and prefixes that are all local.

use std::net::IpAddr;

use super::addr::{family, octets};
use super::socket::{Netlink, REPLACE};
use super::wire::{Attrs, Body};
use crate::HostError;

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
/// `struct rtmsg`.
const RTMSG: usize = 12;
// linux/rtnetlink.h
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RT_TABLE_MAIN: u8 = 254;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_HOST: u8 = 254;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;

/// Where a prefix goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Its addresses are neighbours on the link.
    OnLink,
    /// Through this gateway.
    Gateway(IpAddr),
    /// Every address of it is this host (`ip route add local`): many destinations at once.
    Local,
}

fn header(destination: (IpAddr, u8), via: Via) -> [u8; 12] {
    let (table, scope, kind) = match via {
        Via::OnLink => (RT_TABLE_MAIN, RT_SCOPE_LINK, RTN_UNICAST),
        Via::Gateway(_) => (RT_TABLE_MAIN, RT_SCOPE_UNIVERSE, RTN_UNICAST),
        Via::Local => (RT_TABLE_LOCAL, RT_SCOPE_HOST, RTN_LOCAL),
    };
    let (ip, prefix) = destination;
    [family(ip), prefix, 0, 0, table, RTPROT_STATIC, scope, kind, 0, 0, 0, 0]
}

impl Netlink {
    /// Index of the device over which packets to `ip` leave now; `None` when there is no way.
    ///
    /// **Source** net/ipv4/route.c `inet_rtm_getroute`, net/ipv6/route.c `inet6_rtm_getroute`.
    pub fn device_towards(&mut self, ip: IpAddr) -> Result<Option<u32>, HostError> {
        let prefix = if ip.is_ipv4() { 32 } else { 128 };
        let ask = [family(ip), prefix, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let body = Body::new(&ask).raw(RTA_DST, &octets(ip));
        let op = format!("find the route to {ip}");
        let replies = match self.get(&op, RTM_GETROUTE, body.bytes()) {
            Err(HostError::Kernel { errno: libc::ENETUNREACH | libc::EHOSTUNREACH, .. }) => {
                return Ok(None);
            }
            other => other?,
        };
        let reply = replies.iter().find(|reply| reply.kind == RTM_NEWROUTE);
        reply.map_or(Ok(None), |reply| Ok(Attrs::after(&reply.payload, RTMSG)?.u32(RTA_OIF)))
    }

    /// Adds or replaces a route to `destination` (address and prefix length) over `dev`.
    pub fn add_route(
        &mut self,
        dev: &str,
        destination: (IpAddr, u8),
        via: Via,
    ) -> Result<(), HostError> {
        let (ip, prefix) = destination;
        let mut body = Body::new(&header(destination, via)).u32(RTA_OIF, self.index(dev)?);
        if prefix > 0 {
            body = body.raw(RTA_DST, &octets(ip));
        }
        if let Via::Gateway(gateway) = via {
            body = body.raw(RTA_GATEWAY, &octets(gateway));
        }
        let op = format!("add route {ip}/{prefix} over {dev}");
        self.change(&op, RTM_NEWROUTE, REPLACE, body.bytes()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_oneself_is_loopback() {
        let mut netlink = Netlink::route().unwrap();
        let lo = netlink.index("lo").unwrap();
        assert_eq!(netlink.device_towards([127, 0, 0, 1].into()).unwrap(), Some(lo));
    }

    #[test]
    fn a_local_prefix_goes_to_the_local_table() {
        let to = (IpAddr::from([10, 9, 0, 0]), 16);
        assert_eq!(header(to, Via::Local)[..8], [2, 16, 0, 0, 255, 4, 254, 2]);
        assert_eq!(header(to, Via::OnLink)[4..8], [254, 4, 253, 1]);
    }
}
