//! A receive queue, and a pass of softirqs.

use super::parameters::Parameters;
use super::stage::Fifo;
use super::thread::Thread;

/// Who runs a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Interrupt,
    Ksoftirqd,
    /// A NAPI thread polls its own queue.
    Thread,
}

/// One `__do_softirq`, or a NAPI thread's poll.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub by: By,
    pub restarts: u64,
    /// Jiffy from which on no further pass begins.
    pub end: u64,
    pub budget: i64,
    /// Jiffy from which on no further poll begins.
    pub limit: u64,
    pub napi: u16,
    pub done: u64,
    /// Packets that the present poll may take.
    pub quota: u64,
    pub packet_ns: u64,
}

impl Pass {
    /// One that has polled nothing yet.
    pub(super) fn new(by: By, restarts: u64, end: u64, napi: u16) -> Self {
        let (budget, limit, done, quota, packet_ns) = (0, 0, 0, 0, 0);
        Self { by, restarts, end, budget, limit, napi, done, quota, packet_ns }
    }
}

/// A receive queue's interrupt and NAPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Napi {
    /// Its interrupt is enabled and nothing waits.
    #[default]
    Idle,
    /// The coalescing timer runs.
    Armed,
    /// The interrupt is pending or the NAPI is on a list: interrupts are disabled.
    Scheduled,
}

/// A receive queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub ring: Fifo,
    pub napi: Napi,
    pub cpu: usize,
    /// Packets since the timer was armed.
    pub frames: u64,
    /// Descriptors of packets that were taken and that the poll's end will refill.
    pub unfilled: u64,
    pub drops: u64,
    /// Its NAPI thread.
    pub thread: Option<usize>,
}

impl Queue {
    pub(super) fn new(p: &Parameters, queue: usize) -> Self {
        Self {
            ring: Fifo::new(p.ring),
            cpu: p.nic_cpus[queue % p.nic_cpus.len()] as usize,
            thread: Thread::napi_of(p, queue),
            ..Self::default()
        }
    }
}
