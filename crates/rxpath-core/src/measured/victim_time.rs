//! What a victim got of its CPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TakenBy;
use crate::{Division, ReportedTime};

/// The CPU time that a victim asked for and the time it got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VictimTime {
    /// Wall time for which it wanted the CPU.
    pub asked_s: f64,
    /// CPU time by the work it did: loop iterations times the time of an undisturbed iteration. Built-in victim only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_by_work_s: Option<f64>,
    /// Time in the gaps of its loop, other tasks' slices included. Built-in victim only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps_s: Option<f64>,
    /// Time of an undisturbed iteration. Built-in victim only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_ns: Option<f64>,
    /// CPU time that the command itself reports, where its output format is known (`openssl speed`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ReportedTime>,
    /// Where its time on CPUs went, all its threads and descendants together.
    pub time: Division,
    /// Which devices' polls took time from it, the largest first.
    pub taken_by: Vec<TakenBy>,
}
