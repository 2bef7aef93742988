//! An absolute schedule: send k is due at a fixed instant, whatever happened before.
//!
//! Send k of thread i of T is due at `start + (k T + i) N / rate` (N datagrams a send). The step is kept as
//! whole nanoseconds and a remainder, so that rounding never adds up.

use crate::engine::clock;
use crate::udp::load::options::Pacing;

/// Sends closer together than this are waited for by spinning: sleeping and waking takes tens of us.
const SPIN_BELOW_NS: u64 = 100_000;
/// A sleep ends this much before its instant; the rest is spun.
const WAKE_EARLY_NS: u64 = 60_000;
const SECOND_NS: u128 = 1_000_000_000;

/// Which sends belong to this thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) rate_pps: u64,
    pub(super) segments: u64,
    pub(super) thread: u64,
    pub(super) threads: u64,
}

/// The schedule of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    start_ns: u64,
    share: Share,
    next_ns: u64,
    /// Numerator of the fraction of a ns in `next_ns`, over `rate`.
    fraction: u64,
    step_ns: u64,
    step_fraction: u64,
    spin_only: bool,
    wake_early_ns: u64,
}

impl Pace {
    pub(super) fn new(start_ns: u64, share: Share, pacing: Pacing) -> Self {
        let rate = u128::from(share.rate_pps.max(1));
        let step = SECOND_NS * u128::from(share.segments * share.threads);
        let first = SECOND_NS * u128::from(share.segments * share.thread);
        let step_ns = (step / rate) as u64;
        Self {
            start_ns,
            share,
            next_ns: start_ns + (first / rate) as u64,
            fraction: (first % rate) as u64,
            step_ns,
            step_fraction: (step % rate) as u64,
            spin_only: spins(pacing, step_ns),
            wake_early_ns: if pacing == Pacing::Sleep { 0 } else { WAKE_EARLY_NS },
        }
    }

    /// When the next send is due.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Moves on by one send.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next_ns += self.step_ns;
        self.fraction += self.step_fraction;
        if self.fraction >= self.share.rate_pps {
            self.fraction -= self.share.rate_pps;
            self.next_ns += 1;
        }
    }

    /// Waits towards the next send; it may return early.
    #[inline]
    pub(super) fn wait(&self, now_ns: u64, end_ns: u64) {
        let until = self.next_ns.min(end_ns);
        if !self.spin_only && until.saturating_sub(now_ns) > self.wake_early_ns {
            clock::sleep_until(until - self.wake_early_ns);
        } else {
            std::hint::spin_loop();
        }
    }

    /// Sends of this thread that are due before `t_ns`.
    pub(super) fn due_before(&self, t_ns: u64) -> u64 {
        let span = u128::from(t_ns.saturating_sub(self.start_ns));
        let Share { rate_pps, segments, thread, threads } = self.share;
        let first = SECOND_NS * u128::from(segments * thread);
        let step = SECOND_NS * u128::from(segments * threads);
        let reached = span * u128::from(rate_pps.max(1));
        // Send k is due before t when first + k step < reached.
        if reached > first { ((reached - first - 1) / step) as u64 + 1 } else { 0 }
    }
}

fn spins(pacing: Pacing, step_ns: u64) -> bool {
    match pacing {
        Pacing::Spin => true,
        Pacing::Sleep => false,
        Pacing::Auto => step_ns < SPIN_BELOW_NS,
    }
}

/// What the settings say about it.
pub(super) fn describe(pacing: Pacing, share: Share) -> String {
    let step_ns = (SECOND_NS * u128::from(share.segments * share.threads)
        / u128::from(share.rate_pps.max(1))) as u64;
    if spins(pacing, step_ns) {
        return format!("spin ({step_ns} ns between the sends of a thread)");
    }
    if pacing == Pacing::Sleep {
        return format!("sleep ({step_ns} ns between the sends of a thread)");
    }
    format!(
        "sleep, and spin the last {WAKE_EARLY_NS} ns ({step_ns} ns between the sends of a thread)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_schedule_never_drifts(
            rate_pps in 1u64..5_000_000, segments in 1u64..64, threads in 1u64..9, k in 0u64..3000,
        ) {
            for thread in 0..threads {
                let share = Share { rate_pps, segments, thread, threads };
                let mut pace = Pace::new(1_000, share, Pacing::Auto);
                for _ in 0..k {
                    pace.advance();
                }
                let exact = SECOND_NS * u128::from((k * threads + thread) * segments)
                    / u128::from(rate_pps);
                prop_assert_eq!(u128::from(pace.next_ns()), 1_000 + exact);
            }
        }

        #[test]
        fn due_counts_what_the_schedule_lists(
            rate_pps in 1u64..3_000_000, segments in 1u64..64, thread in 0u64..4, span in 0u64..2_000_000,
        ) {
            let share = Share { rate_pps, segments, thread, threads: 4 };
            let mut pace = Pace::new(0, share, Pacing::Spin);
            let due = pace.due_before(span);
            let mut listed = 0;
            // Instants are rounded down to whole ns, which changes nothing before a whole one.
            while pace.next_ns() < span {
                listed += 1;
                pace.advance();
            }
            prop_assert_eq!(due, listed);
        }
    }

    #[test]
    fn a_second_at_100k_is_100k() {
        let share = Share { rate_pps: 100_000, segments: 1, thread: 0, threads: 1 };
        let pace = Pace::new(5, share, Pacing::Auto);
        assert_eq!(pace.due_before(5 + 1_000_000_000), 100_000);
        assert!(pace.spin_only);
    }
}
