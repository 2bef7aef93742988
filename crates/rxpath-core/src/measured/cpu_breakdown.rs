//! Where the time of a CPU went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Division;

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuBreakdown {
    /// CPU number.
    pub cpu: u32,
    /// Length of its window.
    pub window_s: f64,
    /// Where its time went, the idle task's included: `on_cpu_s` is the window, less what was lost.
    #[serde(flatten)]
    pub time: Division,
    /// Of `on_cpu_s`: the idle task.
    pub idle_s: f64,
    /// Of the network softirqs: those over the idle task, which are free.
    pub net_on_idle_s: f64,
    /// Of `on_cpu_s`: ksoftirqd and NAPI threads.
    pub deferred_s: f64,
    /// Interrupts a second.
    pub interrupts_per_s: f64,
    /// What tick accounting calls softirq (`/proc/stat`).
    pub tick_softirq_s: f64,
    /// What tick accounting calls irq.
    pub tick_irq_s: f64,
    /// Time slices that did not fit in the map, in seconds: the rows lack them.
    pub lost_s: f64,
    /// Exits of interrupts and softirqs without their entry, and slices of tasks whose switch-in was missed: some at
    /// the beginning, and about one in 10,000 switches.
    pub unmatched_count: u64,
}
