//! What the kernel says of the discipline of its clock by NTP or PTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the kernel's clock. Its errors are statements of the program that disciplines it (chronyd, ntpd), not
/// measurements. **Source** `struct timex`, include/uapi/linux/timex.h.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NtpState {
    /// Whether a program says that `CLOCK_REALTIME` is synchronised: without `STA_UNSYNC`, and the state is not `TIME_ERROR`.
    pub is_synchronised: bool,
    /// The bits `STA_*`.
    pub status: i32,
    /// What is still to be slewed. **Unit** ns.
    pub offset_ns: i64,
    /// How much faster than its hardware the clock is made to run. **Unit** parts per million.
    pub frequency_ppm: f64,
    /// `CLOCK_REALTIME` is wrong by this at most. **Unit** us.
    pub max_error_us: i64,
    /// By this, as estimated. **Unit** us.
    pub estimated_error_us: i64,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`. **Unit** ns.
    pub epoch_ns: i64,
}

impl NtpState {
    /// For people: `synchronised, to +-12ms at most, 3.1 ppm`, `not synchronised`.
    pub fn text(&self) -> String {
        if !self.is_synchronised {
            return "not synchronised".into();
        }
        let error = crate::number::span(self.max_error_us as f64 / 1e6);
        format!("synchronised, to +-{error} at most, {:.1} ppm", self.frequency_ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_without_a_daemon_is_not_synchronised_whatever_its_error() {
        let state = NtpState { max_error_us: 12_000, frequency_ppm: 3.12, ..NtpState::default() };
        assert_eq!(state.text(), "not synchronised");
        let state = NtpState { is_synchronised: true, ..state };
        assert_eq!(state.text(), "synchronised, to +-12ms at most, 3.1 ppm");
    }
}
