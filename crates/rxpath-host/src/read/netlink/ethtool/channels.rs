//! Channels: how many queues a device has, by what they serve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Amount;
use super::command::{Command, EthtoolQuestion};
use super::field::Answer;
use crate::{Group, HostError};

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

/// Queue counts of a device.
///
/// **Errors** `Unsupported` for drivers without them.
pub const CHANNELS: EthtoolQuestion<Channels> =
    EthtoolQuestion::new("channels", Command::ChannelsGet, parse_channels);

/// Reads an answer to the channels question (net/ethtool/channels.c `channels_fill_reply`).
pub fn parse_channels(payload: &[u8]) -> Result<Channels, HostError> {
    Answer::of_attributes(Group::Channels, payload).map(|answer| Channels::from(&answer))
}

impl From<&Answer> for Channels {
    fn from(answer: &Answer) -> Self {
        let [rx, tx, other, combined] =
            ["rx", "tx", "other", "combined"].map(|name| answer.amount(name));
        Self { rx, tx, other, combined }
    }
}
