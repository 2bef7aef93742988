//! One CPU: its current work, the work that waits below it, and the account of its time.
//!
//! Three levels, each above the next: hard interrupts, softirqs, threads. Interrupted work resumes where it was.
//! Every nanosecond belongs to exactly one account.

use std::collections::VecDeque;

use rand::RngExt;
use schemars::JsonSchema;
use serde::Serialize;

use super::parameters::Parameters;
use super::slots::NEVER;
use super::softirq::{By, Pass};
use super::stage::Fifo;
use super::thread::Role;
use super::world::World;

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
    since: u64,
    /// Since the start.
    pub used: CpuSplit,
    irqs: VecDeque<Irq>,
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
            ksoftirqd: super::thread::Thread::ksoftirqd_of(p, cpu),
            ..Self::default()
        }
    }

    /// Whether an interrupt is being handled: what runs below it must wait.
    #[inline]
    pub(super) fn in_interrupt(&self) -> bool {
        !self.irqs.is_empty()
    }
}

impl World<'_> {
    #[inline]
    pub(super) fn cpu_event(&mut self, c: usize) {
        match self.cpus[c].level {
            Level::Soft => self.soft_step(c),
            Level::Thread => self.thread_event(c),
            Level::Irq => self.irq_done(c),
            Level::Idle => self.slots.set(c, NEVER),
        }
    }

    /// Books the time since the last booking.
    pub(super) fn account(&mut self, c: usize) {
        let threads = &self.threads;
        let cpu = &mut self.cpus[c];
        let spent = self.now - cpu.since;
        cpu.since = self.now;
        let account = match cpu.level {
            Level::Irq => &mut cpu.used.irq_ns,
            Level::Soft => match cpu.pass.as_ref().map(|pass| pass.by) {
                Some(By::Ksoftirqd) => &mut cpu.used.ksoftirqd_ns,
                Some(By::Thread) => &mut cpu.used.napi_ns,
                _ => &mut cpu.used.softirq_ns,
            },
            Level::Thread => match cpu.current.map(|thread| threads[thread].role) {
                Some(Role::Reader { .. }) => &mut cpu.used.reader_ns,
                Some(Role::Ksoftirqd) => &mut cpu.used.ksoftirqd_ns,
                Some(Role::Napi(_)) => &mut cpu.used.napi_ns,
                _ => &mut cpu.used.background_ns,
            },
            Level::Idle => &mut cpu.used.idle_ns,
        };
        *account += spent;
    }

    /// Goes to `level`, with its next event at `at`.
    #[inline]
    pub(super) fn enter(&mut self, c: usize, level: Level, at: u64) {
        if self.cpus[c].level != level {
            self.account(c);
            self.cpus[c].level = level;
        }
        self.slots.set(c, at);
    }

    /// An interrupt reaches CPU `c`.
    pub(super) fn interrupt(&mut self, c: usize, irq: Irq) {
        self.cpus[c].irqs.push_back(irq);
        match self.cpus[c].level {
            Level::Irq => return,
            Level::Soft => self.cpus[c].soft_left = self.slots.get(c) - self.now,
            Level::Thread => self.save_step(c),
            Level::Idle => {}
        }
        let cost = self.cost(irq);
        self.enter(c, Level::Irq, self.now + cost);
    }

    fn cost(&mut self, irq: Irq) -> u64 {
        match irq {
            Irq::Queue(_) => self.p.irq_ns,
            Irq::Backlog if self.p.ipi_spread > 0.0 => {
                let part = 2.0 * self.random.random::<f64>() - 1.0;
                (self.p.ipi_ns as f64 * (1.0 + self.p.ipi_spread * part)).round() as u64
            }
            Irq::Backlog => self.p.ipi_ns,
            Irq::Tick => self.p.tick_ns,
        }
    }

    fn irq_done(&mut self, c: usize) {
        let Some(irq) = self.cpus[c].irqs.pop_front() else { return };
        match irq {
            Irq::Queue(queue) => self.napi_schedule(c, usize::from(queue)),
            Irq::Backlog => self.schedule_backlog(c),
            Irq::Tick => {}
        }
        if let Some(next) = self.cpus[c].irqs.front().copied() {
            let at = self.now + self.cost(next);
            self.slots.set(c, at);
            return;
        }
        if self.cpus[c].pass.is_some() {
            let at = self.now + self.cpus[c].soft_left;
            self.enter(c, Level::Soft, at);
        } else if !self.cpus[c].poll_list.is_empty() && self.may_run_inline(c) {
            self.begin_softirq(c, By::Interrupt);
        } else {
            self.back_to_threads(c);
        }
    }

    /// **Source** `irq_exit_rcu` and `invoke_softirq` (kernel/softirq.c): from 4.9 (4cd13c21b207) to 6.4 nothing runs
    /// while ksoftirqd is to run; 6.5 (d15121be7485) took that back.
    fn may_run_inline(&self, c: usize) -> bool {
        !self.p.holds_back || !self.threads[self.cpus[c].ksoftirqd].is_ready()
    }

    /// The timer tick of every CPU that has something to do.
    ///
    /// A tick without cost still ends in `irq_exit`, which runs what is pending.
    pub(super) fn ticks(&mut self) {
        for c in 0..self.cpus.len() {
            let cpu = &self.cpus[c];
            let waits = !cpu.poll_list.is_empty() && cpu.pass.is_none();
            let costs = self.p.tick_ns > 0 && cpu.level != Level::Idle;
            if waits || costs {
                self.interrupt(c, Irq::Tick);
            }
        }
    }
}
