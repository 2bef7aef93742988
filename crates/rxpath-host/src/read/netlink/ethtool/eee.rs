//! Energy-Efficient Ethernet: whether the link sleeps between packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::{Command, EthtoolQuestion};
use super::field::Answer;
use super::{bitset, switch};
use crate::netlink::genl;
use crate::netlink::wire::Attrs;
use crate::{Group, HostError};

/// Of `ETHTOOL_A_EEE_*` those that nobody sets.
pub(crate) mod attr {
    pub(crate) const MODES_OURS: u16 = 2;
    pub(crate) const MODES_PEER: u16 = 3;
    pub(crate) const ACTIVE: u16 = 4;
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

/// EEE of a device.
///
/// **Errors** `Unsupported` for drivers without it.
pub const EEE: EthtoolQuestion<Eee> = EthtoolQuestion::new("EEE", Command::EeeGet, parse_eee);

/// Reads an answer to the EEE question (net/ethtool/eee.c `eee_fill_reply`).
pub fn parse_eee(payload: &[u8]) -> Result<Eee, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(Eee {
        active: switch(&attrs, attr::ACTIVE),
        advertised: bitset::names(&attrs, attr::MODES_OURS)?,
        peer: bitset::names(&attrs, attr::MODES_PEER)?,
        ..Eee::from(&Answer::of_attributes(Group::Eee, payload)?)
    })
}

impl From<&Answer> for Eee {
    fn from(answer: &Answer) -> Self {
        Self {
            enabled: answer.is_on("enabled"),
            tx_lpi_enabled: answer.is_on("tx-lpi"),
            tx_lpi_timer_us: answer.number("tx-lpi-timer"),
            ..Self::default()
        }
    }
}
