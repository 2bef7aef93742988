//! What entering and leaving an interrupt costs: no tracepoint sees it, so a live view measures it once, or gets it from the user.

use std::time::Duration;

use rxpath_bpf::account::Account;
use rxpath_bpf::account::calibrate::{Calibration, measure_briefly};

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
    pub(super) fn calibration(self, account: &Account) -> Calibration {
        match self {
            Self::Unknown => Calibration::none("nobody asked for it"),
            Self::Measured { pause } => measure_briefly(account, pause)
                .unwrap_or_else(|error| Calibration::none(error.to_string())),
            Self::Given { us } => Calibration::given(us),
        }
    }
}
