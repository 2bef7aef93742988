//! What a run tells while it works; the binary draws it, tests ignore it.

use std::path::Path;

use rxpath_record::manifest::Trial;

use crate::plan::RunPlan;

/// A listener of a run's progress.
pub trait Progress {
    /// Before the first trial.
    fn planned(&mut self, plan: &RunPlan, directory: &Path);

    /// A trial begins.
    fn trial_started(&mut self, trial: u32, block: u32, variant: &str);

    /// A phase of it begins.
    fn phase(&mut self, phase: &str);

    /// It has ended.
    fn trial_ended(&mut self, trial: &Trial);

    /// Something was found out before the first trial that counts: in words.
    fn found(&mut self, what: &str);
}

/// Shows nothing.
pub struct Silent;

impl Progress for Silent {
    fn planned(&mut self, _: &RunPlan, _: &Path) {}
    fn trial_started(&mut self, _: u32, _: u32, _: &str) {}
    fn phase(&mut self, _: &str) {}
    fn trial_ended(&mut self, _: &Trial) {}
    fn found(&mut self, _: &str) {}
}
