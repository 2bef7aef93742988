//! Counters of one worker that the reporter may read at any time.
//!
//! One thread writes, so an addition is a plain load and store, without a locked instruction. Each tally has its own
//! cache lines, and the reporter reads it a few times a second.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owning thread may.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    /// Sets; only the owning thread may.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    /// Reads.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    /// Attempted (sender).
    pub offered: Counter,
    /// Sent or delivered.
    pub packets: Counter,
    /// Payload bytes of these.
    pub bytes: Counter,
    /// System calls.
    pub calls: Counter,
    /// Blocked on the send buffer (sender). **Unit** ns.
    pub blocked_ns: Counter,
    /// Instant of the first datagram; 0 = none yet.
    pub first_ns: Counter,
    /// Instant of the last datagram.
    pub last_ns: Counter,
    /// CPU the worker is on.
    pub cpu: AtomicU32,
    /// Thread id; 0 = not running yet.
    pub tid: AtomicI32,
    /// A thread was made for this worker.
    pub started: AtomicBool,
    /// The worker has left its loop.
    pub done: AtomicBool,
}

impl Tally {
    /// Records the CPU; true when it has changed.
    #[inline]
    pub fn saw_cpu(&self, cpu: u32) -> bool {
        if self.cpu.load(Relaxed) == cpu {
            return false;
        }
        self.cpu.store(cpu, Relaxed);
        true
    }
}

/// State shared by the workers and their conductor.
#[derive(Debug, Default)]
pub struct Shared {
    /// The workers shall stop.
    pub stop: AtomicBool,
    /// Instant at which to start; 0 = not known yet.
    pub start_ns: AtomicU64,
    /// One per worker.
    pub tallies: Vec<Tally>,
}

impl Shared {
    /// For this many workers.
    pub fn new(workers: usize) -> Self {
        let tallies = (0..workers).map(|_| Tally::default()).collect::<Vec<_>>();
        for tally in &tallies {
            tally.cpu.store(u32::MAX, Relaxed);
        }
        Self { tallies, ..Self::default() }
    }

    /// Whether the workers shall stop.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Whether all workers that were started have left their loops.
    ///
    /// If a workload could not start all of its workers, some never leave because they never ran.
    pub fn all_done(&self) -> bool {
        self.tallies.iter().all(|tally| !tally.started.load(Relaxed) || tally.done.load(Relaxed))
    }

    /// A sum over the workers.
    pub fn sum(&self, of: impl Fn(&Tally) -> &Counter) -> u64 {
        self.tallies.iter().map(|tally| of(tally).get()).sum()
    }

    /// First datagram of all workers; `None` before it.
    pub fn first_ns(&self) -> Option<u64> {
        self.tallies.iter().map(|tally| tally.first_ns.get()).filter(|t| *t > 0).min()
    }

    /// Last datagram of all workers so far; `None` before the first.
    pub fn last_ns(&self) -> Option<u64> {
        self.tallies.iter().map(|tally| tally.last_ns.get()).filter(|t| *t > 0).max()
    }

    /// First datagram to last of all workers. **Unit** ns.
    pub fn span_ns(&self) -> u64 {
        let last = self.last_ns().unwrap_or(0);
        last.saturating_sub(self.first_ns().unwrap_or(last))
    }
}
