//! How far the clock of another host is ahead: an interval that holds the truth, not an estimate.
//!
//! An exchange has four instants: asked and came back on the clock here, got and answered on the clock there. Whatever
//! the two directions took, the host's clock is ahead by at least `answered - back` and at most `got - asked`. The first one
//! holds at the end of the exchange, the second one at its begin: a program may be late by half a second in between, and then
//! two clocks are no longer as they were. Several exchanges intersect; the quickest one decides. An estimate from half the round
//! trip would be wrong by half of the difference of the two directions, and could not know it.

use rxpath_record::hosts::ClockDrift;
pub(super) use rxpath_record::hosts::DRIFT_PPM;
use serde::{Deserialize, Serialize};

use crate::clock::HostClock;

/// Exchanges of one measurement.
pub const EXCHANGES: u32 = 64;

/// Two readings of a host's `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPair {
    /// When the request had been read.
    pub got_ns: u64,
    /// Just before the answer was written.
    pub answered_ns: u64,
}

/// One exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the question was sent, of the clock here. **Unit** ns.
    pub asked_ns: u64,
    /// The host's readings.
    pub there: ClockPair,
    /// When the answer was read, of the clock here. **Unit** ns.
    pub back_ns: u64,
}

impl Exchange {
    /// Time that both directions took, without that between the host's readings.
    fn round_trip_ns(&self) -> u64 {
        let there_ns = self.there.answered_ns.saturating_sub(self.there.got_ns);
        self.back_ns.saturating_sub(self.asked_ns).saturating_sub(there_ns)
    }

    /// How wide its interval is when it begins: a long time between the host's readings is no part of the round trip, and the
    /// clocks come apart in it.
    fn width_ns(&self) -> i64 {
        let apart_ns = drift_ns(self.back_ns.saturating_sub(self.asked_ns));
        i64::try_from(self.round_trip_ns()).unwrap_or(i64::MAX).saturating_add(apart_ns)
    }
}

/// An interval of the difference of two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockBounds {
    /// The host's clock is ahead by this at least. **Unit** ns.
    pub least_ns: i64,
    /// And by this at most. **Unit** ns.
    pub most_ns: i64,
    /// The shortest round trip of the exchanges. **Unit** ns.
    pub round_trip_ns: u64,
    /// When the quickest one was made, of the clock here.
    pub at_ns: u64,
}

impl ClockBounds {
    /// What all exchanges allow when the quickest one begins; `None` without exchanges, or if they contradict each other: a clock
    /// jumped, or was slewed by more than two clocks can come apart.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let quickest = exchanges.iter().min_by_key(|exchange| exchange.width_ns())?;
        let mut bounds = Self {
            least_ns: i64::MIN,
            most_ns: i64::MAX,
            round_trip_ns: quickest.round_trip_ns(),
            at_ns: quickest.asked_ns,
        };
        let slack_ns = |at_ns: u64| drift_ns(at_ns.abs_diff(quickest.asked_ns));
        for exchange in exchanges {
            let Exchange { asked_ns, there, back_ns } = *exchange;
            let least = there.answered_ns as i64 - back_ns as i64 - slack_ns(back_ns);
            let most = there.got_ns as i64 - asked_ns as i64 + slack_ns(asked_ns);
            bounds.least_ns = bounds.least_ns.max(least);
            bounds.most_ns = bounds.most_ns.min(most);
        }
        (bounds.least_ns <= bounds.most_ns).then_some(bounds)
    }

    /// The middle of the interval.
    pub fn clock(self) -> HostClock {
        HostClock { ahead_ns: self.least_ns + (self.most_ns - self.least_ns) / 2 }
    }

    /// How much faster the host's clock ran from this comparison to a later one than the clock here; `None` if they were made
    /// at one time, or a clock jumped between them.
    pub fn drift_until(self, later: Self) -> Option<ClockDrift> {
        if later.jump_since(self).is_some() {
            return None;
        }
        let span_ns = later.at_ns.checked_sub(self.at_ns).filter(|span| *span > 0)?;
        let ppm = |more_ns: i64| more_ns as f64 / span_ns as f64 * 1e6;
        let least = ppm(later.least_ns.saturating_sub(self.most_ns));
        let most = ppm(later.most_ns.saturating_sub(self.least_ns));
        let (ahead_ppm, error_ppm) = (f64::midpoint(least, most), (most - least) / 2.0);
        Some(ClockDrift { ahead_ppm, error_ppm, span_ns })
    }

    /// How far this clock is ahead of another one, which may have drifted from it between the two comparisons.
    #[must_use]
    pub fn ahead_of(self, other: Self) -> Self {
        let apart_ns = drift_ns(self.at_ns.abs_diff(other.at_ns));
        let least_ns = (self.least_ns - other.most_ns).saturating_sub(apart_ns);
        let most_ns = (self.most_ns - other.least_ns).saturating_add(apart_ns);
        Self { least_ns, most_ns, ..self }
    }

    /// How far the clock here is ahead of the host's.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { least_ns: -self.most_ns, most_ns: -self.least_ns, ..self }
    }

    /// What another comparison of the same two clocks, made at another time, leaves of this one; `None` if they contradict
    /// each other.
    pub fn within(self, other: Self) -> Option<Self> {
        let apart_ns = drift_ns(self.at_ns.abs_diff(other.at_ns));
        let least_ns = self.least_ns.max(other.least_ns.saturating_sub(apart_ns));
        let most_ns = self.most_ns.min(other.most_ns.saturating_add(apart_ns));
        (least_ns <= most_ns).then_some(Self { least_ns, most_ns, ..self })
    }

    /// How far the clock jumped since an earlier comparison, if it is elsewhere than two clocks can be that NTP corrects.
    /// **Unit** ns.
    pub fn jump_since(self, before: Self) -> Option<i64> {
        let apart_ns = drift_ns(self.at_ns.abs_diff(before.at_ns));
        let most_ns = before.most_ns.saturating_add(apart_ns);
        let least_ns = before.least_ns.saturating_sub(apart_ns);
        let has_jumped = self.least_ns > most_ns || self.most_ns < least_ns;
        has_jumped.then(|| self.clock().ahead_ns - before.clock().ahead_ns)
    }

    /// How far the middle may be wrong. **Unit** ns.
    pub fn error_ns(self) -> u64 {
        (self.most_ns - self.least_ns).unsigned_abs().div_ceil(2)
    }
}

/// How far two clocks can come apart in a time, as each of them may run wrong by [`DRIFT_PPM`].
fn drift_ns(time_ns: u64) -> i64 {
    i64::try_from(time_ns * 2 * DRIFT_PPM / 1_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exchange(asked_ns: u64, ahead_ns: i64, [out, work, back]: [u64; 3]) -> Exchange {
        let there = |here: u64| here.saturating_add_signed(ahead_ns);
        let (got, answered) = (asked_ns + out, asked_ns + out + work);
        let there = ClockPair { got_ns: there(got), answered_ns: there(answered) };
        Exchange { asked_ns, there, back_ns: answered + back }
    }

    #[test]
    fn an_asymmetric_path_widens_the_interval_and_does_not_move_it_off_the_truth() {
        let ahead = 86_400_000_000_000;
        let slow_back = exchange(1_000_000_000, ahead, [1_000_000, 10_000, 5_000_000]);
        let bounds = ClockBounds::of(&[slow_back]).unwrap();
        // In these 6.01 ms the clocks may come 7.2 us apart.
        assert_eq!((bounds.least_ns, bounds.most_ns), (ahead - 5_007_212, ahead + 1_000_000));
        assert_eq!((bounds.error_ns(), bounds.round_trip_ns), (3_003_606, 6_000_000));
        // The midpoint of the round trip would be wrong by 2 ms.
        assert_eq!(bounds.clock().ahead_ns, ahead - 2_003_606);
    }

    /// A clock that is ahead by `AHEAD_NS` at `START_NS`, and so much faster.
    fn drifting(asked_ns: u64, drift_ppm: i64, [out, work, back]: [u64; 3]) -> Exchange {
        let there = |here: u64| here.saturating_add_signed(truth(here, drift_ppm));
        let (got, answered) = (asked_ns + out, asked_ns + out + work);
        let there = ClockPair { got_ns: there(got), answered_ns: there(answered) };
        Exchange { asked_ns, there, back_ns: answered + back }
    }

    const START_NS: u64 = 2_000_000_000_000;
    const AHEAD_NS: i64 = 5_000_000;

    fn truth(at_ns: u64, drift_ppm: i64) -> i64 {
        AHEAD_NS + (at_ns as i64 - START_NS as i64) * drift_ppm / 1_000_000
    }

    #[test]
    fn an_exchange_that_was_held_up_does_not_move_the_interval_off_the_truth() {
        let half_a_second = 500_000_000;
        for drift_ppm in [-500, -50, 50, 500] {
            // On the way there, between the readings there, and on the way back.
            for held_up in [
                [half_a_second, 10_000, 28_000],
                [28_000, half_a_second, 28_000],
                [28_000, 10_000, half_a_second],
            ] {
                let all = [
                    drifting(START_NS, drift_ppm, [28_000, 10_000, 28_000]),
                    drifting(START_NS + 100_000, drift_ppm, held_up),
                ];
                let bounds = ClockBounds::of(&all).unwrap();
                let truth = truth(bounds.at_ns, drift_ppm);
                assert!(bounds.least_ns <= truth && truth <= bounds.most_ns, "{bounds:?} {truth}");
                assert_eq!(bounds.at_ns, START_NS, "the quick one decides: {bounds:?}");
                assert!(bounds.most_ns - bounds.least_ns <= 57_000, "{bounds:?}");
            }
        }
    }

    #[test]
    fn a_drift_is_known_the_better_the_longer_the_time_between_two_comparisons() {
        let bounds = |at_ns: u64, ahead_ns: i64| ClockBounds {
            least_ns: ahead_ns - 10_000,
            most_ns: ahead_ns + 10_000,
            round_trip_ns: 20_000,
            at_ns,
        };
        let first = bounds(1_000, 5_000_000);
        // 3 ppm of 10 s are 30 us.
        let drift = first.drift_until(bounds(10_000_001_000, 5_030_000)).unwrap();
        assert_eq!(drift.text(), "3.0 +-2.0 ppm over 10s");
        let drift = first.drift_until(bounds(100_000_001_000, 5_300_000)).unwrap();
        assert_eq!(drift.text(), "3.0 +-0.2 ppm over 100s");
        assert_eq!(first.drift_until(first), None);
        let jumped = bounds(100_000_001_000, 3_000_000_000);
        assert_eq!(first.drift_until(jumped), None, "a jump is no drift");
    }

    #[test]
    fn a_jump_is_a_contradiction() {
        let all = [exchange(0, 5_000_000, [10, 10, 10]), exchange(1_000, 9_000_000, [10, 10, 10])];
        assert_eq!(ClockBounds::of(&all), None);
        assert_eq!(ClockBounds::of(&[]), None);
    }

    #[test]
    fn two_clocks_that_ntp_corrects_in_opposite_directions_do_not_contradict_each_other() {
        let (ahead, step) = (5_000_000, 20_000_000);
        for drift_ppm in [-1_100, 1_100] {
            // All are equally quick: the first one counts.
            let at = |number: i64| {
                let drifted = number * step * drift_ppm / 1_000_000;
                exchange(1_000_000_000 + (number * step) as u64, ahead + drifted, [9_000, 0, 9_000])
            };
            let bounds = ClockBounds::of(&(0..50).map(at).collect::<Vec<_>>()).unwrap();
            assert!(bounds.least_ns <= ahead && ahead <= bounds.most_ns, "{bounds:?}");
        }
    }

    #[test]
    fn a_clock_that_is_elsewhere_than_drift_can_bring_it_has_jumped() {
        let at = |at_ns: u64, ahead_ns: i64| ClockBounds {
            least_ns: ahead_ns - 50_000,
            most_ns: ahead_ns + 50_000,
            round_trip_ns: 100_000,
            at_ns,
        };
        let (second, day) = (1_000_000_000, 86_400_000_000_000);
        let before = at(100 * second, day);
        // Ten seconds at 1000 ppm are 10 ms.
        assert_eq!(at(110 * second, day + 10_000_000).jump_since(before), None);
        assert_eq!(at(110 * second, day - 10_000_000).jump_since(before), None);
        assert_eq!(at(110 * second, day + 81_000_000).jump_since(before), Some(81_000_000));
        assert_eq!(at(110 * second, day - 81_000_000).jump_since(before), Some(-81_000_000));
        assert_eq!(before.jump_since(before), None);
    }

    #[test]
    fn comparisons_that_contradict_each_other_leave_nothing() {
        let at = |at_ns: u64, least_ns: i64, most_ns: i64| ClockBounds {
            least_ns,
            most_ns,
            round_trip_ns: 0,
            at_ns,
        };
        let one = at(0, -10, 50);
        assert_eq!(one.within(at(0, 20, 90)), Some(at(0, 20, 50)));
        assert_eq!(one.within(at(0, 60, 90)), None);
        // In 10 us two clocks come 12 ns apart.
        assert_eq!(one.within(at(10_000, 60, 90)), Some(at(0, 48, 50)));
        assert_eq!(one.reversed(), at(0, -50, 10));
        // Compared one after the other.
        assert_eq!(one.ahead_of(at(10_000, 20, 90)), at(0, -112, 42));
    }

    proptest! {
        #[test]
        fn the_truth_is_inside_whatever_the_paths_did(
            drift_ppm in -1_000i64..1_000,
            paths in proptest::collection::vec([0u64..10_000_000, 0..100_000, 0..10_000_000], 1..70),
        ) {
            let at = |i: u64| START_NS + i * 10_000_000;
            let all: Vec<Exchange> =
                (0..).zip(&paths).map(|(i, path)| drifting(at(i), drift_ppm, *path)).collect();
            let bounds = ClockBounds::of(&all).unwrap();
            let truth = truth(bounds.at_ns, drift_ppm);
            // Two nanoseconds of rounding.
            let inside = bounds.least_ns - 2 <= truth && truth <= bounds.most_ns + 2;
            prop_assert!(inside, "{bounds:?} {truth}");
            let quickest = paths.iter().map(|path| path[0] + path[2]).min().unwrap();
            // However long the others took, and however long all of them did. In 20.1 ms two clocks come 24.12 us apart, and a slow
            // clock takes 0.1 us off the time between the host's readings.
            let apart = 24_300;
            prop_assert!(bounds.most_ns - bounds.least_ns <= quickest as i64 + apart, "{bounds:?}");
            prop_assert!(bounds.round_trip_ns <= quickest + apart as u64, "{bounds:?}");
        }
    }
}
