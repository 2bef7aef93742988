//! What a worker thread used: CPU time, the CPUs that it was on, the time that it waited.

use std::sync::atomic::Ordering::Relaxed;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::thread::{CpuTime, RunAndWait};
use crate::engine::{clock, thread};
use crate::tally::Tally;

/// A worker thread and its CPU time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUsage {
    /// Thread id.
    pub tid: i32,
    /// CPU that was requested for it.
    pub asked_cpu: Option<u32>,
    /// CPUs it was seen on.
    pub seen_cpus: Vec<u32>,
    /// User CPU time. **Caveat** by the kernel's tick where it has no `CONFIG_VIRT_CPU_ACCOUNTING_GEN`.
    pub cpu_user_s: f64,
    /// System CPU time. **Caveat** as above.
    pub cpu_system_s: f64,
}

impl ThreadUsage {
    /// User and system CPU time.
    pub fn cpu_s(&self) -> f64 {
        self.cpu_user_s + self.cpu_system_s
    }
}

/// Measures the usage of the calling worker.
#[derive(Debug)]
pub(crate) struct UsageMeter {
    asked_cpu: Option<u32>,
    start_ns: u64,
    cpu: CpuTime,
    schedstat: RunAndWait,
    /// Time run and time waited for a CPU, at the start. **Unit** ns.
    run_and_wait: Option<(u64, u64)>,
    seen_cpus: Vec<u32>,
}

impl UsageMeter {
    /// Begins now, on the worker's thread.
    pub(crate) fn new(asked_cpu: Option<u32>) -> Self {
        let schedstat = RunAndWait::of_this_thread();
        Self {
            asked_cpu,
            start_ns: clock::now_ns(),
            cpu: thread::cpu_time(),
            run_and_wait: schedstat.read_ns(),
            schedstat,
            // Room for more CPUs than a thread visits; further ones are not noted.
            seen_cpus: Vec::with_capacity(64),
        }
    }

    /// Counts from here on: what was before the start does not belong to it.
    pub(crate) fn restart(&mut self) {
        self.start_ns = clock::now_ns();
        self.cpu = thread::cpu_time();
        self.run_and_wait = self.schedstat.read_ns();
    }

    /// Notes that something was sent or received at this instant.
    #[inline]
    pub(crate) fn progress(&mut self, tally: &Tally, now_ns: u64) {
        tally.begin(now_ns);
        tally.last_ns.set(now_ns);
        self.note_cpu(tally);
    }

    /// Notes the CPU that the thread is on.
    #[inline]
    pub(crate) fn note_cpu(&mut self, tally: &Tally) {
        let cpu = thread::cpu();
        if tally.cpu.load(Relaxed) == cpu {
            return;
        }
        tally.cpu.store(cpu, Relaxed);
        let has_room = self.seen_cpus.len() < self.seen_cpus.capacity();
        if has_room && !self.seen_cpus.contains(&cpu) {
            self.seen_cpus.push(cpu);
        }
    }

    /// The thread's usage until now, and how long it did not run: first neither running nor waiting for a CPU since its first
    /// datagram, request or byte, then waiting for a CPU that another task used. `None` where the kernel does not record it.
    /// **Unit** s.
    pub(crate) fn end(self, tally: &Tally) -> (ThreadUsage, Option<f64>, Option<f64>) {
        let used = thread::cpu_time().since(self.cpu);
        let before_first = tally.first_ns.get().saturating_sub(self.start_ns);
        let waited = self.run_and_wait.zip(self.schedstat.read_ns()).map(|(before, after)| {
            let runqueue = after.1 - before.1;
            let blocked = (clock::now_ns() - self.start_ns)
                .saturating_sub(after.0 - before.0 + runqueue)
                .saturating_sub(before_first);
            (blocked as f64 / 1e9, runqueue as f64 / 1e9)
        });
        let (blocked_s, runqueue_s) = waited.unzip();
        let usage = ThreadUsage {
            tid: thread::id(),
            asked_cpu: self.asked_cpu,
            seen_cpus: self.seen_cpus,
            cpu_user_s: used.user_ns as f64 / 1e9,
            cpu_system_s: used.system_ns as f64 / 1e9,
        };
        (usage, blocked_s, runqueue_s)
    }
}
