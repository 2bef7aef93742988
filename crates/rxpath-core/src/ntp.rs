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
    /// Programs running there that correct clocks: `chronyd`; `None` where not all programs are seen, and none of these is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemons: Option<Vec<String>>,
}

/// Programs that correct a clock in words: `ptp4l and phc2sys`; `None` without one.
pub fn in_words(daemons: &[String]) -> Option<String> {
    (!daemons.is_empty()).then(|| daemons.join(" and "))
}

impl NtpState {
    /// For people: `synchronised by chronyd, to +-12ms at most, 3.1 ppm`, `not synchronised`.
    pub fn text(&self) -> String {
        let daemon = self.daemon();
        if !self.is_synchronised {
            return match (daemon, &self.daemons) {
                (Some(daemon), _) => format!("not synchronised (running: {daemon})"),
                (None, Some(_)) => "not synchronised: no daemon".into(),
                (None, None) => "not synchronised".into(),
            };
        }
        let by = daemon.map_or_else(String::new, |daemon| format!(" by {daemon}"));
        let error = crate::number::span(self.max_error_us as f64 / 1e6);
        format!("synchronised{by}, to +-{error} at most, {:.1} ppm", self.frequency_ppm)
    }

    /// In a word or two, for a list of hosts: `chronyd`, `none`, `chronyd (not synchronised)`.
    pub fn short(&self) -> String {
        match (self.daemon(), self.is_synchronised) {
            (Some(daemon), true) => daemon,
            (Some(daemon), false) => format!("{daemon} (not synchronised)"),
            (None, true) => "synchronised".into(),
            (None, false) if self.daemons.is_some() => "none".into(),
            (None, false) => "not synchronised".into(),
        }
    }

    fn daemon(&self) -> Option<String> {
        self.daemons.as_deref().and_then(in_words)
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

    #[test]
    fn the_daemon_is_named_where_programs_are_seen() {
        let state = |is_synchronised, daemons: Option<&[&str]>| NtpState {
            is_synchronised,
            daemons: daemons.map(|all| all.iter().map(|name| (*name).to_owned()).collect()),
            ..NtpState::default()
        };
        for (state, short, text) in [
            (state(true, Some(&["chronyd"])), "chronyd", "synchronised by chronyd, to "),
            (
                state(false, Some(&["ptp4l", "phc2sys"])),
                "ptp4l and phc2sys (not synchronised)",
                "not synchronised (running: ptp4l and phc2sys)",
            ),
            (state(false, Some(&[])), "none", "not synchronised: no daemon"),
            (state(true, Some(&[])), "synchronised", "synchronised, to "),
            (state(false, None), "not synchronised", "not synchronised"),
        ] {
            assert_eq!(state.short(), short);
            assert!(state.text().starts_with(text), "{}", state.text());
        }
    }
}
