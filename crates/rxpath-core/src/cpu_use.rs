//! Where a CPU's time went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One CPU over the window; the shares are of wall time and add up to about 1.
///
/// **Caveat** the split of busy time is tick-based (`CONFIG_IRQ_TIME_ACCOUNTING` off) and can err by half;
/// idle time is exact on kernels with `NO_HZ`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// CPU number.
    pub cpu: u32,
    /// User and nice.
    pub user_ratio: f64,
    /// System.
    pub system_ratio: f64,
    /// Hard interrupts.
    pub irq_ratio: f64,
    /// Softirqs.
    pub softirq_ratio: f64,
    /// Taken by the hypervisor.
    pub steal_ratio: f64,
    /// Idle and iowait.
    pub idle_ratio: f64,
    /// CPU time of threads that are not the workload's, where it could be read.
    pub foreign_ratio: Option<f64>,
}

impl CpuUse {
    /// `1 - idle - steal`: exact where idle is.
    pub fn busy_ratio(&self) -> f64 {
        (1.0 - self.idle_ratio - self.steal_ratio).clamp(0.0, 1.0)
    }
}
