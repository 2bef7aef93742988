//! ethtool over generic netlink: what a device's driver tells about itself, one topic in each file below.
//!
//! Numbers are those of `linux/ethtool_netlink.h`, which a test compares with the installed header: a wrong number is a
//! wrong order to hardware (26 and 27 start cable tests, which take the link down). Attributes that are unknown,
//! missing or of another size cost themselves and never the whole answer.

pub mod bitset;
mod channels;
mod coalesce;
pub(crate) mod command;
mod eee;
pub(crate) mod features;
pub(crate) mod fec;
pub(crate) mod field;
pub mod group;
pub(crate) mod link_modes;
pub(crate) mod link_pairs;
mod pause;
pub(crate) mod private_flags;
mod rings;
mod rss;
mod standard_stats;
mod timestamping;

pub use channels::{CHANNELS, Channels, parse_channels};
pub use coalesce::{COALESCE, Coalesce, parse_coalesce};
pub use command::EthtoolQuestion;
pub use eee::{EEE, Eee, parse_eee};
pub use features::{FEATURES, Feature, Features, feature_names, parse_features};
pub use fec::{FEC, Fec, parse_fec};
pub use link_modes::{
    Duplex, LINK_MODES, LINK_PORT, LINK_STATE, LinkModes, LinkState, Port, parse_link_info,
    parse_link_modes, parse_link_state,
};
pub use pause::{PAUSE, Pause, parse_pause};
pub use private_flags::{PRIVATE_FLAGS, PrivateFlags, parse_private_flags};
pub use rings::{DataSplit, RINGS, Rings, parse_rings};
pub(crate) use rss::{
    NO_TRANSFORMATION, function, function_bit, key_fact, transformation, transformation_bit,
};
pub use rss::{RSS, Rss, parse_rss, parse_rss_contexts};
pub use standard_stats::{StandardStats, parse_standard_stats};
pub use timestamping::{TIMESTAMPING, Timestamping, parse_timestamping};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::netlink::wire::Attrs;

/// A pair of how many there are and how many there can be; `None` where the driver gives none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Amount {
    /// Now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<u32>,
    /// At most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// A switch that is one byte on the wire.
fn switch(attrs: &Attrs<'_>, kind: u16) -> Option<bool> {
    attrs.u8(kind).map(|value| value != 0)
}

#[cfg(test)]
mod tests;
