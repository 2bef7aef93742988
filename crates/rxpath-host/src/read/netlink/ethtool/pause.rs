//! Pause frames: whether the device may stop its sender, and how often it did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::{Command, EthtoolQuestion};
use super::field::Answer;
use crate::netlink::genl;
use crate::netlink::wire::Attrs;
use crate::{Group, HostError};

/// `ETHTOOL_A_PAUSE_STATS` and the counters in it.
pub(crate) mod attr {
    pub(crate) const STATS: u16 = 5;
    pub(crate) const STAT_TX_FRAMES: u16 = 2;
    pub(crate) const STAT_RX_FRAMES: u16 = 3;
}

/// Pause settings of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pause {
    /// Negotiated with the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoneg: Option<bool>,
    /// The device stops sending on pause frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx: Option<bool>,
    /// The device tells the other end to stop: losses hide in the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<bool>,
    /// Pause frames sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_pause_packets: Option<u64>,
    /// Pause frames received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_pause_packets: Option<u64>,
}

/// Pause settings and counters of a device.
///
/// **Errors** `Unsupported` for drivers without them.
pub const PAUSE: EthtoolQuestion<Pause> =
    EthtoolQuestion::new("pause settings", Command::PauseGet, parse_pause).with_statistics();

/// Reads an answer to the pause question (net/ethtool/pause.c `pause_fill_reply`).
pub fn parse_pause(payload: &[u8]) -> Result<Pause, HostError> {
    let stats = Attrs::after(payload, genl::HEADER)?.nest(attr::STATS)?;
    Ok(Pause {
        tx_pause_packets: stats.u64(attr::STAT_TX_FRAMES),
        rx_pause_packets: stats.u64(attr::STAT_RX_FRAMES),
        ..Pause::from(&Answer::of_attributes(Group::Pause, payload)?)
    })
}

impl From<&Answer> for Pause {
    fn from(answer: &Answer) -> Self {
        let [autoneg, rx, tx] = ["autoneg", "rx", "tx"].map(|name| answer.is_on(name));
        Self { autoneg, rx, tx, ..Self::default() }
    }
}
