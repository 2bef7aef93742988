//! The machine: its state, and the loop that goes from event to event.

mod cpu;
mod scheduler;
mod socket;
mod softirq;
mod thread;

use chacha20::ChaCha8Rng;
use rand::SeedableRng;

use super::arrivals::{Source, Trace};
use super::cpu::Cpu;
use super::parameters::{Law, Parameters};
use super::slots::{NEVER, Slots};
use super::socket::Socket;
use super::softirq::Queue;
use super::stage::Packet;
use super::steer::Steering;
use super::stream::News;
use super::tally::{Mark, Tally};
use super::thread::Thread;
use super::trace::Arrival;

/// Everything of one simulation.
pub(super) struct World<'a> {
    pub p: &'a Parameters,
    pub now: u64,
    pub slots: Slots,
    /// Numbers of the first slot of each sort; CPUs begin at 0.
    pub timers: usize,
    pub wakes: usize,
    clocks: usize,
    pub source: Source<'a>,
    next: Arrival,
    pub queues: Vec<Queue>,
    pub cpus: Vec<Cpu>,
    pub sockets: Vec<Socket>,
    pub threads: Vec<Thread>,
    pub steering: Steering,
    pub random: ChaCha8Rng,
    pub tally: Tally,
    truesize: u32,
}

/// The clocks of the machine, as slots behind all others.
#[derive(Clone, Copy)]
enum Clock {
    /// Stalls of all readers begin or end.
    Stall,
    /// Timer ticks.
    Tick,
    /// The stream's news.
    News,
    /// Samples are taken.
    Sample,
    /// The measured window begins or ends.
    Window,
}

const CLOCKS: [Clock; 5] = [Clock::Stall, Clock::Tick, Clock::News, Clock::Sample, Clock::Window];

impl<'a> World<'a> {
    pub(super) fn new(p: &'a Parameters, trace: Option<Trace<'a>>) -> Self {
        let cpus = p.cpus();
        let threads = Thread::all(p);
        let timers = cpus;
        let wakes = timers + p.queues;
        let clocks = wakes + threads.len();
        let flows = if matches!(p.law, Law::Trace { .. }) { 65_536 } else { p.flows };
        let mut world = Self {
            p,
            now: 0,
            slots: Slots::new(clocks + CLOCKS.len(), timers),
            timers,
            wakes,
            clocks,
            source: Source::new(p, trace),
            next: Arrival { at: NEVER, bytes: 0, flow: 0 },
            queues: (0..p.queues).map(|queue| Queue::new(p, queue)).collect(),
            cpus: (0..cpus).map(|cpu| Cpu::new(p, cpu)).collect(),
            sockets: (0..p.sockets).map(|socket| Socket::new(p, socket)).collect(),
            threads,
            steering: Steering::new(p, flows),
            // Service times must not follow from arrival times.
            random: ChaCha8Rng::seed_from_u64(p.seed ^ 0x5e1f_5e1f_5e1f_5e1f),
            tally: Tally::new(p),
            truesize: p.truesize_of(p.size) as u32,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for thread in 0..self.threads.len() {
            self.cpus[self.threads[thread].cpu].threads.push(thread);
        }
        for cpu in 0..self.cpus.len() {
            self.schedule(cpu);
        }
        if self.p.stall > 0 {
            self.set_clock(Clock::Stall, 0);
        }
        if self.p.tick_ns > 0 || !self.p.threaded {
            self.set_clock(Clock::Tick, self.p.jiffy);
        }
        self.set_clock(Clock::Sample, 0);
        self.set_clock(Clock::Window, self.p.warmup);
        self.pull();
    }

    fn set_clock(&mut self, clock: Clock, at: u64) {
        self.slots.set(self.clocks + clock as usize, at);
    }

    /// Asks the source for its next packet; none comes after the duration.
    fn pull(&mut self) {
        self.next = self.source.next(self.now);
        if self.next.at >= self.p.duration {
            self.next.at = NEVER;
        }
    }

    /// Runs until the last packet has left, or the time to drain is over.
    pub(super) fn run(&mut self) {
        let last = self.p.duration + self.p.drain;
        loop {
            let (slot, at) = self.slots.first();
            // Equal times: what the machine does comes before what comes to it.
            if self.next.at < at {
                self.now = self.next.at;
                self.arrive();
                self.pull();
                continue;
            }
            if at > last || (at > self.p.duration && self.in_system() == 0) {
                break;
            }
            self.now = at;
            self.fire(slot);
        }
        self.now = self.now.max(self.p.duration);
        self.settle_threads();
    }

    #[inline]
    fn fire(&mut self, slot: usize) {
        if slot < self.timers {
            self.cpu_event(slot);
        } else if slot < self.wakes {
            self.coalesced(slot - self.timers);
        } else if slot < self.clocks {
            self.slots.set(slot, NEVER);
            self.runnable(slot - self.wakes);
        } else {
            self.clock(CLOCKS[slot - self.clocks]);
        }
    }

    fn clock(&mut self, clock: Clock) {
        match clock {
            Clock::Stall => self.stall_or_go_on(),
            Clock::Tick => {
                self.set_clock(Clock::Tick, self.now + self.p.jiffy);
                self.ticks();
            }
            Clock::News => {
                if let Some(stream) = self.source.stream() {
                    stream.hear(self.now);
                }
                if self.next.at == NEVER && self.now < self.p.duration {
                    self.pull();
                }
                self.listen();
            }
            Clock::Sample => {
                self.sample();
                let next = self.now + self.p.sample;
                self.set_clock(Clock::Sample, if next > self.p.duration { NEVER } else { next });
            }
            Clock::Window => {
                let mark = self.mark();
                self.tally.marks.push(mark);
                let next = if self.tally.marks.len() == 1 { self.p.duration } else { NEVER };
                self.set_clock(Clock::Window, next);
            }
        }
    }

    fn stall_or_go_on(&mut self) {
        let into = self.now % self.p.period;
        let frozen = into < self.p.stall;
        let next = self.now - into + if frozen { self.p.stall } else { self.p.period };
        self.set_clock(Clock::Stall, next);
        for thread in 0..self.p.readers {
            if frozen {
                self.freeze(thread);
            } else {
                self.thaw(thread);
            }
        }
    }

    /// The sender of a stream will hear what happened to one of its packets.
    #[inline]
    pub(super) fn tell(&mut self, news: News) {
        if let Some(stream) = self.source.stream() {
            stream.tell(self.now, news);
            self.listen();
        }
    }

    /// The sender will hear of what happened to its packets.
    fn listen(&mut self) {
        if let Some(hears) = self.source.stream().map(|stream| stream.hears()) {
            self.set_clock(Clock::News, hears);
        }
    }

    #[inline]
    fn arrive(&mut self) {
        let Arrival { at, bytes, flow } = self.next;
        self.tally.offered += 1;
        let truesize = if u64::from(bytes) == self.p.size {
            self.truesize
        } else {
            self.p.truesize_of(u64::from(bytes)) as u32
        };
        let packet = Packet { arrived: at, entered: at, truesize, flow };
        self.queue_at_ring(usize::from(self.steering.of(flow).queue), packet);
    }

    /// A packet is lost for good.
    #[inline]
    pub(super) fn lost(&mut self) {
        self.tally.lost += 1;
        self.tell(News::Lost);
    }

    /// Packets that came and have neither left nor been dropped.
    #[inline]
    pub(super) fn in_system(&self) -> u64 {
        self.tally.offered - self.tally.lost - self.tally.delivered
    }

    /// Packets dropped in front of the rings, the backlogs and the sockets so far.
    pub(super) fn drops(&self) -> [u64; 3] {
        [
            self.queues.iter().map(|queue| queue.drops).sum(),
            self.cpus.iter().map(|cpu| cpu.backlog_drops).sum(),
            self.sockets.iter().map(|socket| socket.drops).sum(),
        ]
    }

    fn mark(&mut self) -> Mark {
        for cpu in 0..self.cpus.len() {
            self.account(cpu);
        }
        self.settle_threads();
        Mark {
            at: self.now,
            offered: self.tally.offered,
            delivered: self.tally.delivered,
            drops: self.drops(),
            cpus: self.cpus.iter().map(|cpu| cpu.used).collect(),
            threads: self.threads.iter().map(|thread| thread.used).collect(),
        }
    }

    fn sample(&mut self) {
        self.settle_threads();
        let samples = &mut self.tally.samples;
        samples.t.push(self.now);
        samples.offered.push(self.tally.offered);
        samples.delivered.push(self.tally.delivered);
        samples.ring.push(self.queues.iter().map(|queue| queue.ring.len()).sum());
        samples.backlog.push(self.cpus.iter().map(|cpu| cpu.backlog.len()).sum());
        samples.unread.push(self.sockets.iter().map(|socket| socket.unread).sum());
        for (s, socket) in self.sockets.iter().enumerate() {
            samples.rmem[s].push(socket.rmem);
            samples.drops[s].push(socket.drops);
        }
        for (t, row) in samples.running.iter_mut().enumerate() {
            row.push(self.threads[t].used.running);
        }
    }
}
