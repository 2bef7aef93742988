//! Private flags: switches that a driver invented.

use std::collections::BTreeMap;

use super::bitset;
use super::command::Command;
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_PRIVFLAGS_FLAGS`.
pub(crate) const FLAGS: u16 = 2;

/// Flags by the driver's names.
pub type PrivateFlags = BTreeMap<String, bool>;

impl Netlink {
    /// Private flags of a device; empty for drivers that have none.
    pub fn private_flags(&mut self, dev: &str) -> Result<PrivateFlags, HostError> {
        parse_private_flags(&self.ethtool_get("private flags", Command::PrivateFlagsGet, dev)?)
    }
}

/// Reads an answer to the private flags question (net/ethtool/privflags.c `privflags_fill_reply`).
pub fn parse_private_flags(payload: &[u8]) -> Result<PrivateFlags, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(bitset::read(&attrs, FLAGS)?.into_iter().collect())
}
