//! Rings: descriptors of each queue, and how received data is laid into buffers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::Command;
use super::{Amount, switch};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_RINGS_*`.
pub(crate) mod attr {
    pub(crate) const RX_MAX: u16 = 2;
    pub(crate) const RX_MINI_MAX: u16 = 3;
    pub(crate) const RX_JUMBO_MAX: u16 = 4;
    pub(crate) const TX_MAX: u16 = 5;
    pub(crate) const RX: u16 = 6;
    pub(crate) const RX_MINI: u16 = 7;
    pub(crate) const RX_JUMBO: u16 = 8;
    pub(crate) const TX: u16 = 9;
    pub(crate) const RX_BUF_LEN: u16 = 10;
    pub(crate) const TCP_DATA_SPLIT: u16 = 11;
    pub(crate) const CQE_SIZE: u16 = 12;
    pub(crate) const TX_PUSH: u16 = 13;
    pub(crate) const RX_PUSH: u16 = 14;
    pub(crate) const HDS_THRESH: u16 = 17;
    pub(crate) const HDS_THRESH_MAX: u16 = 18;
}

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

impl Netlink {
    /// Ring sizes of a device.
    ///
    /// **Errors** `Unsupported` for drivers without them (veth).
    pub fn rings(&mut self, dev: &str) -> Result<Rings, HostError> {
        parse_rings(&self.ethtool_get("rings", Command::RingsGet, dev)?)
    }
}

/// Reads an answer to the rings question (net/ethtool/rings.c `rings_fill_reply`).
pub fn parse_rings(payload: &[u8]) -> Result<Rings, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(Rings {
        rx: Amount::read(&attrs, attr::RX_MAX, attr::RX),
        rx_mini: Amount::read(&attrs, attr::RX_MINI_MAX, attr::RX_MINI),
        rx_jumbo: Amount::read(&attrs, attr::RX_JUMBO_MAX, attr::RX_JUMBO),
        tx: Amount::read(&attrs, attr::TX_MAX, attr::TX),
        rx_buf_len_bytes: attrs.u32(attr::RX_BUF_LEN),
        tcp_data_split: attrs.u8(attr::TCP_DATA_SPLIT).map(|split| match split {
            1 => DataSplit::Disabled,
            2 => DataSplit::Enabled,
            _ => DataSplit::Unknown,
        }),
        cqe_size_bytes: attrs.u32(attr::CQE_SIZE),
        tx_push: switch(&attrs, attr::TX_PUSH),
        rx_push: switch(&attrs, attr::RX_PUSH),
        split_threshold_bytes: Amount::read(&attrs, attr::HDS_THRESH_MAX, attr::HDS_THRESH),
    })
}
