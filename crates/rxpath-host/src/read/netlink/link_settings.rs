//! What rtnetlink lets be set on a link and the receive path depends on, as pairs.

use libc::{IFLA_MAX_MTU, IFLA_MIN_MTU};

use super::ethtool::field::Answer;
use super::link::{IFINFOMSG, by_name};
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;
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
    /// The settings of a link. On a [`Netlink::route`] socket.
    pub fn link_settings(&mut self, dev: &str) -> Result<Pairs, HostError> {
        self.settings_message(dev).and_then(|payload| parse(&payload)).map(|(pairs, _)| pairs)
    }

    /// Smallest and largest MTU, where the device says them.
    pub(crate) fn mtu_limits(&mut self, dev: &str) -> Result<Option<(u32, u32)>, HostError> {
        self.settings_message(dev).and_then(|payload| parse(&payload)).map(|(_, limits)| limits)
    }

    fn settings_message(&mut self, dev: &str) -> Result<Vec<u8>, HostError> {
        self.link_message(&format!("read link settings of {dev}"), &by_name(dev)?)
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
