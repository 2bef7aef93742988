//! A lock-free histogram of one worker's times: the reporter may read it while the worker records.
//!
//! The buckets are those of [`Histogram`], so that [`LiveTimes::histogram`] loses nothing. Each is a [`Counter`]: one
//! thread writes, any thread may read.

use std::sync::{Mutex, PoisonError};

use rxpath_stats::Histogram;
use rxpath_stats::buckets::{bucket, first_of};

use crate::quantiles::merged;
use crate::tally::Counter;

/// Longest time with its own bucket: one minute, as in [`Histogram::of_times`].
const LONGEST_NS: u64 = 60_000_000_000;

/// A histogram with one writer. **Cost** 216 KiB; recording is a load and a store.
#[derive(Debug)]
pub struct LiveTimes {
    counts: Box<[Counter]>,
    clipped: Counter,
}

impl Default for LiveTimes {
    /// An empty one; all its memory is taken here.
    fn default() -> Self {
        let counts = (0..=bucket(LONGEST_NS)).map(|_| Counter::default()).collect();
        Self { counts, clipped: Counter::default() }
    }
}

impl LiveTimes {
    /// Records a time; only the owning thread may. Over a minute it counts as clipped.
    #[inline]
    pub fn record(&self, ns: u64) {
        match self.counts.get(bucket(ns)) {
            Some(count) if ns <= LONGEST_NS => count.add(1),
            _ => self.clipped.add(1),
        }
    }

    /// What was recorded so far.
    pub fn histogram(&self) -> Histogram {
        self.since(&[]).0
    }

    /// The times recorded since the reading `before`, and this reading.
    ///
    /// **Cost** some 30 us.
    pub fn since(&self, before: &[u64]) -> (Histogram, Vec<u64>) {
        let mut histogram = Histogram::of_times();
        let clipped = [&self.clipped];
        let now: Vec<u64> = self.counts.iter().chain(clipped).map(Counter::get).collect();
        for (at, count) in now.iter().enumerate() {
            let new = count - before.get(at).copied().unwrap_or(0);
            if new > 0 {
                let ns = if at < self.counts.len() { first_of(at) } else { u64::MAX };
                histogram.record_n(ns, new);
            }
        }
        (histogram, now)
    }
}

/// Reads the times of all threads again and again: what is new since the reading before.
#[derive(Debug, Default)]
pub(crate) struct NewTimes(Mutex<Vec<Vec<u64>>>);

impl NewTimes {
    /// The times of these threads since the last call. **Cost** some 30 us a thread.
    pub(crate) fn read<'a>(&self, live: impl Iterator<Item = &'a LiveTimes>) -> Histogram {
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        merged(live.enumerate().map(|(at, live)| {
            if before.len() <= at {
                before.push(Vec::new());
            }
            let (times, now) = live.since(&before[at]);
            before[at] = now;
            times
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_histogram_of_the_same_times(
            times in proptest::collection::vec(0u64..LONGEST_NS, 0..100), small in 0u64..5000,
        ) {
            let live = LiveTimes::default();
            let mut want = Histogram::of_times();
            for ns in times.into_iter().chain([small]) {
                live.record(ns);
                want.record(ns);
            }
            let got = live.histogram();
            prop_assert_eq!(got.count(), want.count());
            for q in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(got.quantile_ns(q), want.quantile_ns(q), "{}", q);
            }
        }
    }

    #[test]
    fn new_times_are_those_of_all_threads_since_the_last_reading() {
        let threads = [LiveTimes::default(), LiveTimes::default()];
        let new = NewTimes::default();
        threads[0].record(100);
        threads[1].record(200);
        assert_eq!(new.read(threads.iter()).count(), 2);
        assert_eq!(new.read(threads.iter()).count(), 0);
        threads[1].record(300);
        let third = new.read(threads.iter());
        assert_eq!((third.count(), third.max_ns()), (1, 300));
    }

    #[test]
    fn a_reading_holds_what_is_new_and_long_times_are_clipped() {
        let live = LiveTimes::default();
        live.record(100);
        let (first, before) = live.since(&[]);
        live.record(u64::MAX);
        live.record(200);
        let (second, _) = live.since(&before);
        assert_eq!((first.count(), second.count(), second.clipped()), (1, 2, 1));
        assert_eq!(second.quantile_ns(0.5), 200);
    }
}
