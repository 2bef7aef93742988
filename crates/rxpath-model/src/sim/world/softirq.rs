//! Rings, interrupts of queues, NAPI polls, softirq passes, RPS backlogs.
//!
//! **Source** `net_rx_action`, `process_backlog`, `enqueue_to_backlog` (net/core/dev.c) and `__do_softirq`
//! (kernel/softirq.c) of Linux 6.18: the list of NAPIs is spliced and each polled once; one that used its whole weight
//! waits on the repoll list; the budget and the jiffies limit are checked after each poll; after ten passes, two
//! milliseconds in jiffies or a request to reschedule, ksoftirqd continues.

use std::mem;

use super::World;
use crate::sim::cpu::{Irq, Level};
use crate::sim::slots::NEVER;
use crate::sim::softirq::{By, Napi, Pass};
use crate::sim::stage::Packet;

/// `MAX_SOFTIRQ_TIME`: msecs_to_jiffies(2).
const SOFTIRQ_NS: u64 = 2_000_000;

impl World<'_> {
    #[inline]
    pub(super) fn queue_at_ring(&mut self, q: usize, packet: Packet) {
        let now = self.now;
        let queue = &mut self.queues[q];
        if queue.ring.len() + queue.unfilled >= self.p.ring {
            queue.drops += 1;
            self.lost();
            return;
        }
        queue.ring.push(now, packet);
        if queue.napi != Napi::Scheduled {
            self.coalesce(q);
        }
    }

    /// A packet has come to a queue whose interrupt is enabled.
    fn coalesce(&mut self, q: usize) {
        let timer = self.p.rx_usecs * 1000;
        let queue = &mut self.queues[q];
        queue.frames += 1;
        let enough = self.p.rx_frames > 0 && queue.frames >= self.p.rx_frames;
        if enough || (timer == 0 && self.p.rx_frames <= 1) {
            self.coalesced(q);
        } else if queue.napi == Napi::Idle {
            queue.napi = Napi::Armed;
            if timer > 0 {
                self.slots.set(self.timers + q, self.now + timer);
            }
        }
    }

    /// The queue's interrupt is raised.
    pub(super) fn coalesced(&mut self, q: usize) {
        self.slots.set(self.timers + q, NEVER);
        let queue = &mut self.queues[q];
        queue.frames = 0;
        queue.napi = Napi::Scheduled;
        let cpu = queue.cpu;
        self.tally.figures.interrupts_total += 1;
        self.interrupt(cpu, Irq::Queue(q as u16));
    }

    pub(super) fn napi_schedule(&mut self, c: usize, q: usize) {
        match self.queues[q].thread {
            Some(thread) => self.runnable(thread),
            None => self.cpus[c].poll_list.push_back(q as u16),
        }
    }

    pub(super) fn schedule_backlog(&mut self, c: usize) {
        self.cpus[c].poll_list.push_back((self.queues.len() + c) as u16);
    }

    fn jiffies(&self) -> u64 {
        self.now / self.p.jiffy
    }

    /// `__do_softirq` begins.
    pub(super) fn begin_softirq(&mut self, c: usize, by: By) {
        self.account(c);
        let end = self.jiffies() + SOFTIRQ_NS.div_ceil(self.p.jiffy);
        self.cpus[c].pass = Some(Pass::new(by, self.p.restarts, end, 0));
        self.cpus[c].level = Level::Soft;
        self.begin_pass(c);
    }

    /// `net_rx_action` begins.
    fn begin_pass(&mut self, c: usize) {
        let limit = self.jiffies() + self.p.budget_ns.div_ceil(self.p.jiffy);
        let cpu = &mut self.cpus[c];
        mem::swap(&mut cpu.poll_list, &mut cpu.list);
        if let Some(pass) = &mut cpu.pass {
            pass.budget = self.p.budget as i64;
            pass.limit = limit;
        }
        self.tally.figures.passes_total += 1;
        self.next_poll(c);
    }

    fn next_poll(&mut self, c: usize) {
        match self.cpus[c].list.pop_front() {
            Some(napi) => self.begin_poll(c, napi),
            None => self.end_pass(c),
        }
    }

    fn begin_poll(&mut self, c: usize, napi: u16) {
        let (poll_ns, packet_ns) = if usize::from(napi) < self.queues.len() {
            (self.p.poll_ns, self.p.packet_ns)
        } else {
            (self.p.backlog_poll_ns, self.p.backlog_packet_ns)
        };
        let quota = self.waiting(c, usize::from(napi)).min(self.p.weight);
        if let Some(pass) = &mut self.cpus[c].pass {
            (pass.napi, pass.done, pass.quota, pass.packet_ns) = (napi, 0, quota, packet_ns);
        }
        let first = if quota > 0 { packet_ns } else { 0 };
        self.soft_until(c, poll_ns + first);
    }

    /// Packets that a poll can take now: all of a ring, and of a backlog the part that its poll has taken over.
    #[inline]
    fn waiting(&mut self, c: usize, napi: usize) -> u64 {
        if let Some(queue) = self.queues.get(napi) {
            return queue.ring.len();
        }
        let cpu = &mut self.cpus[c];
        if cpu.processing == 0 {
            cpu.processing = cpu.backlog.len();
        }
        cpu.processing
    }

    /// The present step of the softirq takes this long; from the end of an interrupt that a poll's end let in.
    #[inline]
    fn soft_until(&mut self, c: usize, takes: u64) {
        if self.cpus[c].in_interrupt() {
            self.cpus[c].soft_left = takes;
        } else {
            self.slots.set(c, self.now + takes);
        }
    }

    /// A packet of the poll is done, or an empty poll is.
    #[inline]
    pub(super) fn soft_step(&mut self, c: usize) {
        let Some(pass) = &mut self.cpus[c].pass else { return };
        let (napi, quota, packet_ns) = (usize::from(pass.napi), pass.quota, pass.packet_ns);
        let had = pass.done < quota;
        pass.done += u64::from(had);
        let mut more = pass.done < quota;
        let could = self.p.exhaustive && !more && pass.done < self.p.weight && had;
        if had && napi < self.queues.len() {
            self.ring_packet_done(c, napi);
        } else if had {
            self.backlog_packet_done(c);
        }
        if could {
            more = self.take_one_more(c, napi);
        }
        if more {
            self.soft_until(c, packet_ns);
        } else {
            self.end_poll(c);
        }
    }

    /// A driver looks at the next descriptor, not at the clock: what came meanwhile belongs to this poll.
    #[inline]
    fn take_one_more(&mut self, c: usize, napi: usize) -> bool {
        let waits = self.waiting(c, napi) > 0;
        if waits && let Some(pass) = &mut self.cpus[c].pass {
            pass.quota += 1;
        }
        waits
    }

    #[inline]
    fn ring_packet_done(&mut self, c: usize, q: usize) {
        let now = self.now;
        let queue = &mut self.queues[q];
        let Some(packet) = queue.ring.pop(now) else { return };
        queue.unfilled += u64::from(self.p.refill_by_poll);
        self.tally.ring_times.record(now - packet.arrived);
        if self.p.rps_cpus.is_empty() {
            self.queue_at_socket(packet, self.p.packet_ns);
        } else {
            self.queue_at_backlog(c, packet);
        }
    }

    fn queue_at_backlog(&mut self, from: usize, packet: Packet) {
        let to = usize::from(self.steering.of(packet.flow).cpu);
        let now = self.now;
        let cpu = &mut self.cpus[to];
        if cpu.backlog.len() - cpu.processing >= self.p.backlog {
            cpu.backlog_drops += 1;
            self.tally.figures.wasted_ns += self.p.packet_ns;
            self.lost();
            return;
        }
        cpu.backlog.push(now, packet);
        if cpu.backlog_scheduled {
            return;
        }
        cpu.backlog_scheduled = true;
        if to == from {
            self.schedule_backlog(to);
        } else {
            self.cpus[from].ipis |= 1 << to;
        }
    }

    fn backlog_packet_done(&mut self, c: usize) {
        let now = self.now;
        let cpu = &mut self.cpus[c];
        let Some(packet) = cpu.backlog.pop(now) else { return };
        cpu.processing -= 1;
        self.tally.backlog_times.record(now - packet.entered);
        self.queue_at_socket(packet, self.p.packet_ns + self.p.backlog_packet_ns);
    }

    fn end_poll(&mut self, c: usize) {
        let Some(pass) = &mut self.cpus[c].pass else { return };
        let (napi, done, by) = (pass.napi, pass.done, pass.by);
        pass.budget -= done as i64;
        let (budget, limit) = (pass.budget, pass.limit);
        let q = usize::from(napi);
        self.tally.polled(done);
        let full = done >= self.p.weight;
        if q < self.queues.len() {
            self.queues[q].unfilled = 0;
        }
        if !full {
            self.complete(c, q);
        }
        if by == By::Thread {
            self.send_ipis(c);
            self.leave_softirq(c, !full);
            return;
        }
        if full {
            self.cpus[c].repoll.push_back(napi);
        }
        if budget <= 0 || self.jiffies() >= limit {
            self.tally.figures.time_squeeze_total += 1;
            self.end_pass(c);
        } else {
            self.next_poll(c);
        }
    }

    /// `napi_complete_done`: the interrupt is enabled again; packets that came too late for the poll raise it.
    fn complete(&mut self, c: usize, q: usize) {
        if q < self.queues.len() {
            self.queues[q].napi = Napi::Idle;
            if self.queues[q].ring.len() > 0 {
                self.queues[q].frames = self.queues[q].ring.len() - 1;
                self.coalesce(q);
            }
        } else if self.cpus[c].backlog.len() > 0 {
            // What came behind the part that was processed: the kernel splices again within the poll.
            self.schedule_backlog(c);
        } else {
            self.cpus[c].backlog_scheduled = false;
        }
    }

    fn end_pass(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        // Left over, then newly scheduled, then to be polled again; mostly there are none but new ones.
        if !cpu.list.is_empty() || !cpu.repoll.is_empty() {
            let mut list = mem::take(&mut cpu.list);
            list.append(&mut cpu.poll_list);
            list.append(&mut cpu.repoll);
            cpu.list = mem::replace(&mut cpu.poll_list, list);
        }
        self.send_ipis(c);
        let jiffies = self.jiffies();
        let cpu = &mut self.cpus[c];
        if cpu.poll_list.is_empty() {
            self.end_softirq(c);
            return;
        }
        let Some(pass) = &mut cpu.pass else { return };
        pass.restarts -= 1;
        if jiffies < pass.end && !cpu.need_resched && pass.restarts > 0 {
            self.begin_pass(c);
            return;
        }
        let ksoftirqd = cpu.ksoftirqd;
        if pass.by == By::Interrupt {
            self.tally.figures.ksoftirqd_wakeups_total += 1;
            self.runnable(ksoftirqd);
        }
        self.end_softirq(c);
    }

    /// Other CPUs are interrupted for the packets that a pass or a poll put into their backlogs.
    fn send_ipis(&mut self, c: usize) {
        let mut ipis = mem::take(&mut self.cpus[c].ipis);
        while ipis != 0 {
            let to = ipis.trailing_zeros() as usize;
            ipis &= ipis - 1;
            self.tally.figures.ipis_total += 1;
            self.interrupt(to, Irq::Backlog);
        }
    }

    fn end_softirq(&mut self, c: usize) {
        let cpu = &self.cpus[c];
        let is_ksoftirqd = cpu.pass.is_some_and(|pass| pass.by == By::Ksoftirqd);
        let sleeps = is_ksoftirqd && cpu.poll_list.is_empty();
        self.leave_softirq(c, sleeps);
    }

    /// A softirq or the poll of a NAPI thread is over, and its thread may have nothing left to do.
    fn leave_softirq(&mut self, c: usize, sleeps: bool) {
        self.account(c);
        self.cpus[c].pass = None;
        if !self.cpus[c].in_interrupt() {
            // Nothing of the softirq is left to be accounted for.
            self.cpus[c].level = Level::Thread;
        }
        if sleeps {
            self.block_current(c);
        } else {
            self.back_to_threads(c);
        }
    }

    /// A NAPI thread polls its queue once.
    pub(super) fn begin_thread_poll(&mut self, c: usize, q: u16) {
        self.account(c);
        self.cpus[c].pass = Some(Pass::new(By::Thread, 1, 0, q));
        self.cpus[c].level = Level::Soft;
        self.tally.figures.passes_total += 1;
        self.begin_poll(c, q);
    }
}
