//! An absolute schedule: send k is due at a fixed instant, whatever happened before.
//!
//! Send k of thread i of T is due at `start + (k T + i) N / rate` (N datagrams a send). The step is kept as
//! whole nanoseconds and a remainder, so that rounding never adds up.

use std::sync::atomic::Ordering::Relaxed;

use rxpath_bpf::live_frames::FrameSchedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::clock;
use crate::tally::Shared;

/// If sends are closer together than this, the wait spins: sleeping and waking takes tens of us.
const SPIN_BELOW_NS: u64 = 100_000;
/// A sleep ends this much before its instant; the rest is spun.
const WAKE_EARLY_NS: u64 = 60_000;
/// A sender prepares this long before its start. Long enough for some tens of senders on one CPU, which prepare one after another;
/// short enough that the caches still hold what a sender needs.
const PREPARE_EARLY_NS: u64 = 3_000_000;
const SECOND_NS: u128 = 1_000_000_000;

/// How a sender waits for the next instant of its schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum Pacing {
    /// Spins where sends are less than 100 us apart, otherwise sleeps and spins the last 60 us.
    #[default]
    Auto,
    /// Spins: exact, and takes the whole CPU.
    Spin,
    /// Sleeps: cheap, but late by the delay of the kernel's timers and wake-ups.
    Sleep,
}

/// Which sends belong to this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Datagrams, bytes, requests or transactions per second.
    pub(crate) rate_per_s: u64,
    /// How many of them a send takes.
    pub(crate) each: u64,
    pub(crate) thread: u64,
    pub(crate) threads: u64,
}

impl Share {
    /// That of one thread of so many.
    pub(crate) fn of(rate_per_s: u64, each: usize, (thread, threads): (usize, usize)) -> Self {
        Self { rate_per_s, each: each as u64, thread: thread as u64, threads: threads as u64 }
    }
}

/// The schedule of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    start_ns: u64,
    share: Share,
    /// When the next send is due.
    pub(crate) next_ns: u64,
    /// Numerator of the fraction of a ns in `next_ns`, over `rate`.
    fraction: u64,
    step_ns: u64,
    step_fraction: u64,
    /// Whether it never sleeps.
    pub(crate) spin_only: bool,
    wake_early_ns: u64,
}

impl Pace {
    pub(crate) fn new(start_ns: u64, share: Share, pacing: Pacing) -> Self {
        let rate = u128::from(share.rate_per_s.max(1));
        let step = SECOND_NS * u128::from(share.each * share.threads);
        let first = SECOND_NS * u128::from(share.each * share.thread);
        let step_ns = (step / rate) as u64;
        Self {
            start_ns,
            share,
            next_ns: start_ns + (first / rate) as u64,
            fraction: (first % rate) as u64,
            step_ns,
            step_fraction: (step % rate) as u64,
            spin_only: match pacing {
                Pacing::Spin => true,
                Pacing::Sleep => false,
                Pacing::Auto => step_ns < SPIN_BELOW_NS,
            },
            wake_early_ns: if pacing == Pacing::Sleep { 0 } else { WAKE_EARLY_NS },
        }
    }

    /// The same schedule from another start on: without the divisions of [`Pace::new`].
    pub(crate) fn starting_at(self, start_ns: u64) -> Self {
        Self { start_ns, next_ns: self.next_ns - self.start_ns + start_ns, ..self }
    }

    /// The schedule as numbers, for a sender that the kernel runs.
    pub(crate) fn schedule(&self) -> FrameSchedule {
        FrameSchedule {
            step_ns: self.step_ns,
            step_fraction: self.step_fraction,
            rate: self.share.rate_per_s,
            first_ns: self.next_ns - self.start_ns,
            first_fraction: self.fraction,
        }
    }

    /// Moves on by one send.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.next_ns += self.step_ns;
        self.fraction += self.step_fraction;
        if self.fraction >= self.share.rate_per_s {
            self.fraction -= self.share.rate_per_s;
            self.next_ns += 1;
        }
    }

    /// Waits towards the next send; it may return early.
    #[inline]
    pub(crate) fn wait(&self, now_ns: u64, end_ns: u64) {
        match self.nap_until(now_ns, end_ns) {
            Some(until) => clock::sleep_until(until),
            None => std::hint::spin_loop(),
        }
    }

    /// Until when it may sleep; `None`: the next send is so close that only spinning can meet it.
    #[inline]
    pub(crate) fn nap_until(&self, now_ns: u64, end_ns: u64) -> Option<u64> {
        let until = self.next_ns.min(end_ns).saturating_sub(self.wake_early_ns);
        (!self.spin_only && until > now_ns).then_some(until)
    }

    /// When this thread's send `k` is due.
    pub(crate) fn instant_of(&self, k: u64) -> u64 {
        let Share { rate_per_s, each, thread, threads } = self.share;
        let sends = u128::from(k) * u128::from(threads) + u128::from(thread);
        let behind = SECOND_NS * sends * u128::from(each) / u128::from(rate_per_s.max(1));
        self.start_ns.saturating_add(u64::try_from(behind).unwrap_or(u64::MAX))
    }

    /// Sends of this thread that are due before `t_ns`.
    pub(crate) fn due_before(&self, t_ns: u64) -> u64 {
        let span = u128::from(t_ns.saturating_sub(self.start_ns));
        let Share { rate_per_s, each, thread, threads } = self.share;
        let first = SECOND_NS * u128::from(each * thread);
        let step = SECOND_NS * u128::from(each * threads);
        let reached = span * u128::from(rate_per_s.max(1));
        // Send k is due before t when first + k step < reached.
        if reached > first { ((reached - first - 1) / step) as u64 + 1 } else { 0 }
    }
}

/// What the settings say about it.
pub(crate) fn describe(pacing: Pacing, share: Share) -> String {
    let Pace { step_ns, spin_only, wake_early_ns, .. } = Pace::new(0, share, pacing);
    let how = match wake_early_ns {
        _ if spin_only => "spin".to_owned(),
        0 => "sleep".to_owned(),
        _ => format!("sleep, then spin for the last {wake_early_ns} ns"),
    };
    format!("{how} ({step_ns} ns between a thread's sends)")
}

/// Waits until the start is known and there; `None` when the stop comes first.
///
/// `prepare` runs once, before the last sleep. Senders that share a CPU begin one after another, so each waits for all that those
/// before it do between that sleep and their first send.
pub(crate) fn wait_for_start(shared: &Shared, prepare: impl FnOnce()) -> Option<u64> {
    let mut prepare = Some(prepare);
    while !shared.is_stopped() {
        let start = shared.start_ns.load(Relaxed);
        let now = clock::now_ns();
        if start == 0 {
            clock::sleep_until(now + 200_000);
        } else if start > now + PREPARE_EARLY_NS {
            clock::sleep_until(start - PREPARE_EARLY_NS);
        } else if let Some(prepare) = prepare.take() {
            prepare();
        } else if start > now + 100_000 {
            clock::sleep_until(start - 80_000);
        } else if start > now {
            std::hint::spin_loop();
        } else {
            shared.begin(now);
            // A past instant means now: the schedule must not begin with a burst.
            return Some(if now - start > 1_000_000 { now } else { start });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_schedule_never_drifts(
            rate_per_s in 1u64..5_000_000, each in 1u64..64, threads in 1u64..9, k in 0u64..3000,
        ) {
            for thread in 0..threads {
                let share = Share { rate_per_s, each, thread, threads };
                let mut pace = Pace::new(1_000, share, Pacing::Auto);
                let moved = Pace::new(7, share, Pacing::Auto).starting_at(1_000);
                prop_assert_eq!(moved.schedule(), pace.schedule());
                prop_assert_eq!(moved.next_ns, pace.next_ns);
                prop_assert_eq!(moved.instant_of(k), pace.instant_of(k));
                let first = pace.schedule();
                prop_assert_eq!(first.first_ns + 1_000, pace.next_ns);
                for _ in 0..k {
                    pace.advance();
                }
                let exact = SECOND_NS * u128::from((k * threads + thread) * each)
                    / u128::from(rate_per_s);
                prop_assert_eq!(u128::from(pace.next_ns), 1_000 + exact);
                prop_assert_eq!(pace.instant_of(k), pace.next_ns);
            }
        }

        #[test]
        fn due_counts_what_the_schedule_lists(
            rate_per_s in 1u64..3_000_000, each in 1u64..64, thread in 0u64..4, span in 0u64..2_000_000,
        ) {
            let share = Share { rate_per_s, each, thread, threads: 4 };
            let mut pace = Pace::new(0, share, Pacing::Spin);
            let due = pace.due_before(span);
            let mut listed = 0;
            // Instants are rounded down to whole ns, which changes nothing before a whole one.
            while pace.next_ns < span {
                listed += 1;
                pace.advance();
            }
            prop_assert_eq!(due, listed);
        }
    }

    #[test]
    fn the_first_worker_that_passes_the_start_says_when() {
        let shared = Shared::new(2);
        let before = clock::now_ns();
        shared.start(before + 2_000_000);
        assert_eq!(shared.began_ns(), None);
        assert!(wait_for_start(&shared, || ()).is_some());
        let began = shared.began_ns().unwrap();
        assert!(began >= before + 2_000_000, "{began} {before}");
        assert!(wait_for_start(&shared, || ()).is_some());
        assert_eq!(shared.began_ns(), Some(began), "the second one does not change it");
        let stopped = Shared::new(1);
        stopped.stop();
        assert_eq!((wait_for_start(&stopped, || ()), stopped.began_ns()), (None, None));
    }

    /// From the call of `prepare` to the begin, for a start after `ahead_ns`. **Unit** ns.
    fn prepared_before_ns(ahead_ns: u64) -> u64 {
        let shared = Shared::new(1);
        shared.start(clock::now_ns() + ahead_ns);
        let mut prepared = Vec::new();
        assert!(wait_for_start(&shared, || prepared.push(clock::now_ns())).is_some());
        assert_eq!(prepared.len(), 1);
        shared.began_ns().unwrap() - prepared[0]
    }

    #[test]
    fn a_worker_prepares_shortly_before_its_start() {
        // A busy machine may let it wait beyond its start.
        let spans: Vec<u64> = (0..50).map(|_| prepared_before_ns(6_000_000)).collect();
        let in_time = |span: &u64| (80_000..=PREPARE_EARLY_NS).contains(span);
        assert!(spans.iter().any(in_time), "{spans:?}");
    }

    #[test]
    fn a_worker_prepares_for_a_start_that_is_now_too() {
        assert!(prepared_before_ns(0) < 1_000_000_000);
    }

    #[test]
    fn a_second_at_100k_is_100k() {
        let share = Share { rate_per_s: 100_000, each: 1, thread: 0, threads: 1 };
        let pace = Pace::new(5, share, Pacing::Auto);
        assert_eq!(pace.due_before(5 + 1_000_000_000), 100_000);
        assert!(pace.spin_only);
    }
}
