//! Channels: how many queues a device has, by what they serve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Amount;
use super::command::Command;
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_CHANNELS_*`.
pub(crate) mod attr {
    pub(crate) const RX_MAX: u16 = 2;
    pub(crate) const TX_MAX: u16 = 3;
    pub(crate) const OTHER_MAX: u16 = 4;
    pub(crate) const COMBINED_MAX: u16 = 5;
    pub(crate) const RX: u16 = 6;
    pub(crate) const TX: u16 = 7;
    pub(crate) const OTHER: u16 = 8;
    pub(crate) const COMBINED: u16 = 9;
}

/// Queues of a device, by what they serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Channels {
    /// Receive only.
    pub rx: Amount,
    /// Transmit only.
    pub tx: Amount,
    /// Neither: link events, mailbox.
    pub other: Amount,
    /// Both.
    pub combined: Amount,
}

impl Channels {
    /// Queues that receive: those that only receive and those that do both.
    pub fn receiving(&self) -> Option<u32> {
        match (self.rx.now, self.combined.now) {
            (None, None) => None,
            (rx, combined) => Some(rx.unwrap_or(0).saturating_add(combined.unwrap_or(0))),
        }
    }
}

impl Netlink {
    /// Queue counts of a device.
    ///
    /// **Errors** `Unsupported` for drivers without them.
    pub fn channels(&mut self, dev: &str) -> Result<Channels, HostError> {
        parse_channels(&self.ethtool_get("channels", Command::ChannelsGet, dev)?)
    }
}

/// Reads an answer to the channels question (net/ethtool/channels.c `channels_fill_reply`).
pub fn parse_channels(payload: &[u8]) -> Result<Channels, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(Channels {
        rx: Amount::read(&attrs, attr::RX_MAX, attr::RX),
        tx: Amount::read(&attrs, attr::TX_MAX, attr::TX),
        other: Amount::read(&attrs, attr::OTHER_MAX, attr::OTHER),
        combined: Amount::read(&attrs, attr::COMBINED_MAX, attr::COMBINED),
    })
}
