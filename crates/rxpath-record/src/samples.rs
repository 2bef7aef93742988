//! Queues over time: what the sampler read during a trial, one column per series.
//!
//! `samples.jsonl.gz` holds one line of JSON per trial, each a gzip member of its own, so that a killed run is readable
//! up to its last whole trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rxpath_core::PathSide;

/// One line: the samples of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSamples {
    /// The trial.
    pub trial: u32,
    /// Variant name.
    pub variant: String,
    /// Time from sample to sample that was asked for.
    pub interval_ns: u64,
    /// `CLOCK_MONOTONIC` of each sample.
    pub t_ns: Vec<i64>,
    /// The series; each has as many values as there are samples.
    pub series: Vec<SampleSeries>,
    /// The cost of the sampling.
    pub cost: SamplerCost,
}

/// One series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleSeries {
    /// Where it was read.
    pub side: PathSide,
    /// Its entity: `socket0`, `thread0`, `cpu1`; `all` = the followed sockets of the side together.
    pub entity: String,
    /// What it is: `rmem_bytes`, `unread_bytes`, `backlog_bytes`, `run_ns`, `processed_packets`.
    pub metric: String,
    /// A counter only grows; two of its values give a rate.
    pub counter: bool,
    /// One value per sample; `None` where it could not be read then.
    pub values: Vec<Option<u64>>,
}

/// The cost of the sampling for the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SamplerCost {
    /// CPU time of the sampling thread.
    pub cpu_s: f64,
    /// Time that it sampled.
    pub span_s: f64,
    /// Samples taken.
    pub samples_count: u64,
    /// Samples skipped because the previous one was still being taken, or because the thread got no CPU.
    pub missed_count: u64,
    /// CPUs that it ran on.
    pub cpus: Vec<u32>,
    /// Sockets seen but not followed: only the first ones are.
    pub unfollowed_sockets_count: u64,
    /// Reads of the sockets' queues that failed; each is a gap in the series.
    #[serde(default)]
    pub failed_reads_count: u64,
}
