//! What a trial is made from.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_core::Nanos;
use rxpath_host::lab::owner::Owner;

use crate::scenario::spec::{Trials, Variant};

/// What a trial is to be made from.
pub struct TrialConfig<'a> {
    /// The variant.
    pub variant: &'a Variant,
    /// Spans of the phases.
    pub trials: &'a Trials,
    /// This program.
    pub exe: &'a Path,
    /// Directory for files that belong to this trial's programs; made when one needs it.
    pub files: &'a Path,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
    /// Measure CPU time and lock waits by tracepoints over the window, for the diagnosis.
    pub witness: bool,
    /// What an interrupt costs here, for variants that want to know who paid.
    pub calibration: Option<&'a IrqCalibration>,
    /// Who the processes of the background belong to.
    pub owner: Option<&'a Owner>,
}

impl TrialConfig<'_> {
    /// The cost of an interrupt: given by the variant, or calibrated.
    pub(super) fn cost(&self) -> Option<IrqCalibration> {
        let given = self.variant.observe.irq_entry;
        let given = given.map(|cost| IrqCalibration::given(cost.0 as f64 / 1e3));
        given.or_else(|| self.calibration.cloned())
    }
}

/// Length of the load of a trial at most.
pub fn whole(trials: &Trials) -> Nanos {
    Nanos(trials.ramp.0 + trials.settle.0 + trials.measure.0)
}
