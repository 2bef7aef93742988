//! Where the time of a task went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TakenBy;
use crate::Division;

crate::named! {
    /// What a task is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum TaskKind {
        /// A user task.
        #[default]
        Task => "task",
        /// A thread of a virtual CPU (QEMU, Firecracker, Cloud Hypervisor): time taken from it is taken from a guest.
        Vcpu => "vcpu",
        /// A vhost worker: it moves packets for a guest.
        Vhost => "vhost",
        /// `ksoftirqd/N`: softirqs that were deferred to a thread. Its time is networking's own, never stolen.
        Ksoftirqd => "ksoftirqd",
        /// A NAPI thread (`napi/DEV-ID`): polls in a thread. Its time is networking's own, never stolen.
        Napi => "napi",
        /// Another kernel thread.
        Kernel => "kernel",
        /// The idle task: time that networking takes here is taken from no task.
        Idle => "idle",
        /// In a run: all tasks that had little time, in one row.
        Rest => "rest",
    }
    /// Its name, as in JSON.
    pub fn word(self) -> &'static str
}

/// One task, on all the CPUs that it ran on. All times are in seconds of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskTime {
    /// Thread id; 0 for the idle tasks and for the row of all that had little time.
    pub pid: u32,
    /// Process id.
    pub tgid: u32,
    /// Parent process.
    pub parent: u32,
    /// Start, in ns since boot: with the pid it identifies the task uniquely.
    pub start_ns: u64,
    /// Name at its last switch.
    pub comm: String,
    /// What it is.
    pub kind: TaskKind,
    /// CPUs that it ran on.
    pub cpus: Vec<u32>,
    /// Where its time went.
    #[serde(flatten)]
    pub time: Division,
    /// Which devices' polls took time from it, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_by: Vec<TakenBy>,
}
