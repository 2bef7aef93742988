//! What a run tells while it works; the binary draws it, tests ignore it.

use std::path::Path;

use rxpath_record::manifest::Trial;

use crate::plan::RunPlan;

/// A listener of a run's progress.
pub trait Progress {
    /// Before the first trial.
    fn planned(&mut self, _plan: &RunPlan, _directory: &Path) {}

    /// A trial begins.
    fn trial_started(&mut self, _trial: u32, _block: u32, _variant: &str) {}

    /// A phase of it begins.
    fn phase(&mut self, _phase: &str) {}

    /// It has ended.
    fn trial_ended(&mut self, _trial: &Trial) {}

    /// Something was found out before the first trial that counts: in words.
    fn found(&mut self, _what: &str) {}
}
