//! Which device packets to an address leave by.

use std::net::IpAddr;

use super::addr::{family, octets};
use super::socket::Netlink;
use super::wire::{Attrs, Body};
use crate::HostError;

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
/// `struct rtmsg`.
const RTMSG: usize = 12;
// linux/rtnetlink.h
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;

impl Netlink {
    /// Index of the device over which packets to `ip` leave now; `None` when there is no way.
    ///
    /// **Source** net/ipv4/route.c `inet_rtm_getroute`, net/ipv6/route.c `inet6_rtm_getroute`.
    pub(crate) fn device_towards(&mut self, ip: IpAddr) -> Result<Option<u32>, HostError> {
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
}
