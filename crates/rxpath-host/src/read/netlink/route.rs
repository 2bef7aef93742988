//! The way that packets to an address take from this host: device, gateway, source address.

use std::net::IpAddr;

use libc::{RTA_DST, RTA_GATEWAY, RTA_OIF, RTA_PREFSRC, RTM_GETROUTE};

use super::addr::{family, ip, octets};
use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body};

/// `struct rtmsg`.
const RTMSG: usize = 12;
// linux/rtnetlink.h; libc has it for glibc only
const RTA_VIA: u16 = 18;
/// `struct rtvia`: the family in front of the address.
const VIA_FAMILY: usize = 2;

/// The way to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the device that packets leave by.
    pub device: u32,
    /// The next router; `None` when the address is on the link.
    pub gateway: Option<IpAddr>,
    /// Source address of a socket that is bound to none.
    pub source: Option<IpAddr>,
}

impl Netlink {
    /// The way that packets to `to` take now; `None` when there is none. `scope` is the index of the device for
    /// addresses that mean something on one link only, and 0 otherwise.
    ///
    /// **Source** net/ipv4/route.c `inet_rtm_getroute`, net/ipv6/route.c `inet6_rtm_getroute`.
    pub fn route_to(&mut self, to: IpAddr, scope: u32) -> Result<Option<Route>, HostError> {
        let prefix = if to.is_ipv4() { 32 } else { 128 };
        let ask = [family(to), prefix, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let body = Body::new(&ask).raw(RTA_DST, &octets(to));
        let body = if scope == 0 { body } else { body.u32(RTA_OIF, scope) };
        let op = format!("find the route to {to}");
        let replies = match self.get(&op, RTM_GETROUTE, body.bytes()) {
            Err(HostError::Kernel { errno: libc::ENETUNREACH | libc::EHOSTUNREACH, .. }) => {
                return Ok(None);
            }
            other => other?,
        };
        replies.first().map_or(Ok(None), |reply| parse_route(reply))
    }

    /// Index of the device over which packets to `to` leave now; `None` when there is no way.
    pub(crate) fn device_towards(&mut self, to: IpAddr) -> Result<Option<u32>, HostError> {
        Ok(self.route_to(to, 0)?.map(|route| route.device))
    }
}

/// Reads one `RTM_NEWROUTE` payload; `None` for a route without a device, such as a blackhole.
///
/// **Source** net/ipv4/route.c `rt_fill_info`; an IPv4 route over an IPv6 gateway has `RTA_VIA`.
pub fn parse_route(payload: &[u8]) -> Result<Option<Route>, HostError> {
    let attrs = Attrs::after(payload, RTMSG)?;
    let via = attrs.get(RTA_VIA).and_then(|via| via.get(VIA_FAMILY..));
    Ok(attrs.u32(RTA_OIF).map(|device| Route {
        device,
        gateway: attrs.get(RTA_GATEWAY).or(via).and_then(ip),
        source: attrs.get(RTA_PREFSRC).and_then(ip),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_way_to_oneself_is_loopback() {
        let mut netlink = Netlink::route().unwrap();
        let lo = netlink.index("lo").unwrap();
        let route = netlink.route_to([127, 0, 0, 1].into(), 0).unwrap().unwrap();
        assert_eq!((route.device, route.gateway), (lo, None));
        assert_eq!(route.source, Some([127, 0, 0, 1].into()));
    }

    #[test]
    fn a_gateway_may_be_of_the_other_family() {
        let route = |body: Body| parse_route(body.bytes()).unwrap();
        let head = Body::new(&[0; RTMSG]).u32(RTA_OIF, 7);
        let v4 = head.clone().raw(RTA_GATEWAY, &[192, 0, 2, 1]);
        assert_eq!(route(v4).unwrap().gateway, Some([192, 0, 2, 1].into()));
        let v6 = std::net::Ipv6Addr::LOCALHOST;
        let via = [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &v6.octets()].concat();
        assert_eq!(route(head.raw(RTA_VIA, &via)).unwrap().gateway, Some(v6.into()));
        assert_eq!(route(Body::new(&[0; RTMSG])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse_route(&bytes);
        }
    }
}
