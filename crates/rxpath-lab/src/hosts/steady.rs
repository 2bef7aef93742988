//! Since which comparison no clock jumped. How fast a clock runs is known from there on: a jump is no rate.

use std::sync::Mutex;

use rxpath_record::hosts::ClockDrift;

use crate::endpoint::clock::ClockBounds;
use crate::shared::locked;

/// The clocks of all hosts of a run, compared again and again, in the order of the hosts.
#[derive(Default)]
pub struct SteadyClocks(Mutex<Option<Comparisons>>);

struct Comparisons {
    /// No clock jumped since this one.
    since: Vec<ClockBounds>,
    /// The one before now.
    last: Vec<ClockBounds>,
}

impl SteadyClocks {
    /// Notes a comparison that was just made, and returns the one since which no clock jumped; `first` is the first one of the run.
    ///
    /// Whether a clock jumped is judged by the last comparison, not by `first`: over a long run drift may bring as much. If one clock
    /// jumped, all begin again, because the rate of a pair needs both clocks at one time.
    pub fn note(&self, first: &[ClockBounds], now: &[ClockBounds]) -> Vec<ClockBounds> {
        let mut kept = locked(&self.0);
        let begun = || Comparisons { since: first.to_vec(), last: first.to_vec() };
        let kept = kept.get_or_insert_with(begun);
        let mut both = now.iter().zip(&kept.last);
        if both.any(|(now, last)| now.jump_since(*last).is_some()) {
            kept.since = now.to_vec();
        }
        kept.last = now.to_vec();
        kept.since.clone()
    }

    /// How much faster the clock of the host at this place ran than the clock here since no clock jumped; `None` if it jumped since
    /// the last comparison. Without a noted one it is since `first`.
    pub fn drift(&self, place: usize, first: ClockBounds, now: ClockBounds) -> Option<ClockDrift> {
        let kept = locked(&self.0);
        let both = kept.as_ref().and_then(|kept| kept.since.get(place).zip(kept.last.get(place)));
        let (since, last) = both.unwrap_or((&first, &first));
        if now.jump_since(*last).is_some() {
            return None;
        }
        since.drift_until(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that is known to +-50 us.
    fn at(second: u64, ahead_ns: i64) -> ClockBounds {
        ClockBounds {
            least_ns: ahead_ns - 50_000,
            most_ns: ahead_ns + 50_000,
            round_trip_ns: 100_000,
            at_ns: second * 1_000_000_000,
        }
    }

    #[test]
    fn rates_are_those_since_the_last_jump_of_any_clock() {
        let (steady, first) = (SteadyClocks::default(), [at(0, 0), at(0, 7_000)]);
        assert_eq!(steady.note(&first, &[at(9, 900), at(9, 7_000)]), first);
        // The second one was paused for 300 ms.
        let paused = [at(20, 2_000), at(20, -299_993_000)];
        assert_eq!(steady.note(&first, &paused), paused);
        assert_eq!(steady.note(&first, &[at(4_000, 3_000), at(4_000, -299_993_000)]), paused);
        // Drift may bring 300 ms in an hour, and not in 10 s.
        let again = [at(4_010, 3_000), at(4_010, -599_993_000)];
        assert_eq!(again[1].jump_since(paused[1]), None);
        assert_eq!(steady.note(&first, &again), again);
    }

    #[test]
    fn a_drift_is_that_since_the_last_jump() {
        let (steady, first) = (SteadyClocks::default(), at(0, 0));
        let text = |now| steady.drift(0, first, now).map(|drift| drift.text());
        assert_eq!(text(at(10, 30_000)).unwrap(), "3.0 +-10.0 ppm over 10s", "without a trial");
        steady.note(&[first], &[at(4_000, 0)]);
        steady.note(&[first], &[at(4_010, -300_000_000)]);
        let since_jump = "3.0 +-10.0 ppm over 10s";
        assert_eq!(text(at(4_020, -299_970_000)).unwrap(), since_jump, "not 75 ppm over an hour");
        assert_eq!(text(at(4_020, 0)), None, "it jumped again");
    }
}
