//! When the settings are judged again.

use std::time::{Duration, Instant};

/// A check reads some hundred files: devices that come and go all the time, as those of pods, cause no more of them.
const LEAST: Duration = Duration::from_secs(60);

/// The last check.
#[derive(Debug, Default)]
pub struct Recheck {
    at: Option<Instant>,
    /// How often devices had changed then.
    link_changes: u64,
}

impl Recheck {
    /// Whether a check is due: the first, one after this time, or one because devices have changed since the last. It counts as made.
    /// No time is no check at all.
    pub fn is_due(&mut self, now: Instant, every: Duration, link_changes: u64) -> bool {
        let is_due = self.at.is_none_or(|at| {
            let since = now.saturating_duration_since(at);
            since >= every || (link_changes != self.link_changes && since >= LEAST)
        });
        if every.is_zero() || !is_due {
            return false;
        }
        *self = Self { at: Some(now), link_changes };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_due_each_hour_and_a_minute_after_the_last_when_devices_changed() {
        let (start, s) = (Instant::now(), Duration::from_secs);
        let mut recheck = Recheck::default();
        for (at_s, link_changes, is_due) in [
            (0, 0, true),
            (3599, 0, false),
            (3600, 0, true),
            // A change within a minute is remembered; later ones are part of the same check.
            (3610, 1, false),
            (3659, 2, false),
            (3660, 2, true),
            (3720, 2, false),
            // A change after a long time is judged at once.
            (5000, 3, true),
            (8599, 3, false),
            (8600, 3, true),
        ] {
            let got = recheck.is_due(start + s(at_s), s(3600), link_changes);
            assert_eq!(got, is_due, "{at_s} s");
        }
    }

    #[test]
    fn a_shorter_time_between_checks_holds_and_none_is_no_check() {
        let (start, s) = (Instant::now(), Duration::from_secs);
        let mut recheck = Recheck::default();
        for (at_s, is_due) in [(0, true), (9, false), (10, true)] {
            assert_eq!(recheck.is_due(start + s(at_s), s(10), 0), is_due, "{at_s} s");
        }
        assert!(!Recheck::default().is_due(start, Duration::ZERO, 1));
    }
}
