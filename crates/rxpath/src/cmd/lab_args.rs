//! Options that commands share which make a run of the lab.

use std::path::PathBuf;
use std::time::Duration;

use rxpath_core::Nanos;

/// Default directory for run directories.
pub const BASE: &str = "rxpath-runs";

/// Where the run directory goes, and how long to wait for the lab.
#[derive(Debug, clap::Args)]
pub struct LabArgs {
    /// Directory in which the run directory is created
    #[arg(long, value_name = "DIR", default_value = BASE)]
    pub out: PathBuf,
    /// Wait this long for another experiment on this machine to end; without a time: one day
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_value = "2s",
        default_missing_value = "86400s"
    )]
    wait: Nanos,
}

impl LabArgs {
    /// How long to wait for another experiment to end.
    pub fn patience(&self) -> Duration {
        Duration::from_nanos(self.wait.0)
    }
}
