//! Private flags: switches that a driver invented.

use std::collections::BTreeMap;

use super::bitset;
use super::command::{Command, EthtoolQuestion};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_PRIVFLAGS_FLAGS`.
pub(crate) const FLAGS: u16 = 2;

/// Flags by the driver's names.
pub type PrivateFlags = BTreeMap<String, bool>;

/// Private flags of a device; empty for drivers that have none.
pub const PRIVATE_FLAGS: EthtoolQuestion<PrivateFlags> =
    EthtoolQuestion::new("private flags", Command::PrivateFlagsGet, parse_private_flags);

/// Reads an answer to the private flags question (net/ethtool/privflags.c `privflags_fill_reply`).
pub fn parse_private_flags(payload: &[u8]) -> Result<PrivateFlags, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(bitset::read(&attrs, FLAGS)?.into_iter().collect())
}
