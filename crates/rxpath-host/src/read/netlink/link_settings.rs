//! What rtnetlink lets be set on a link and the receive path depends on, as pairs.

use libc::{IFLA_IFNAME, IFLA_MAX_MTU, IFLA_MIN_MTU, RTM_GETLINK, RTM_NEWLINK};

use super::ethtool::field::Answer;
use super::link::{IFINFOMSG, checked, header};
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body};
use crate::pairs::Pairs;
use crate::{Group, HostError};

/// Reads one `RTM_NEWLINK` payload: the settings, and the largest MTU where the device says one.
///
/// **Source** net/core/rtnetlink.c `rtnl_fill_ifinfo`.
pub fn parse(payload: &[u8]) -> Result<(Pairs, Option<(u32, u32)>), HostError> {
    let attrs = Attrs::after(payload, IFINFOMSG)?;
    // 0: the driver sets no limit (`struct net_device`, max_mtu).
    let max = attrs.u32(IFLA_MAX_MTU).filter(|max| *max > 0);
    let limits = max.map(|max| (attrs.u32(IFLA_MIN_MTU).unwrap_or(0), max));
    Ok((Answer::of_attributes(Group::Link, payload)?.pairs(), limits))
}

impl Netlink {
    fn link_message(&mut self, dev: &str) -> Result<Vec<u8>, HostError> {
        let op = format!("read link settings of {dev}");
        let body = Body::new(&header(0, 0, 0)).text(IFLA_IFNAME, checked(dev)?);
        let replies = self.get(&op, RTM_GETLINK, body.bytes())?;
        let reply = replies.into_iter().find(|reply| reply.kind == RTM_NEWLINK);
        reply.map(|reply| reply.payload).ok_or_else(|| HostError::kernel(op, libc::ENODEV))
    }

    /// The settings of a link. On a [`Netlink::route`] socket.
    pub fn link_settings(&mut self, dev: &str) -> Result<Pairs, HostError> {
        parse(&self.link_message(dev)?).map(|(pairs, _)| pairs)
    }

    /// Smallest and largest MTU, where the device says them.
    pub(crate) fn mtu_limits(&mut self, dev: &str) -> Result<Option<(u32, u32)>, HostError> {
        parse(&self.link_message(dev)?).map(|(_, limits)| limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;

    #[test]
    fn loopback_has_its_settings() {
        let pairs = Netlink::route().unwrap().link_settings("lo").unwrap();
        assert_eq!(pairs.get("mtu"), Some("65536"));
        assert!(pairs.get("gso-max-size").is_some(), "{pairs}");
    }

    takes_any_bytes!(200, bytes => parse(&bytes));
}
