//! Who paid for the networking of a trial: CPU time by CPU and by task over the measured window, and what a victim
//! with known work got of the time that it asked for.
//!
//! The parts of a row add up to its `on_cpu_s`, the rows of tasks to those of CPUs, and those to their windows. What is
//! measured and what is estimated stand in different fields.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stolen time of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Stolen {
    /// Length of the window; the victim runs all of it.
    pub window_s: f64,
    /// The victim, when the scenario has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim: Option<Victim>,
    /// Each CPU.
    pub cpus: Vec<CpuPaid>,
    /// Tasks by what was taken from them; those with little time are one row, so that the sum is whole.
    pub tasks: Vec<TaskPaid>,
    /// What an interrupt costs beside what is measured.
    pub interrupt: InterruptCost,
    /// What observing cost.
    pub probe: ProbeUse,
}

/// Where time went; all parts but the last five add up to `on_cpu_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Parts {
    /// From switched in to switched out. **Source** tracepoint `sched:sched_switch`.
    pub on_cpu_s: f64,
    /// The task itself: what is left of `on_cpu_s`.
    pub own_s: f64,
    /// Hard interrupts, between their tracepoints.
    pub hardirq_s: f64,
    /// Receive softirqs that something else than the task raised.
    pub net_rx_s: f64,
    /// Transmit softirqs that something else raised.
    pub net_tx_s: f64,
    /// Timer, RCU, scheduler and block softirqs that something else raised.
    pub other_softirq_s: f64,
    /// Network softirqs for which both had raised: not divisible.
    pub mixed_softirq_s: f64,
    /// Softirqs that the task raised by its own calls: its own doing.
    pub own_softirq_s: f64,
    /// Estimated: entry and exit of interrupts.
    pub irq_entry_estimated_s: f64,
    /// Estimated: the CPU's steal time, divided among its tasks by their time on it.
    pub hypervisor_steal_s: f64,
    /// What top shows.
    pub tick_view_s: f64,
    /// Runnable and waiting for a CPU.
    pub preempted_s: f64,
    /// Of `net_rx_s + net_tx_s`: what interrupted user mode. x86 only.
    pub certain_s: f64,
    /// Hard interrupts outside softirqs.
    pub interrupts_count: u64,
    /// Packets polled in softirqs that something else raised.
    pub taken_packets: u64,
}

impl Parts {
    /// Everything that was taken, estimates included.
    pub fn taken_s(&self) -> f64 {
        self.hardirq_s
            + self.net_rx_s
            + self.net_tx_s
            + self.other_softirq_s
            + self.mixed_softirq_s
            + self.irq_entry_estimated_s
            + self.hypervisor_steal_s
    }

    /// The parts, which must add up to `on_cpu_s`.
    pub fn sum_s(&self) -> f64 {
        self.own_s + self.own_softirq_s + self.taken_s()
    }

    /// What interrupts and network softirqs used, whoever paid. Timers and the hypervisor are not in it.
    pub fn network_s(&self) -> f64 {
        self.hardirq_s
            + self.net_rx_s
            + self.net_tx_s
            + self.mixed_softirq_s
            + self.own_softirq_s
            + self.irq_entry_estimated_s
    }
}

impl AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.on_cpu_s += other.on_cpu_s;
        self.own_s += other.own_s;
        self.hardirq_s += other.hardirq_s;
        self.net_rx_s += other.net_rx_s;
        self.net_tx_s += other.net_tx_s;
        self.other_softirq_s += other.other_softirq_s;
        self.mixed_softirq_s += other.mixed_softirq_s;
        self.own_softirq_s += other.own_softirq_s;
        self.irq_entry_estimated_s += other.irq_entry_estimated_s;
        self.hypervisor_steal_s += other.hypervisor_steal_s;
        self.tick_view_s += other.tick_view_s;
        self.preempted_s += other.preempted_s;
        self.certain_s += other.certain_s;
        self.interrupts_count += other.interrupts_count;
        self.taken_packets += other.taken_packets;
    }
}

/// A task with known work, pinned to a CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Victim {
    /// Its CPU.
    pub cpu: u32,
    /// Its thread.
    pub tid: u32,
    /// Time for which it wanted the CPU.
    pub asked_s: f64,
    /// Time that it had, by the work it did: turns times an undisturbed turn.
    pub got_by_work_s: f64,
    /// Time in the gaps of its loop, other tasks' slices included.
    pub gaps_s: f64,
    /// An undisturbed turn.
    pub turn_ns: f64,
    /// Where its time on the CPU went, by the probe.
    pub time: Parts,
    /// Time of `ksoftirqd` and NAPI threads on its CPU: networking that took the CPU from it as tasks do.
    pub deferred_s: f64,
    /// Whose polls took time from it, the largest first.
    pub taken_by: Vec<TakenBy>,
}

impl Victim {
    /// What networking took of its CPU: interrupts and softirqs in its time, and the threads that run softirqs.
    pub fn taken_s(&self) -> f64 {
        self.time.taken_s() + self.deferred_s
    }
}

/// Polls of one NAPI in a task's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TakenBy {
    /// Device; `backlog` for the per-CPU backlog (RPS, loopback, devices without NAPI).
    pub dev: String,
    /// NAPI instance; 0 for the backlog.
    pub napi_id: u32,
    /// Time of the polls, hard interrupts in them taken off.
    pub net_s: f64,
    /// Polls.
    pub polls_count: u64,
    /// Packets.
    pub packets: u64,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuPaid {
    /// CPU number.
    pub cpu: u32,
    /// Length of its window.
    pub window_s: f64,
    /// Where its time went, the idle task's included.
    #[serde(flatten)]
    pub time: Parts,
    /// Of `on_cpu_s`: the idle task.
    pub idle_s: f64,
    /// Of the network softirqs: those over the idle task, which are free.
    pub net_on_idle_s: f64,
    /// Of `on_cpu_s`: ksoftirqd and NAPI threads.
    pub deferred_s: f64,
    /// Slices that found no room: missing from the rows.
    pub lost_s: f64,
    /// Packets that its softirqs handled in the window, the whole machine's. **Source** `softnet_stat`, processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed_packets: Option<u64>,
}

/// One task, on all the CPUs that it ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskPaid {
    /// Thread id; 0 for the idle tasks, none for the row of all that had little time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Name.
    pub comm: String,
    /// `task`, `vcpu`, `vhost`, `ksoftirqd`, `napi`, `kernel`, `idle`, `rest`.
    pub kind: String,
    /// CPUs that it ran on.
    pub cpus: Vec<u32>,
    /// Where its time went.
    #[serde(flatten)]
    pub time: Parts,
    /// Whose polls took time from it, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_by: Vec<TakenBy>,
}

/// What an interrupt costs outside all tracepoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterruptCost {
    /// Mean over the interrupts of this window.
    pub irq_entry_us: f64,
    /// Smallest and largest value measured on this host.
    pub interval_us: [f64; 2],
    /// `measured`, or why there is none: then it is taken for 0.
    pub source: String,
}

/// What the probe itself cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProbeUse {
    /// Time in its programs over the window, all CPUs together.
    pub run_time_s: f64,
    /// Runs of them.
    pub runs_count: u64,
    /// CPU time of its reader.
    pub reader_cpu_s: f64,
    /// Kernel memory of its maps.
    pub map_bytes: u64,
    /// Events, slices or entries that found no room.
    pub lost_count: u64,
    /// Why run times are not known, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_in_the_sum_once() {
        let one = Parts {
            on_cpu_s: 45.0,
            own_s: 1.0,
            hardirq_s: 2.0,
            net_rx_s: 3.0,
            net_tx_s: 4.0,
            other_softirq_s: 5.0,
            mixed_softirq_s: 6.0,
            own_softirq_s: 7.0,
            irq_entry_estimated_s: 8.0,
            hypervisor_steal_s: 9.0,
            tick_view_s: 1000.0,
            preempted_s: 1000.0,
            certain_s: 1000.0,
            interrupts_count: 1000,
            taken_packets: 1000,
        };
        assert!((one.sum_s() - one.on_cpu_s).abs() < 1e-12);
        assert!((one.taken_s() - (45.0 - 1.0 - 7.0)).abs() < 1e-12);
        assert!((one.network_s() - (2.0 + 3.0 + 4.0 + 6.0 + 7.0 + 8.0)).abs() < 1e-12);
        let mut two = one;
        two += one;
        assert!((two.sum_s() - 90.0).abs() < 1e-12 && two.interrupts_count == 2000);
        let deferred = Victim { time: one, deferred_s: 0.5, ..Victim::default() };
        assert!((deferred.taken_s() - 37.5).abs() < 1e-12);
    }
}
