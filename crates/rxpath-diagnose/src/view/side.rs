//! The threads of one side taken together, with the thread that has the least time left.

use rxpath_record::evidence::{Halt, ThreadUse, Throttled};

use super::{CpuAt, sound_ratio};
use crate::thresholds::{FULL_RATIO, MOST_OF_LOSS_RATIO, WAITING_RATIO};

/// One thread's time.
#[derive(Clone, Debug, Default)]
pub struct Lead<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its id.
    pub tid: i32,
    /// The CPU on which it was seen if it was only one; else the requested CPU.
    pub cpu: Option<u32>,
    /// Every CPU on which it was seen, by number.
    pub cpus: Vec<u32>,
    /// Running, as a share of the window; softirqs on top of it included.
    pub running: f64,
    /// Runnable without a CPU, as a share of the window.
    pub waiting: f64,
    /// Datagrams in the window.
    pub packets: u64,
    /// The CPU quota that stopped it, as a share of the window.
    pub throttled: Option<&'a Throttled>,
    /// The sender's machine; empty = the receiver's.
    pub host: &'a str,
}

impl<'a> Lead<'a> {
    /// Its one CPU, with the machine.
    pub fn at(&self) -> Option<CpuAt<'a>> {
        self.cpu.map(|cpu| CpuAt { host: self.host, cpu })
    }

    /// Its one CPU, if that is one of the receiver's machine.
    pub fn cpu_here(&self) -> Option<u32> {
        self.cpu.filter(|_| self.host.is_empty())
    }

    /// Running and waiting: the share of the window in which it had work.
    pub fn demand(&self) -> f64 {
        (self.running + self.waiting).min(1.0)
    }

    /// Whether it has no time left and hardly waits for others.
    pub fn is_full(&self) -> bool {
        self.running >= FULL_RATIO || (self.demand() >= FULL_RATIO && self.waiting < WAITING_RATIO)
    }

    /// The meaning of its time.
    pub fn pace(&self) -> ThreadSaturation {
        match (self.is_full(), self.is_kept_waiting()) {
            (true, _) => ThreadSaturation::Full,
            (_, true) => ThreadSaturation::KeptWaiting,
            _ => ThreadSaturation::HasTime,
        }
    }

    /// Whether others use its CPU while it has work.
    pub fn is_kept_waiting(&self) -> bool {
        !self.is_full() && self.waiting >= WAITING_RATIO
    }

    /// The quota of its control group, if it explains most of the waiting or is used up in most periods: then the
    /// thread ran as much as allowed, whatever else was on its CPU. Kernels count this time in `schedstat` as waiting,
    /// too.
    pub fn quota(&self) -> Option<&Throttled> {
        let most = self.waiting.max(2.0 * WAITING_RATIO) / 2.0;
        self.throttled.filter(|throttled| {
            let stopped = sound_ratio(throttled.ratio);
            let spent = sound_ratio(throttled.used_up_ratio) >= MOST_OF_LOSS_RATIO;
            stopped >= most || (spent && stopped >= WAITING_RATIO)
        })
    }
}

/// What a thread's time says about its part in a loss behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadSaturation {
    /// No time left.
    Full,
    /// Work, but no CPU.
    KeptWaiting,
    /// Time left.
    HasTime,
}

/// The threads of one side.
#[derive(Clone, Debug, Default)]
pub struct SideThreads<'a> {
    /// How many.
    pub count: usize,
    /// How many handled datagrams; all of them if none counts.
    pub active: usize,
    /// The thread with the least time left.
    pub lead: Lead<'a>,
    /// The smallest demand of a thread.
    pub least_demand: f64,
    /// Sum of the running shares: CPUs' worth of time.
    pub running_sum: f64,
    /// Datagrams of all threads in the window.
    pub packets: u64,
    /// CPUs of the receiver's machine on which they were seen, else the requested CPUs; by number.
    pub cpus: Vec<u32>,
    /// Whether every thread was seen on a CPU.
    pub seen: bool,
    /// Why none of them runs, if none runs.
    pub halted: Option<Halt>,
}

impl<'a> SideThreads<'a> {
    /// Takes `threads` together.
    pub fn new(threads: &[&'a ThreadUse]) -> Self {
        let leads: Vec<Lead> = threads.iter().map(|thread| lead(thread)).collect();
        let here = threads.iter().filter(|thread| thread.host.is_empty());
        let cpus = by_number(here.flat_map(|thread| cpus_of(thread)).collect());
        // A sorted sum: floating-point addition in another order may differ in the last bit.
        let mut running: Vec<f64> = leads.iter().map(|l| l.running).collect();
        running.sort_by(f64::total_cmp);
        let running_sum: f64 = running.iter().sum();
        let active = leads.iter().filter(|l| l.packets > 0).count();
        let least = leads.iter().map(Lead::demand).min_by(f64::total_cmp);
        Self {
            count: threads.len(),
            active: if active == 0 { threads.len() } else { active },
            least_demand: least.unwrap_or(0.0),
            running_sum,
            packets: leads.iter().fold(0, |sum, l| sum.saturating_add(l.packets)),
            lead: leads.into_iter().max_by(least_time_left).unwrap_or_default(),
            cpus,
            seen: threads.iter().all(|t| !t.seen_cpus.is_empty()),
            halted: threads
                .iter()
                .map(|thread| thread.halted)
                .reduce(|one, other| one.filter(|halted| other == Some(*halted)))
                .flatten(),
        }
    }

    /// Running time per datagram over all threads, ns.
    pub fn cost_ns(&self, window_s: Option<f64>) -> Option<f64> {
        let cost = self.running_sum * window_s? * 1e9 / self.packets as f64;
        cost.is_finite().then_some(cost)
    }
}

fn cpus_of(thread: &ThreadUse) -> Vec<u32> {
    if thread.seen_cpus.is_empty() {
        thread.asked_cpu.into_iter().collect()
    } else {
        thread.seen_cpus.clone()
    }
}

/// Each CPU once.
pub(super) fn by_number(mut cpus: Vec<u32>) -> Vec<u32> {
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// One thread's time.
pub fn lead(thread: &ThreadUse) -> Lead<'_> {
    let cpus = by_number(cpus_of(thread));
    Lead {
        name: &thread.name,
        tid: thread.tid,
        cpu: if let [one] = cpus[..] { Some(one) } else { None },
        cpus,
        running: sound_ratio(thread.running_ratio),
        waiting: sound_ratio(thread.waiting_ratio),
        packets: thread.packets,
        throttled: thread.throttled.as_ref(),
        host: &thread.host,
    }
}

/// Total order: equal threads are equal in everything reported.
fn least_time_left(a: &Lead, b: &Lead) -> std::cmp::Ordering {
    (a.demand().total_cmp(&b.demand()))
        .then(a.running.total_cmp(&b.running))
        .then(a.packets.cmp(&b.packets))
        .then(b.cpu.cmp(&a.cpu))
        .then_with(|| b.cpus.cmp(&a.cpus))
        .then(b.name.cmp(a.name))
        .then(b.host.cmp(a.host))
        .then(b.tid.cmp(&a.tid))
}
