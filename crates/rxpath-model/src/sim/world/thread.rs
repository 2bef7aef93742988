//! What threads do when they have a CPU, and how readers sleep and wake.

use super::World;
use crate::sim::arrivals::exponential;
use crate::sim::cpu::Level;
use crate::sim::slots::NEVER;
use crate::sim::softirq::By;
use crate::sim::stream::News;
use crate::sim::thread::{Role, State};

impl World<'_> {
    /// The present step of the thread on `c` is put aside.
    pub(super) fn save_step(&mut self, c: usize) {
        let cpu = &self.cpus[c];
        if let Some(thread) = cpu.current.filter(|_| cpu.step_end != NEVER) {
            self.threads[thread].left = cpu.step_end - self.now;
        }
    }

    /// Interrupts and softirqs are over: back to the thread that was interrupted, or to another.
    pub(super) fn back_to_threads(&mut self, c: usize) {
        if self.cpus[c].in_interrupt() {
            return;
        }
        let cpu = &self.cpus[c];
        match cpu.current {
            Some(thread) if !cpu.need_resched && self.now < cpu.slice_end => self.go_on(c, thread),
            _ => self.schedule(c),
        }
    }

    /// Thread `t` runs on `c` from where it was.
    pub(super) fn go_on(&mut self, c: usize, t: usize) {
        self.enter(c, Level::Thread, NEVER);
        match self.threads[t].role {
            Role::Reader { .. } if self.threads[t].hand.is_some() => {
                self.step(c, self.threads[t].left);
            }
            Role::Reader { .. } => self.read_next(c, t),
            Role::Background => self.idle_step(c),
            Role::Ksoftirqd if self.cpus[c].poll_list.is_empty() => self.block_current(c),
            Role::Ksoftirqd => self.begin_softirq(c, By::Ksoftirqd),
            Role::Napi(queue) => self.begin_thread_poll(c, queue),
        }
    }

    #[inline]
    fn step(&mut self, c: usize, takes: u64) {
        let cpu = &mut self.cpus[c];
        cpu.step_end = self.now + takes;
        self.slots.set(c, cpu.step_end.min(cpu.slice_end));
    }

    fn idle_step(&mut self, c: usize) {
        self.cpus[c].step_end = NEVER;
        self.slots.set(c, self.cpus[c].slice_end);
    }

    #[inline]
    pub(super) fn thread_event(&mut self, c: usize) {
        let cpu = &self.cpus[c];
        let Some(thread) = cpu.current else { return };
        let slice_over = self.now >= cpu.slice_end;
        if self.now >= cpu.step_end {
            self.read_done(thread);
            if !slice_over {
                self.read_next(c, thread);
                return;
            }
        } else {
            self.save_step(c);
        }
        self.schedule(c);
    }

    /// The reader takes the next packet of its socket, or sleeps.
    #[inline]
    fn read_next(&mut self, c: usize, t: usize) {
        let Role::Reader { socket } = self.threads[t].role else { return };
        let Some(packet) = self.take_from_socket(socket) else {
            self.threads[t].in_call = 0;
            self.tally.figures.sleeps_total += 1;
            self.sockets[socket].asleep += 1;
            self.block_current(c);
            return;
        };
        let mean = self.tally.reader_packet_ns;
        let work = if self.p.exponential_service {
            exponential(&mut self.random, mean as f64) as u64
        } else {
            mean
        };
        let thread = &mut self.threads[t];
        let mut takes = work + std::mem::take(&mut thread.extra);
        if thread.in_call == 0 {
            takes += self.tally.call_ns;
            thread.in_call = self.p.batch;
        }
        thread.in_call -= 1;
        thread.hand = Some(packet);
        self.step(c, takes);
    }

    #[inline]
    fn read_done(&mut self, t: usize) {
        let now = self.now;
        let thread = &mut self.threads[t];
        let Some(packet) = thread.hand.take() else { return };
        thread.used.delivered += 1;
        if let Role::Reader { socket } = thread.role {
            self.done_with(socket, &packet);
        }
        self.tally.delivered += 1;
        self.tally.socket_times.record(now - packet.entered);
        self.tally.total_times.record(now - packet.arrived);
        self.tell(News::Read);
    }

    /// A packet has come for a sleeping reader of the socket.
    pub(super) fn wake_reader(&mut self, socket: usize) {
        let readers = &self.sockets[socket].readers;
        let asleep = readers.iter().find(|t| self.threads[**t].state == State::Blocked);
        let Some(t) = asleep.copied() else { return };
        self.sockets[socket].asleep -= 1;
        self.threads[t].extra = self.tally.sleep_ns;
        if self.p.wakeup_ns == 0 {
            self.runnable(t);
        } else {
            self.threads[t].state = State::Waking;
            self.slots.set(self.wakes + t, self.now + self.p.wakeup_ns);
        }
    }

    pub(super) fn freeze(&mut self, t: usize) {
        self.threads[t].frozen = true;
        let c = self.threads[t].cpu;
        if self.cpus[c].current != Some(t) {
            return;
        }
        if self.cpus[c].level == Level::Thread {
            self.save_step(c);
            self.schedule(c);
        } else {
            self.cpus[c].need_resched = true;
        }
    }

    pub(super) fn thaw(&mut self, t: usize) {
        if self.threads[t].frozen {
            self.threads[t].frozen = false;
            if self.threads[t].state == State::Ready {
                self.preempt_by(t);
            }
        }
    }

    /// Brings the books of all threads up to now.
    pub(super) fn settle_threads(&mut self) {
        for t in 0..self.threads.len() {
            let running = self.cpus[self.threads[t].cpu].current == Some(t);
            self.threads[t].book(self.now, running);
        }
    }

    /// Packets that readers hold.
    pub(in crate::sim) fn in_hand(&self) -> u64 {
        self.threads.iter().filter(|thread| thread.hand.is_some()).count() as u64
    }
}
