//! A trial between real hosts: who sent how much to whom, and what each host did alone.

mod clocks;
mod control;
mod of_run;
mod pair_rate;
mod starts;

use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_core::number::{percent, si};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::clocks::{ClockDrift, DRIFT_PPM, PairClocks, PathDelays, PathOffset};
pub use self::control::{ControlCost, ControlPath};
pub use self::of_run::ReceiverLoss;
pub use self::pair_rate::PairRate;
pub use self::starts::{HostStart, StartSpread};
use crate::grade::Grade;
use crate::ledger::Ledger;

/// A host's part in one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostTrial {
    /// What it did: `tx` sent, `rx` received.
    pub side: PathSide,
    /// Noise grade of its machine.
    pub grade: Grade,
    /// The basis of the grade, as text with numbers.
    pub noise: Vec<String>,
    /// What its endpoint cost in the window; `None` in runs of versions that did not measure it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub endpoint_cost: Option<ControlCost>,
    /// When it began its load; `None` of a receiver, and of a program that does not say it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start: Option<HostStart>,
    /// Datagrams that it read per second of the window, if it is one of several receivers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delivered_pps: Option<f64>,
    /// Where every datagram to it went, if it is one of several receivers with counters of its own. Over TCP: where the
    /// segments of the senders went that arrived at it, with its share of those that were lost elsewhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ledger: Option<Ledger>,
    /// What it did over TCP or HTTP, if it is one of several receivers, by the names of the trial's metrics. Its rate is by its
    /// own count, times are those of all its clients.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub metrics: BTreeMap<String, f64>,
}

impl HostTrial {
    /// A host of a quiet machine on this side, of which nothing else is known.
    pub fn of(side: PathSide) -> Self {
        Self { side, ..Self::default() }
    }
}

/// What one sender sent to one receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairPackets {
    /// The sender.
    pub sender: String,
    /// The receiver.
    pub receiver: String,
    /// Datagrams that the sender attempted.
    pub offered_packets: u64,
    /// Of these, read by the receiver, duplicates among them; `None` if datagrams do not carry the number of their sender.
    pub delivered_packets: Option<u64>,
}

impl PairPackets {
    /// The share of the offered datagrams that was not read.
    pub fn lost_ratio(&self) -> Option<f64> {
        let (offered, delivered) = (self.offered_packets as f64, self.delivered_packets? as f64);
        (offered > 0.0).then(|| (1.0 - delivered / offered).max(0.0))
    }

    /// For people: `gen1 -> sut: 12k datagrams offered, 0.10 % lost`.
    pub fn text(&self) -> String {
        let lost = self.lost_ratio().map_or_else(
            || "loss unknown: datagrams carry no number".to_owned(),
            |lost| format!("{} lost", percent(lost, 2)),
        );
        let offered = si(self.offered_packets as f64);
        format!("{} -> {}: {offered} datagrams offered, {lost}", self.sender, self.receiver)
    }
}
