//! Counters by name: one snapshot, and what moved between two.
//!
//! Names are `side/group.counter`, for example `rx/Udp.RcvbufErrors`, `tx/link.veth.tx.dropped`,
//! `tx/qdisc.tbf.drops`, `rx/nft.inet.t.in.2.packets`, `machine/softnet.cpu1.dropped`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every counter read at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// `CLOCK_MONOTONIC` at the end of the reading.
    pub t_ns: i64,
    /// Values by name.
    pub values: BTreeMap<String, u64>,
    /// Sources that could not be read, with the reason: a gap, never a zero.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub gaps: BTreeMap<String, String>,
}

/// What moved between two snapshots; counters that stood still are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// Differences by name.
    pub values: BTreeMap<String, i64>,
    /// Names that one of the two snapshots lacks, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub gaps: BTreeMap<String, String>,
}
