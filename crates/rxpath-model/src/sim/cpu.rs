//! One CPU: its current work, the work that waits below it, and the account of its time.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;

use super::parameters::Parameters;
use super::slots::NEVER;
use super::softirq::Pass;
use super::stage::Fifo;
use super::thread::Thread;

/// What a CPU is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Level {
    #[default]
    Idle,
    Thread,
    Soft,
    Irq,
}

/// Why an interrupt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Irq {
    Queue(u16),
    /// From a CPU that filled this one's backlog.
    Backlog,
    Tick,
}

/// Where a CPU's time went in the measured window; the parts add up to the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CpuSplit {
    /// The CPU.
    pub cpu: u32,
    /// Hard interrupts.
    pub irq_ns: u64,
    /// Softirqs on top of whatever ran.
    pub softirq_ns: u64,
    /// ksoftirqd.
    pub ksoftirqd_ns: u64,
    /// NAPI threads.
    pub napi_ns: u64,
    /// Readers.
    pub reader_ns: u64,
    /// Background threads.
    pub background_ns: u64,
    /// Idle.
    pub idle_ns: u64,
}

impl CpuSplit {
    /// What went by since `before`, on the same CPU.
    #[must_use]
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            cpu: self.cpu,
            irq_ns: self.irq_ns - before.irq_ns,
            softirq_ns: self.softirq_ns - before.softirq_ns,
            ksoftirqd_ns: self.ksoftirqd_ns - before.ksoftirqd_ns,
            napi_ns: self.napi_ns - before.napi_ns,
            reader_ns: self.reader_ns - before.reader_ns,
            background_ns: self.background_ns - before.background_ns,
            idle_ns: self.idle_ns - before.idle_ns,
        }
    }
}

/// One CPU.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub level: Level,
    pub since: u64,
    /// Since the start.
    pub used: CpuSplit,
    pub irqs: VecDeque<Irq>,
    /// What the softirq's present step still needs, while an interrupt is above it.
    pub soft_left: u64,
    pub pass: Option<Pass>,
    /// NAPIs that wait for the next pass.
    pub poll_list: VecDeque<u16>,
    /// The list and the repoll list of passes, kept for their memory.
    pub list: VecDeque<u16>,
    pub repoll: VecDeque<u16>,
    /// CPUs whose backlogs this pass has woken.
    pub ipis: u64,
    pub backlog: Fifo,
    /// Packets of the backlog that its poll has taken over already.
    pub processing: u64,
    pub backlog_scheduled: bool,
    pub backlog_drops: u64,
    /// Threads that live here, the current one, and what it wants.
    pub threads: Vec<usize>,
    pub current: Option<usize>,
    pub need_resched: bool,
    pub slice_end: u64,
    /// When the current thread's present step ends, while it runs.
    pub step_end: u64,
    pub ksoftirqd: usize,
}

impl Cpu {
    pub(super) fn new(p: &Parameters, cpu: usize) -> Self {
        let places = if p.rps_cpus.is_empty() { 0 } else { p.backlog + p.weight };
        Self {
            used: CpuSplit { cpu: cpu as u32, ..CpuSplit::default() },
            irqs: VecDeque::with_capacity(8),
            poll_list: VecDeque::with_capacity(8),
            list: VecDeque::with_capacity(8),
            repoll: VecDeque::with_capacity(8),
            backlog: Fifo::new(places),
            slice_end: NEVER,
            step_end: NEVER,
            ksoftirqd: Thread::ksoftirqd_of(p, cpu),
            ..Self::default()
        }
    }

    /// Whether an interrupt is being handled: what runs below it must wait.
    #[inline]
    pub(super) fn in_interrupt(&self) -> bool {
        !self.irqs.is_empty()
    }
}
