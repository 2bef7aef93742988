//! The lines of `events.jsonl`: append-only while the run goes on, readable up to the last whole line.

use std::collections::BTreeMap;

use rxpath_core::{PathSide, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvent {
    /// `CLOCK_MONOTONIC`; add the manifest's `epoch_offset_ns` for Unix time.
    pub t_ns: i64,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// The types of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum What {
    /// The run began; everything before the first trial is set-up.
    RunStarted {
        /// Run id.
        run_id: String,
        /// Scenario name.
        scenario: String,
    },
    /// A setting was changed for a trial, or kept from one before.
    SettingChanged {
        /// The side it was changed on.
        side: PathSide,
        /// Its name.
        setting: String,
        /// Value before.
        old: String,
        /// Value read back after the write.
        new: String,
        /// Index of the trial that made it, if it was kept from there; none if this trial made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_trial: Option<u32>,
    },
    /// A trial began.
    TrialStarted {
        /// Index in the order of running, from 0.
        trial: u32,
        /// Block, from 0 (block 0 is A/A).
        block: u32,
        /// Variant name.
        variant: String,
    },
    /// A phase of a trial began: `ramp`, `settle`, `measure`, `drain`, `read`.
    Phase {
        /// The trial.
        trial: u32,
        /// The phase.
        phase: String,
    },
    /// Gauges and cumulative counters of one moment.
    ///
    /// Keys are `metric/entity`: `delivered_packets/thread0`, `rmem_bytes/socket0`, `idle_s/cpu1`.
    Sample {
        /// The trial.
        trial: u32,
        /// Where it was read.
        side: PathSide,
        /// Values by key.
        values: BTreeMap<String, f64>,
    },
    /// A trial ended.
    TrialEnded {
        /// The trial.
        trial: u32,
        /// Void trials are replaced; the reason is kept.
        void: Option<String>,
    },
    /// A warning of the run.
    Warned(Warning),
    /// The run ended: `complete`, `interrupted`, `failed`, `out-of-time`, `too-noisy`.
    RunEnded {
        /// How.
        how: String,
    },
}
