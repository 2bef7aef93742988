//! What entering and leaving an interrupt costs: no tracepoint sees it, so a live view measures it once, or gets it from the user.

use std::time::Duration;

use rxpath_bpf::account::Account;
use rxpath_bpf::account::calibrate::{CalibrationKind, IrqCalibration, measure_briefly};
use rxpath_record::watch::WatchFrame;

/// Where a live view has this cost from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum EntryCost {
    /// From nowhere: the time taken from tasks lacks it.
    #[default]
    Unknown,
    /// Measured at the start, in spins of 4 ms on two CPUs with this pause before each.
    Measured {
        /// Zero where no limit of CPU time holds.
        pause: Duration,
    },
    /// Measured before, in microseconds.
    Given {
        /// Of one interrupt.
        us: f64,
    },
}

impl EntryCost {
    /// The estimate, or why there is none.
    pub(super) fn calibration(self, account: &mut Account) -> IrqCalibration {
        match self {
            Self::Unknown => IrqCalibration::none("not requested"),
            Self::Measured { pause } => measure_briefly(account, pause)
                .unwrap_or_else(|error| IrqCalibration::none(error.to_string())),
            Self::Given { us } => IrqCalibration::given(us),
        }
    }
}

/// What a frame says of an estimate that is missing, or that is wrong by much: its gap, and why.
pub(super) fn entry_gap(estimate: &IrqCalibration) -> Option<(String, String)> {
    let source = &estimate.source;
    match estimate.kind {
        None => Some((WatchFrame::ENTRY.to_owned(), format!("not estimated: {source}"))),
        Some(CalibrationKind::Interrupts) => {
            Some((WatchFrame::EXACT_ENTRY.to_owned(), source.clone()))
        }
        Some(CalibrationKind::Packets | CalibrationKind::Given) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_that_is_missing_or_wrong_by_much_is_a_gap_of_its_own() {
        let of = |kind| entry_gap(&IrqCalibration { kind, ..IrqCalibration::given(1.0) });
        assert_eq!(of(Some(CalibrationKind::Given)), None);
        assert_eq!(of(Some(CalibrationKind::Packets)), None);
        let (what, _) = of(Some(CalibrationKind::Interrupts)).unwrap();
        assert_eq!(what, WatchFrame::EXACT_ENTRY);
        let (what, why) = entry_gap(&IrqCalibration::none("one CPU")).unwrap();
        assert_eq!((what.as_str(), why.as_str()), (WatchFrame::ENTRY, "not estimated: one CPU"));
    }
}
