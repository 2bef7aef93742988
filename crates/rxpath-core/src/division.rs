//! How the time of a task, a CPU or a victim was used.

use std::iter::Sum;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Use of time; own time, own softirqs and taken time add up to `on_cpu_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Division {
    /// From switched in to switched out. **Source** sched_switch.
    pub on_cpu_s: f64,
    /// The task itself: the rest of `on_cpu_s`.
    pub own_s: f64,
    /// Hard interrupts, between their tracepoints.
    pub hardirq_s: f64,
    /// Receive softirqs that something else raised.
    pub net_rx_s: f64,
    /// Transmit softirqs that something else raised.
    pub net_tx_s: f64,
    /// Timer, RCU, scheduler and block softirqs that something else raised.
    pub other_softirq_s: f64,
    /// Of `other_softirq_s`: TCP's pacing timers, compressed acknowledgements and small queues, which are network time.
    pub other_network_s: f64,
    /// Network softirqs that both the task and something else had raised: cannot be divided.
    pub mixed_softirq_s: f64,
    /// Softirqs that the task raised by its own calls.
    pub own_softirq_s: f64,
    /// Estimated: entry and exit of interrupts, outside all tracepoints.
    pub irq_entry_estimated_s: f64,
    /// Estimated: the CPU's steal time, divided among its tasks by their time on it.
    pub hypervisor_steal_s: f64,
    /// The time that top shows: for a task the time charged by the scheduler, for a CPU the busy time of `/proc/stat`.
    pub tick_view_s: f64,
    /// Runnable and waiting for a CPU.
    pub preempted_s: f64,
    /// Of `net_rx_s + net_tx_s`: what interrupted user mode, where the task can't have asked for it. x86 only.
    pub certain_s: f64,
    /// Of `own_softirq_s`: what interrupted user mode. It contradicts "own"; close to 0 where the rule holds. x86 only.
    pub contradicted_s: f64,
    /// Hard interrupts outside softirqs: those that the estimate is for.
    pub interrupts_count: u64,
    /// Packets that were polled in softirqs that something else raised.
    pub taken_packets: u64,
}

impl Division {
    /// Time that networking and interrupts took, measured between tracepoints.
    pub fn taken_measured_s(&self) -> f64 {
        self.hardirq_s + self.net_rx_s + self.net_tx_s + self.other_softirq_s + self.mixed_softirq_s
    }

    /// All time taken, estimates included.
    pub fn taken_s(&self) -> f64 {
        self.taken_measured_s() + self.irq_entry_estimated_s + self.hypervisor_steal_s
    }

    /// The parts, which must add up to `on_cpu_s`.
    pub fn sum_s(&self) -> f64 {
        self.own_s + self.own_softirq_s + self.taken_s()
    }

    /// Time of interrupts, network softirqs and TCP's own timers, on all tasks. Other timers and the hypervisor are not
    /// included.
    pub fn network_s(&self) -> f64 {
        self.hardirq_s
            + self.net_rx_s
            + self.net_tx_s
            + self.other_network_s
            + self.mixed_softirq_s
            + self.own_softirq_s
            + self.irq_entry_estimated_s
    }
}

impl AddAssign for Division {
    fn add_assign(&mut self, other: Self) {
        macro_rules! add {
            ($($part:ident)*) => { $(self.$part += other.$part;)* };
        }
        add!(on_cpu_s own_s hardirq_s net_rx_s net_tx_s other_softirq_s other_network_s);
        add!(mixed_softirq_s own_softirq_s irq_entry_estimated_s hypervisor_steal_s tick_view_s);
        add!(preempted_s certain_s contradicted_s interrupts_count taken_packets);
    }
}

impl Sum for Division {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_in_the_sum_once() {
        let one = Division {
            on_cpu_s: 45.0,
            own_s: 1.0,
            hardirq_s: 2.0,
            net_rx_s: 3.0,
            net_tx_s: 4.0,
            other_softirq_s: 5.0,
            other_network_s: 0.5,
            mixed_softirq_s: 6.0,
            own_softirq_s: 7.0,
            irq_entry_estimated_s: 8.0,
            hypervisor_steal_s: 9.0,
            tick_view_s: 1000.0,
            preempted_s: 1000.0,
            certain_s: 1000.0,
            contradicted_s: 1000.0,
            interrupts_count: 1000,
            taken_packets: 1000,
        };
        assert!((one.sum_s() - one.on_cpu_s).abs() < 1e-12);
        assert!((one.taken_s() - (45.0 - 1.0 - 7.0)).abs() < 1e-12);
        assert!((one.network_s() - (2.0 + 3.0 + 4.0 + 0.5 + 6.0 + 7.0 + 8.0)).abs() < 1e-12);
        let mut two = one;
        two += one;
        assert!((two.sum_s() - 90.0).abs() < 1e-12 && two.interrupts_count == 2000);
        assert_eq!([one, one].into_iter().sum::<Division>(), two);
    }
}
