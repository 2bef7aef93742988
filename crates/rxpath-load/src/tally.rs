//! Counters of one worker that the reporter may read at any time.
//!
//! One thread writes, so an addition is a plain load and store, without a locked instruction. Each tally has its own
//! cache lines, and the reporter reads it a few times a second.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::engine::thread::{CpuTime, process_cpu_time};

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

/// The counters of one worker. A protocol leaves those that mean nothing to it at 0.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    /// Datagrams or requests that a sender attempted.
    pub offered: Counter,
    /// Datagrams sent or delivered; requests answered; transactions completed.
    pub units: Counter,
    /// Payload bytes that the worker read.
    pub received_bytes: Counter,
    /// Payload bytes that the kernel took from the worker.
    pub sent_bytes: Counter,
    /// System calls.
    pub calls: Counter,
    /// Blocked on the send buffer (sender). **Unit** ns.
    pub blocked_ns: Counter,
    /// Connections open now.
    pub connections: Counter,
    /// Connections accepted.
    pub accepted: Counter,
    /// Datagrams that an XDP program dropped for the worker.
    pub dropped: Counter,
    /// Requests refused.
    pub refused: Counter,
    /// Instant of the first datagram, request or byte; 0 = none yet.
    pub first_ns: Counter,
    /// Instant of the last one.
    pub last_ns: Counter,
    /// CPU the worker is on.
    pub cpu: AtomicU32,
    /// Thread id; 0 = not running yet.
    pub tid: AtomicI32,
    /// A thread was made for this worker.
    pub started: AtomicBool,
    /// The worker has left its loop.
    pub done: AtomicBool,
    source: OnceLock<Source>,
}

/// Brings the counters of a worker up to date that are kept elsewhere.
struct Source(Box<dyn Fn(&Tally) + Send + Sync>);

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

impl Tally {
    /// Each reading of the counters first sets them by `source`: the worker can't while it is inside of a call that does
    /// all the work.
    pub fn set_source(&self, source: impl Fn(&Self) + Send + Sync + 'static) {
        let _ = self.source.set(Source(Box::new(source)));
    }

    /// Records the instant of the first datagram, request or byte.
    #[inline]
    pub fn begin(&self, now_ns: u64) {
        if self.first_ns.get() == 0 {
            self.first_ns.set(now_ns);
        }
    }
}

/// State that a workload shares with its workers.
#[derive(Debug, Default)]
pub struct Shared {
    /// The workers shall stop.
    stop: AtomicBool,
    /// Instant at which to start; 0 = not known yet.
    pub start_ns: AtomicU64,
    /// When the first worker began; 0 = none has.
    began_ns: AtomicU64,
    /// One per worker.
    pub tallies: Vec<Tally>,
    /// CPU time of the process from which on the result counts.
    cpu_before: Mutex<CpuTime>,
}

impl Shared {
    /// For this many workers.
    pub fn new(workers: usize) -> Self {
        let tally = |_| Tally { cpu: AtomicU32::new(u32::MAX), ..Tally::default() };
        let tallies = (0..workers).map(tally).collect();
        Self { tallies, cpu_before: Mutex::new(process_cpu_time()), ..Self::default() }
    }

    /// Counts the CPU time of the process from here on.
    pub fn count_cpu_time(&self) {
        *self.cpu_before.lock().unwrap_or_else(PoisonError::into_inner) = process_cpu_time();
    }

    /// CPU time of the process since then.
    pub fn cpu_time(&self) -> CpuTime {
        let before = *self.cpu_before.lock().unwrap_or_else(PoisonError::into_inner);
        process_cpu_time().since(before)
    }

    /// Starts the workers at this instant of `CLOCK_MONOTONIC`; a past one means now.
    pub fn start(&self, t_ns: u64) {
        self.count_cpu_time();
        self.start_ns.store(t_ns.max(1), SeqCst);
    }

    /// A worker begins now.
    pub fn begin(&self, now_ns: u64) {
        // Only the first one changes it.
        let _ = self.began_ns.compare_exchange(0, now_ns, SeqCst, SeqCst);
    }

    /// When the first worker began; `None` before it.
    pub fn began_ns(&self) -> Option<u64> {
        Some(self.began_ns.load(SeqCst)).filter(|t| *t > 0)
    }

    /// Tells the workers to stop.
    pub fn stop(&self) {
        self.stop.store(true, SeqCst);
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

    /// Ids of the worker threads.
    pub fn tids(&self) -> Vec<i32> {
        self.tallies.iter().map(|tally| tally.tid.load(Relaxed)).collect()
    }

    /// CPU each worker is on now.
    pub fn cpus(&self) -> Vec<u32> {
        self.tallies.iter().map(|tally| tally.cpu.load(Relaxed)).collect()
    }

    /// All counters, brought up to date.
    fn current(&self) -> impl Iterator<Item = &Tally> {
        self.tallies.iter().inspect(|tally| {
            if let Some(Source(update)) = tally.source.get() {
                update(tally);
            }
        })
    }

    /// A counter of each worker.
    pub fn each(&self, of: impl Fn(&Tally) -> &Counter) -> Vec<u64> {
        self.current().map(|tally| of(tally).get()).collect()
    }

    /// A sum over the workers.
    pub fn sum(&self, of: impl Fn(&Tally) -> &Counter) -> u64 {
        self.current().map(|tally| of(tally).get()).sum()
    }

    /// First datagram, request or byte of all workers; `None` before it.
    pub fn first_ns(&self) -> Option<u64> {
        self.current().map(|tally| tally.first_ns.get()).filter(|t| *t > 0).min()
    }

    /// Last one of all workers so far; `None` before the first.
    pub fn last_ns(&self) -> Option<u64> {
        self.current().map(|tally| tally.last_ns.get()).filter(|t| *t > 0).max()
    }

    /// First one to last of all workers.
    pub fn span_s(&self) -> f64 {
        let last = self.last_ns().unwrap_or(0);
        last.saturating_sub(self.first_ns().unwrap_or(last)) as f64 / 1e9
    }
}
