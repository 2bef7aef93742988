//! Energy-Efficient Ethernet: whether the link sleeps between packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::Command;
use super::{bitset, switch};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_EEE_*`.
pub(crate) mod attr {
    pub(crate) const MODES_OURS: u16 = 2;
    pub(crate) const MODES_PEER: u16 = 3;
    pub(crate) const ACTIVE: u16 = 4;
    pub(crate) const ENABLED: u16 = 5;
    pub(crate) const TX_LPI_ENABLED: u16 = 6;
    pub(crate) const TX_LPI_TIMER: u16 = 7;
}

/// EEE of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Eee {
    /// Allowed here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// In force: both ends allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// The transmitter goes to sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_lpi_enabled: Option<bool>,
    /// Idle microseconds before it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_lpi_timer_us: Option<u32>,
    /// Link modes advertised with EEE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertised: Option<Vec<String>>,
    /// Link modes that the other end advertises with EEE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Vec<String>>,
}

impl Netlink {
    /// EEE of a device.
    ///
    /// **Errors** `Unsupported` for drivers without it.
    pub fn eee(&mut self, dev: &str) -> Result<Eee, HostError> {
        parse_eee(&self.ethtool_get("EEE", Command::EeeGet, dev)?)
    }
}

/// Reads an answer to the EEE question (net/ethtool/eee.c `eee_fill_reply`).
pub fn parse_eee(payload: &[u8]) -> Result<Eee, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(Eee {
        enabled: switch(&attrs, attr::ENABLED),
        active: switch(&attrs, attr::ACTIVE),
        tx_lpi_enabled: switch(&attrs, attr::TX_LPI_ENABLED),
        tx_lpi_timer_us: attrs.u32(attr::TX_LPI_TIMER),
        advertised: bitset::names(&attrs, attr::MODES_OURS)?,
        peer: bitset::names(&attrs, attr::MODES_PEER)?,
    })
}
