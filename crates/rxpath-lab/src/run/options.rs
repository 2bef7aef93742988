//! What the caller of a run decides.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxpath_model::calibration::Calibration;

use crate::hosts::Hosts;

/// What the caller decides.
pub struct Options<'a> {
    /// Directory in which the run directory is made.
    pub base: &'a Path,
    /// This program, for the workloads.
    pub exe: &'a Path,
    /// The command line, for the manifest.
    pub command: Vec<String>,
    /// Version of the program.
    pub version: &'a str,
    /// Count trials that noise would void; their grade says so. What is void for another reason stays void.
    pub keep_noisy: bool,
    /// Measure CPU time and lock waits by tracepoints, for the diagnosis.
    pub witness: bool,
    /// How long to wait for the machine's lab lock.
    pub patience: Duration,
    /// The command that runs this without root, where there is one; for the hint of a refusal.
    pub without_root: Option<String>,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
    /// The hosts between which it runs; without them it runs on this machine.
    pub hosts: Option<&'a Hosts>,
    /// The costs of this host, from which the variants are predicted once they are measured. Kept in the run directory, so
    /// that questions about the run can be asked later.
    pub calibration: Option<&'a Calibration>,
}
