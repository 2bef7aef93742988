//! Hardware time stamps: what a device can do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bitset;
use super::command::{Command, EthtoolQuestion};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_TSINFO_*`.
pub(crate) mod attr {
    pub(crate) const TIMESTAMPING: u16 = 2;
    pub(crate) const TX_TYPES: u16 = 3;
    pub(crate) const RX_FILTERS: u16 = 4;
    pub(crate) const PHC_INDEX: u16 = 5;
}

/// Abilities of a device to stamp packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timestamping {
    /// Kinds of stamps: `software-receive`, `hardware-receive`, ...
    pub stamps: Vec<String>,
    /// What can be stamped when it is sent.
    pub tx_types: Vec<String>,
    /// What can be stamped when it is received: `none`, `all`, ...
    pub rx_filters: Vec<String>,
    /// Number of its clock (`/dev/ptpN`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
}

/// What a device can stamp.
pub const TIMESTAMPING: EthtoolQuestion<Timestamping> =
    EthtoolQuestion::new("time stamping", Command::TimestampingGet, parse_timestamping);

/// Reads an answer to the time stamping question (net/ethtool/tsinfo.c `tsinfo_fill_reply`).
pub fn parse_timestamping(payload: &[u8]) -> Result<Timestamping, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let set = |kind| bitset::names(&attrs, kind).map(Option::unwrap_or_default);
    Ok(Timestamping {
        stamps: set(attr::TIMESTAMPING)?,
        tx_types: set(attr::TX_TYPES)?,
        rx_filters: set(attr::RX_FILTERS)?,
        clock: attrs.u32(attr::PHC_INDEX),
    })
}
