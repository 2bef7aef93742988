//! Rings: descriptors of each queue, and how received data is laid into buffers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Amount;
use super::command::{Command, EthtoolQuestion};
use super::field::Answer;
use crate::{Group, HostError};

/// Whether headers and data go into buffers of their own (`enum ethtool_tcp_data_split`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataSplit {
    /// The driver does not say.
    Unknown,
    /// Off.
    Disabled,
    /// On.
    Enabled,
}

/// Descriptors of each ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rings {
    /// Receive.
    pub rx: Amount,
    /// Receive, small frames.
    pub rx_mini: Amount,
    /// Receive, jumbo frames.
    pub rx_jumbo: Amount,
    /// Transmit.
    pub tx: Amount,
    /// Length of one receive buffer, in bytes (5.16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_buf_len_bytes: Option<u32>,
    /// Header and data apart (6.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_data_split: Option<DataSplit>,
    /// Size of a completion, in bytes (5.18).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cqe_size_bytes: Option<u32>,
    /// Descriptors pushed to the device on transmit (6.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_push: Option<bool>,
    /// Descriptors pushed to the device on receive (6.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_push: Option<bool>,
    /// Packets above this many bytes are split (6.14).
    pub split_threshold_bytes: Amount,
}

/// Ring sizes of a device.
///
/// **Errors** `Unsupported` for drivers without them (veth).
pub const RINGS: EthtoolQuestion<Rings> =
    EthtoolQuestion::new("rings", Command::RingsGet, parse_rings);

/// Reads an answer to the rings question (net/ethtool/rings.c `rings_fill_reply`).
pub fn parse_rings(payload: &[u8]) -> Result<Rings, HostError> {
    Answer::of_attributes(Group::Rings, payload).map(|answer| Rings::from(&answer))
}

impl From<&Answer> for Rings {
    fn from(answer: &Answer) -> Self {
        Self {
            rx: answer.amount("rx"),
            rx_mini: answer.amount("rx-mini"),
            rx_jumbo: answer.amount("rx-jumbo"),
            tx: answer.amount("tx"),
            rx_buf_len_bytes: answer.number("rx-buf-len"),
            tcp_data_split: answer.number("tcp-data-split").map(|split| match split {
                1 => DataSplit::Disabled,
                2 => DataSplit::Enabled,
                _ => DataSplit::Unknown,
            }),
            cqe_size_bytes: answer.number("cqe-size"),
            tx_push: answer.is_on("tx-push"),
            rx_push: answer.is_on("rx-push"),
            split_threshold_bytes: answer.amount("hds-thresh"),
        }
    }
}
