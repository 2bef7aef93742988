//! Threads: the readers, ksoftirqd, NAPI threads, and threads that only compete.

use super::parameters::Parameters;
use super::scheduler::Fair;
use super::stage::Packet;

/// What a thread is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    Reader {
        socket: usize,
    },
    #[default]
    Background,
    Ksoftirqd,
    /// It polls this queue.
    Napi(u16),
}

/// Whether a thread wants a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Blocked,
    /// Woken; it becomes ready when the wake-up has taken its time.
    Waking,
    /// On a CPU, or waiting for one.
    Ready,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub role: Role,
    pub cpu: usize,
    pub state: State,
    /// In a stall: it gets no CPU whatever it wants.
    pub frozen: bool,
    pub nice: i64,
    pub realtime: bool,
    /// The packet it works on, and what that still needs while something else runs.
    pub hand: Option<Packet>,
    pub left: u64,
    /// Packets that its present call may still take.
    pub in_call: u64,
    /// Cost of the sleep that just ended.
    pub extra: u64,
    /// Its times are booked up to `stamp`.
    pub used: ThreadTime,
    stamp: u64,
    pub fair: Fair,
}

/// What a thread got, up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTime {
    /// On a CPU, what ran on top of it included, in ns.
    pub running: u64,
    /// Ready and without a CPU, in ns.
    pub waiting: u64,
    /// Packets read.
    pub delivered: u64,
}

impl Thread {
    fn new(p: &Parameters, role: Role, cpu: usize, nice: i64) -> Self {
        let reader = matches!(role, Role::Reader { .. });
        let state = if matches!(role, Role::Background | Role::Reader { .. }) {
            State::Ready
        } else {
            State::Blocked
        };
        let (realtime, fair) = (p.realtime && reader, Fair::new(p, nice, reader));
        Self { role, cpu, state, nice, realtime, fair, ..Self::default() }
    }

    /// The threads of the machine: readers, competitors on each of their CPUs, one ksoftirqd a CPU, NAPI threads.
    pub(super) fn all(p: &Parameters) -> Vec<Self> {
        let mut threads = Vec::new();
        for reader in 0..p.readers {
            let cpu = p.reader_cpus[reader % p.reader_cpus.len()] as usize;
            threads.push(Self::new(p, Role::Reader { socket: reader % p.sockets }, cpu, p.nice));
        }
        for cpu in background_cpus(p) {
            for _ in 0..p.background {
                threads.push(Self::new(p, Role::Background, cpu as usize, p.background_nice));
            }
        }
        for cpu in 0..p.cpus() {
            threads.push(Self::new(p, Role::Ksoftirqd, cpu, 0));
        }
        for queue in 0..if p.threaded { p.queues } else { 0 } {
            let cpu = p.nic_cpus[queue % p.nic_cpus.len()] as usize;
            threads.push(Self::new(p, Role::Napi(queue as u16), cpu, 0));
        }
        threads
    }

    /// The number of a CPU's ksoftirqd.
    pub(super) fn ksoftirqd_of(p: &Parameters, cpu: usize) -> usize {
        p.readers + background_cpus(p).len() * p.background + cpu
    }

    /// The number of a queue's NAPI thread.
    pub(super) fn napi_of(p: &Parameters, queue: usize) -> Option<usize> {
        p.threaded.then(|| Self::ksoftirqd_of(p, p.cpus()) + queue)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready && !self.frozen
    }

    /// Books the time since the last booking; `running` is whether it has the CPU.
    pub(super) fn book(&mut self, now: u64, running: bool) {
        let spent = now - self.stamp;
        self.stamp = now;
        if running {
            self.used.running += spent;
        } else if self.state == State::Ready {
            self.used.waiting += spent;
        }
    }
}

/// CPUs that have competitors, each once: those of the readers unless told otherwise.
fn background_cpus(p: &Parameters) -> Vec<u32> {
    let readers = &p.reader_cpus[..p.readers.min(p.reader_cpus.len())];
    let mut cpus = if p.background_cpus.is_empty() { readers } else { &p.background_cpus }.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}
