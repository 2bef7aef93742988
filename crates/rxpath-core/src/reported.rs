//! What a command says of its own CPU time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU time that a command itself reports. Such figures come from times(2), which ticks alias.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedTime {
    /// What it measured: `sha256, 16384 bytes`.
    pub what: String,
    /// Seconds that it asked for.
    pub asked_s: f64,
    /// Seconds of CPU time that it reports.
    pub got_s: f64,
    /// Pieces of work that it did.
    pub work_count: u64,
}
