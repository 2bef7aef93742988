//! Which thread gets a CPU: a simplified EEVDF (a reader against competitors), and the O(1) scheduler of the published
//! experiments.
//!
//! **Source** kernel/sched/fair.c of 6.6 and later (`pick_eevdf`, `update_deadline`): of the threads whose virtual
//! runtime is not above the weighted mean, the one with the earliest virtual deadline. kernel/sched.c of 2.6.8 to
//! 2.6.22 (`task_timeslice`, `effective_prio`, `TASK_INTERACTIVE`): active and expired arrays, a bonus for sleepers.
//! **Caveat** lag is not kept over sleep, ticks do not round slices, and there are no groups: sched_autogroup and
//! cgroups come first on a real host.

use super::World;
use crate::kinds::share::slice_ms;
use crate::sim::cpu::Level;
use crate::sim::parameters::SchedulerKind;
use crate::sim::scheduler::MOST_SLEEP;
use crate::sim::slots::NEVER;
use crate::sim::thread::{State, Thread};

impl World<'_> {
    /// Picks a thread for CPU `c` and runs it.
    pub(super) fn schedule(&mut self, c: usize) {
        self.account(c);
        if let Some(t) = self.cpus[c].current.take() {
            self.charge(t);
        }
        self.cpus[c].need_resched = false;
        self.cpus[c].step_end = NEVER;
        let Some(t) = self.pick(c) else {
            self.cpus[c].level = Level::Idle;
            self.slots.set(c, NEVER);
            return;
        };
        let now = self.now;
        self.threads[t].book(now, false);
        let slice = self.slice_of(t);
        self.threads[t].fair.since = now;
        let cpu = &mut self.cpus[c];
        cpu.current = Some(t);
        cpu.slice_end = now + slice.max(1);
        self.go_on(c, t);
    }

    fn slice_of(&self, t: usize) -> u64 {
        let fair = &self.threads[t].fair;
        match self.p.scheduler {
            _ if self.threads[t].realtime => NEVER / 2,
            SchedulerKind::O1 => fair.slice_left,
            // Rounded up: a slice that leaves a part of a virtual ns would never be used up.
            SchedulerKind::Eevdf => {
                let left = fair.deadline.saturating_sub(fair.runtime) + 1;
                (left * fair.weight).div_ceil(1024)
            }
        }
    }

    /// The thread gives up the CPU, willingly or not: its time is booked and its slice used.
    fn charge(&mut self, t: usize) {
        let (now, slice) = (self.now, self.p.slice);
        let thread = &mut self.threads[t];
        thread.book(now, true);
        let nice = thread.nice;
        let fair = &mut thread.fair;
        let ran = now - fair.since;
        fair.since = now;
        fair.turn = now;
        fair.runtime += fair.virtual_time(ran);
        if fair.runtime >= fair.deadline {
            fair.deadline = fair.runtime + fair.virtual_time(slice);
        }
        // A run costs less of the credit of a thread that has much (`schedule`, 2.6).
        fair.sleep = fair.sleep.saturating_sub(ran / fair.bonus().max(1));
        fair.slice_left = fair.slice_left.saturating_sub(ran);
        if fair.slice_left == 0 {
            fair.slice_left = slice_ms(nice) * 1_000_000;
            fair.active = self.p.interactive && fair.interactive(nice);
        }
    }

    /// The current thread of `c` sleeps.
    pub(super) fn block_current(&mut self, c: usize) {
        self.account(c);
        if let Some(t) = self.cpus[c].current.take() {
            self.charge(t);
            self.threads[t].state = State::Blocked;
            self.threads[t].fair.asleep_since = self.now;
        }
        self.cpus[c].step_end = NEVER;
        self.back_to_threads(c);
    }

    /// Thread `t` wants its CPU.
    pub(super) fn runnable(&mut self, t: usize) {
        if self.threads[t].state == State::Ready {
            return;
        }
        let (now, c) = (self.now, self.threads[t].cpu);
        let mean = self.mean_runtime(c);
        let slice = self.p.slice;
        let thread = &mut self.threads[t];
        thread.book(now, false);
        thread.state = State::Ready;
        let fair = &mut thread.fair;
        fair.runtime = mean.unwrap_or(fair.runtime).max(fair.runtime);
        fair.deadline = fair.runtime + fair.virtual_time(slice);
        fair.sleep = (fair.sleep + (now - fair.asleep_since)).min(MOST_SLEEP);
        fair.turn = now;
        if !thread.frozen {
            self.preempt_by(t);
        }
    }

    /// A ready thread takes the CPU at once, later, or waits for its turn.
    pub(super) fn preempt_by(&mut self, t: usize) {
        let c = self.threads[t].cpu;
        match (self.cpus[c].level, self.cpus[c].current) {
            (Level::Idle, _) => self.schedule(c),
            (_, None) => self.cpus[c].need_resched = true,
            (level, Some(current)) if self.better(t, current) => {
                if level == Level::Thread {
                    self.save_step(c);
                    self.schedule(c);
                } else {
                    self.cpus[c].need_resched = true;
                }
            }
            _ => {}
        }
    }

    fn better(&self, t: usize, current: usize) -> bool {
        let (new, old) = (&self.threads[t], &self.threads[current]);
        if new.realtime != old.realtime {
            return new.realtime;
        }
        match self.p.scheduler {
            SchedulerKind::Eevdf => {
                // What the current one has used of its slice is booked only when it leaves.
                let ran = old.fair.virtual_time(self.now - old.fair.since);
                let renewed = old.fair.runtime + ran >= old.fair.deadline;
                renewed || new.fair.deadline < old.fair.deadline
            }
            SchedulerKind::O1 => {
                let priority = |thread: &Thread| thread.fair.priority(thread.nice);
                new.fair.active && priority(new) < priority(old)
            }
        }
    }

    /// The weighted mean of the virtual runtimes of the ready threads.
    fn mean_runtime(&self, c: usize) -> Option<u64> {
        let (mut weights, mut sum) = (0_u128, 0_u128);
        for t in &self.cpus[c].threads {
            let thread = &self.threads[*t];
            if thread.is_ready() {
                let running = self.cpus[c].current == Some(*t);
                let ran = if running { self.now - thread.fair.since } else { 0 };
                let runtime = thread.fair.runtime + thread.fair.virtual_time(ran);
                weights += u128::from(thread.fair.weight);
                sum += u128::from(thread.fair.weight) * u128::from(runtime);
            }
        }
        (weights > 0).then(|| (sum / weights) as u64)
    }

    fn pick(&mut self, c: usize) -> Option<usize> {
        let ready = |t: &&usize| self.threads[**t].is_ready();
        let mut candidates = self.cpus[c].threads.iter().filter(ready);
        let first = *candidates.next()?;
        if candidates.next().is_none() {
            self.threads[first].fair.active = true;
            return Some(first);
        }
        if let Some(realtime) =
            self.cpus[c].threads.iter().filter(ready).find(|t| self.threads[**t].realtime)
        {
            return Some(*realtime);
        }
        match self.p.scheduler {
            SchedulerKind::Eevdf => self.pick_by_deadline(c),
            SchedulerKind::O1 => self.pick_by_array(c),
        }
    }

    fn pick_by_deadline(&self, c: usize) -> Option<usize> {
        let mean = self.mean_runtime(c)?;
        let ready = self.cpus[c].threads.iter().copied().filter(|t| self.threads[*t].is_ready());
        ready.min_by_key(|t| {
            let fair = &self.threads[*t].fair;
            let late = fair.runtime > mean;
            (late, if late { fair.runtime } else { fair.deadline }, fair.turn)
        })
    }

    fn pick_by_array(&mut self, c: usize) -> Option<usize> {
        let ready: Vec<usize> =
            self.cpus[c].threads.iter().copied().filter(|t| self.threads[*t].is_ready()).collect();
        if !ready.iter().any(|t| self.threads[*t].fair.active) {
            for t in self.cpus[c].threads.clone() {
                self.threads[t].fair.active = true;
            }
        }
        ready.into_iter().filter(|t| self.threads[*t].fair.active).min_by_key(|t| {
            let thread = &self.threads[*t];
            (thread.fair.priority(thread.nice), thread.fair.turn)
        })
    }
}
