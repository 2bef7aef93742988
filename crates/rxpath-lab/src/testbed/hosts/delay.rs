//! One-way delays between hosts: the senders' clocks as the receiver gets them, and how far its delays may be wrong.
//!
//! The clocks are compared before and after a trial, over the control connections and by datagrams on the measured path. What
//! both allow is the interval; the path's is mostly the narrower one. During the trial the receiver goes by a line: the difference
//! before the trial, and the rate since the first comparison of the run, or the first one after a jump. Afterwards it is known how
//! far the line was off at its end, and the middle of that is taken off the delays.

use rxpath_core::Warning;
use rxpath_load::udp::sender_clock::SenderClock;

use crate::endpoint::clock::ClockBounds;

/// From this distance on, two comparisons tell a rate: their errors of some 30 us are then less than 10 ppm.
const RATE_FROM_NS: u64 = 10_000_000_000;

/// How far delays are from the truth: what to add to them, and what may be left. **Unit** ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayError {
    /// To be added.
    pub shift_ns: i64,
    /// The truth is this close then.
    pub bound_ns: u64,
}

impl DelayError {
    /// With clocks of senders and receivers that were so far from an even pace: the line between two comparisons is not theirs.
    /// Where both are one clock there is no error.
    #[must_use]
    pub fn with_uneven(self, uneven_ns: [u64; 2]) -> Self {
        let more_ns: u64 = if self.bound_ns > 0 { uneven_ns.iter().sum() } else { 0 };
        Self { bound_ns: self.bound_ns + more_ns, ..self }
    }
}

/// What the comparison of the clocks after a trial shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClocksAfter {
    /// How far one-way delays are wrong.
    pub delay: DelayError,
    /// Clocks that jumped in the trial: the host, and by how much.
    pub jumps: Vec<String>,
    /// Pairs whose clocks were not compared over the measured path.
    pub warning: Option<Warning>,
}

/// The clocks of a sender and of the receiver, compared at one time.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Of the sender, against the clock here.
    pub sender: ClockBounds,
    /// Of the receiver, against the clock here.
    pub receiver: ClockBounds,
    /// Of the sender, against the receiver's, over the measured path; its instant is one of the clock here.
    pub path: Option<ClockBounds>,
}

impl Pair {
    /// By the control connections.
    fn by_control(self) -> ClockBounds {
        self.sender.ahead_of(self.receiver)
    }

    /// By all that is known; where the path contradicts the control connections, by those.
    fn ahead(self) -> ClockBounds {
        let control = self.by_control();
        self.path.and_then(|path| path.within(control)).unwrap_or(control)
    }

    /// How far apart the path and the control connections are if they contradict each other. **Unit** ns.
    pub fn contradiction_ns(self) -> Option<u64> {
        let control = self.by_control();
        let path = self.path.filter(|path| path.within(control).is_none())?;
        Some(path.clock().ahead_ns.abs_diff(control.clock().ahead_ns))
    }

    /// An instant of the clock here on the receiver's clock.
    fn at_receiver_ns(self, here_ns: u64) -> u64 {
        here_ns.wrapping_add_signed(self.receiver.clock().ahead_ns)
    }
}

/// The line that the receiver gets; `first` is the comparison since which no clock jumped.
pub fn line(id: u16, first: Pair, now: Pair) -> SenderClock {
    // The middles of two kinds of comparisons differ without any drift.
    let (before, later, ahead) = (first.by_control(), now.by_control(), now.ahead());
    let span_ns = later.at_ns.saturating_sub(before.at_ns);
    let moved_ns = later.clock().ahead_ns - before.clock().ahead_ns;
    let rate = i128::from(moved_ns) * 1_000_000_000 / i128::from(span_ns.max(1));
    let rate_ppb = if span_ns < RATE_FROM_NS { 0 } else { i64::try_from(rate).unwrap_or(0) };
    SenderClock {
        id,
        ahead_ns: ahead.clock().ahead_ns,
        at_ns: now.at_receiver_ns(ahead.at_ns),
        rate_ppb,
        error_ns: ahead.error_ns(),
    }
}

/// How far the delays of a trial are off that went by these lines; `after` are the comparisons behind it.
pub fn error(lines: &[SenderClock], after: &[Pair]) -> DelayError {
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for (line, pair) in lines.iter().zip(after) {
        let ahead = pair.ahead();
        let at_ns = pair.at_receiver_ns(ahead.at_ns);
        let assumed = line.there(at_ns).wrapping_sub(at_ns) as i64;
        let start = line.error_ns as i64;
        least = least.min(-start).min(ahead.least_ns - assumed);
        most = most.max(start).max(ahead.most_ns - assumed);
    }
    if least > most {
        return DelayError::default();
    }
    DelayError { shift_ns: least.midpoint(most), bound_ns: least.abs_diff(most).div_ceil(2) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Compared at `at_ns`: ahead by `ahead_ns`, known to +- `error_ns`, with the truth somewhere inside.
    fn bounds(at_ns: u64, ahead_ns: i64, error_ns: i64, off_ns: i64) -> ClockBounds {
        let middle = ahead_ns + off_ns;
        let (least_ns, most_ns) = (middle - error_ns, middle + error_ns);
        ClockBounds { least_ns, most_ns, round_trip_ns: 0, at_ns }
    }

    proptest! {
        #[test]
        fn the_true_delay_is_within_the_bound(
            ahead in -1_000_000_000_000i64..1_000_000_000_000,
            receiver in -1_000_000_000_000i64..1_000_000_000_000,
            ppm in -200i64..200,
            errors in proptest::array::uniform3(1_000i64..200_000),
            offs in proptest::array::uniform3(-99i64..=99),
            paths in proptest::array::uniform3(proptest::option::of((1_000i64..200_000, -99i64..=99))),
            later_ns in 0u64..100_000_000,
            age_s in 0u64..100,
            at in 0.0f64..1.0,
        ) {
            let first_ns = 5_000 * SECOND;
            let (start_ns, length_ns) = (first_ns + age_s * SECOND, 4 * SECOND);
            let drift = |t_ns: u64| (t_ns - first_ns) as i64 * ppm / 1_000_000;
            let path = |t_ns: u64, (error, off): (i64, i64)| {
                bounds(t_ns, ahead + drift(t_ns), error, error * off / 100)
            };
            let pair = |t_ns: u64, which: usize| Pair {
                path: paths[which].map(|found| path(t_ns + later_ns, found)),
                sender: bounds(
                    t_ns,
                    ahead + receiver + drift(t_ns),
                    errors[which],
                    errors[which] * offs[which] / 100,
                ),
                receiver: bounds(t_ns, receiver, 0, 0),
            };
            let line = line(1, pair(first_ns, 0), pair(start_ns, 1));
            let end_ns = start_ns + length_ns;
            for (at_ns, which) in [(start_ns, 1), (end_ns, 2)] {
                let pair = pair(at_ns, which);
                let (both, control) = (pair.ahead(), pair.by_control());
                prop_assert_eq!(pair.contradiction_ns(), None);
                let truth = ahead + drift(both.at_ns);
                prop_assert!(both.least_ns <= truth && truth <= both.most_ns, "{both:?} {truth}");
                let apart_ns = (both.at_ns - control.at_ns) as i64 * 1_200 / 1_000_000;
                prop_assert!(both.error_ns() as i64 <= control.error_ns() as i64 + apart_ns);
            }
            let error = error(&[line], &[pair(end_ns, 2)]);
            // A datagram that was read in the trial, on the clocks of the two.
            let begin_ns = start_ns + later_ns;
            let read_ns = begin_ns + ((length_ns - later_ns) as f64 * at) as u64;
            let read_there = read_ns.wrapping_add_signed(receiver);
            let true_there = read_ns.wrapping_add_signed(ahead + receiver + drift(read_ns));
            let off = true_there.wrapping_sub(line.there(read_there)) as i64;
            // Two nanoseconds of rounding.
            prop_assert!(off.abs_diff(error.shift_ns) <= error.bound_ns + 2, "{off} {error:?} {line:?}");
        }
    }

    #[test]
    fn a_path_that_contradicts_the_control_connections_is_named_and_not_used() {
        let control = bounds(9, 5_000, 1_000, 0);
        let of = |path| Pair { sender: control, receiver: bounds(9, 0, 0, 0), path: Some(path) };
        let narrower = of(bounds(9, 5_500, 100, 0));
        assert_eq!((narrower.ahead().error_ns(), narrower.contradiction_ns()), (100, None));
        let wider = of(bounds(9, 5_000, 90_000, 0));
        assert_eq!((wider.ahead(), wider.contradiction_ns()), (control, None));
        let other = of(bounds(9, 90_000, 100, 0));
        assert_eq!((other.ahead(), other.contradiction_ns()), (control, Some(85_000)));
    }

    #[test]
    fn a_jump_that_is_too_small_to_void_a_trial_is_within_the_bound() {
        let pair = |at_ns: u64, ahead_ns: i64| Pair {
            sender: bounds(at_ns, ahead_ns, 1_000, 0),
            receiver: bounds(at_ns, 0, 0, 0),
            path: None,
        };
        // Two clocks may come 4.8 ms apart in 4 s.
        let jump_ns = 4_000_000;
        let (before, after) = (pair(9 * SECOND, 0), pair(13 * SECOND, jump_ns));
        assert_eq!(after.sender.jump_since(before.sender), None);
        let error = error(&[line(1, before, before)], &[after]);
        for off_ns in [0, jump_ns] {
            assert!(off_ns.abs_diff(error.shift_ns) <= error.bound_ns, "{off_ns}: {error:?}");
        }
    }

    #[test]
    fn one_clock_has_no_error() {
        let own = bounds(9, 0, 0, 0);
        let pair = Pair { sender: own, receiver: own, path: None };
        let line = line(3, pair, pair);
        assert_eq!((line.margin_ns(), error(&[line], &[pair])), (0, DelayError::default()));
        assert_eq!(DelayError::default().with_uneven([7, 9]), DelayError::default());
        let known = DelayError { shift_ns: 5, bound_ns: 100 };
        assert_eq!(known.with_uneven([7, 9]), DelayError { shift_ns: 5, bound_ns: 116 });
    }
}
