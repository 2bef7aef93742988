//! Counters of the worker threads that the conductor may read at any time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::thread::CpuTime;
use crate::engine::{clock, thread};
use crate::tally::{Counter, Shared, Tally};
use crate::tcp::result::{Interval, ThreadResult};

/// What one worker moved; it alone writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Lane {
    pub(crate) delivered_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) transactions: Counter,
    /// Open now.
    pub(crate) connections: Counter,
}

/// The lanes of all workers with what the conductor steers them by.
#[derive(Debug)]
pub(crate) struct Lanes {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lanes: Vec<Lane>,
}

impl Lanes {
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        let lanes = (0..workers).map(|_| Lane::default()).collect();
        Arc::new(Self { shared: Arc::new(Shared::new(workers)), lanes })
    }

    pub(crate) fn of(&self, index: usize) -> (&Lane, &Tally) {
        (&self.lanes[index], &self.shared.tallies[index])
    }

    pub(crate) fn sum(&self, of: impl Fn(&Lane) -> &Counter) -> u64 {
        self.lanes.iter().map(|lane| of(lane).get()).sum()
    }

    /// Counters of this moment, without what sockets say.
    pub(crate) fn interval(&self) -> Interval {
        let each =
            |of: fn(&Lane) -> &Counter| self.lanes.iter().map(|lane| of(lane).get()).collect();
        Interval {
            t_ns: clock::now_ns(),
            delivered_bytes: self.sum(|lane| &lane.delivered_bytes),
            sent_bytes: self.sum(|lane| &lane.sent_bytes),
            transactions_total: self.sum(|lane| &lane.transactions),
            connections_count: self.sum(|lane| &lane.connections),
            thread_delivered_bytes: each(|lane| &lane.delivered_bytes),
            thread_sent_bytes: each(|lane| &lane.sent_bytes),
            thread_transactions_total: each(|lane| &lane.transactions),
            thread_cpus: self.shared.tallies.iter().map(|t| t.cpu.load(Relaxed)).collect(),
            tcp: None,
        }
    }

    pub(crate) fn tids(&self) -> Vec<i32> {
        self.shared.tallies.iter().map(|tally| tally.tid.load(Relaxed)).collect()
    }
}

/// What a worker notes of itself: the time it used, the CPUs it was on.
#[derive(Debug)]
pub(crate) struct Diary {
    asked_cpu: Option<u32>,
    start_ns: u64,
    cpu: CpuTime,
    run_and_wait: Option<(u64, u64)>,
    seen_cpus: Vec<u32>,
}

impl Diary {
    /// Begins now, on the worker's thread.
    pub(crate) fn begin(asked_cpu: Option<u32>) -> Self {
        Self {
            asked_cpu,
            start_ns: clock::now_ns(),
            cpu: thread::cpu_time(),
            run_and_wait: thread::run_and_wait_ns(),
            // Room for more CPUs than a thread visits; further ones are not noted.
            seen_cpus: Vec::with_capacity(64),
        }
    }

    /// Counts from here on: what was before the start does not belong to it.
    pub(crate) fn restart(&mut self) {
        self.start_ns = clock::now_ns();
        self.cpu = thread::cpu_time();
        self.run_and_wait = thread::run_and_wait_ns();
    }

    /// Notes that something moved at this instant.
    #[inline]
    pub(crate) fn moved(&mut self, tally: &Tally, now_ns: u64) {
        if tally.first_ns.get() == 0 {
            tally.first_ns.set(now_ns);
        }
        tally.last_ns.set(now_ns);
        let cpu = thread::cpu();
        if tally.saw_cpu(cpu)
            && self.seen_cpus.len() < self.seen_cpus.capacity()
            && !self.seen_cpus.contains(&cpu)
        {
            self.seen_cpus.push(cpu);
        }
    }

    /// The worker's result, on its thread.
    pub(crate) fn end(self, lane: &Lane, tally: &Tally) -> ThreadResult {
        let used = thread::cpu_time().since(self.cpu);
        let first_ns = tally.first_ns.get().max(self.start_ns);
        let blocked_ns = self.run_and_wait.zip(thread::run_and_wait_ns()).map(|(before, after)| {
            let busy = (after.0 - before.0) + (after.1 - before.1);
            (clock::now_ns() - self.start_ns)
                .saturating_sub(busy)
                .saturating_sub(first_ns - self.start_ns)
        });
        ThreadResult {
            tid: thread::id(),
            asked_cpu: self.asked_cpu,
            seen_cpus: self.seen_cpus,
            delivered_bytes: lane.delivered_bytes.get(),
            sent_bytes: lane.sent_bytes.get(),
            transactions_total: lane.transactions.get(),
            calls_count: tally.calls.get(),
            cpu_user_s: used.user_ns as f64 / 1e9,
            cpu_system_s: used.system_ns as f64 / 1e9,
            blocked_s: blocked_ns.unwrap_or(0) as f64 / 1e9,
            longest_away_us: 0.0,
        }
    }
}
