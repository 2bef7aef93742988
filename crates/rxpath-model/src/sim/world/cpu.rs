//! What CPUs do: interrupts, and the booking of their time.
//!
//! Three levels, each above the next: hard interrupts, softirqs, threads. Interrupted work resumes where it was.
//! Every nanosecond belongs to exactly one account.

use rand::RngExt;

use super::World;
use crate::sim::cpu::{Irq, Level};
use crate::sim::slots::NEVER;
use crate::sim::softirq::By;
use crate::sim::thread::Role;

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
            self.enter(c, Level::Soft, self.now + self.cpus[c].soft_left);
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
