//! Hardware time stamps in force: a device that stamps every packet may be slower for it.
//!
//! **Source** linux/net_tstamp.h `SIOCGHWTSTAMP` (3.14), `struct hwtstamp_config`; net/core/dev_ioctl.c.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ioctl::send;
use crate::netlink::wire::word32;
use crate::pairs::Pairs;
use crate::read::netlink::ethtool::field::Answer;
use crate::{Group, HostError};

const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;

/// What a device stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StampConfig {
    /// `HWTSTAMP_TX_*`: 0 is nothing that is sent.
    pub tx_type: u32,
    /// `HWTSTAMP_FILTER_*`: 0 is nothing that is received, 1 everything.
    pub rx_filter: u32,
}

/// `struct hwtstamp_config` of a device.
pub(crate) fn filled(dev: &str) -> Result<[u8; 12], HostError> {
    let mut buffer = [0; 12];
    send(SIOCGHWTSTAMP, "read the time stamps in force of", dev, &mut buffer)?;
    Ok(buffer)
}

/// What a device stamps now.
///
/// **Errors** `Unsupported` for drivers without hardware stamps.
pub fn stamp_config(dev: &str) -> Result<StampConfig, HostError> {
    let buffer = filled(dev)?;
    let of = |n| word32(&buffer, n).unwrap_or_default();
    Ok(StampConfig { tx_type: of(1), rx_filter: of(2) })
}

/// The same as pairs.
pub(crate) fn stamps(dev: &str) -> Result<Pairs, HostError> {
    Ok(Answer::of_words(Group::Stamps, &filled(dev)?).pairs())
}
