//! What a trial shows about its limit: the input of the diagnosis.
//!
//! It holds measurements and lab facts only. No scenario name, no variant name: a diagnosis that
//! could read the label would not be one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;

/// Everything measured about one trial's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Length of the measured window.
    pub window_s: f64,
    /// Datagrams per second the sender was asked for; `None` = as fast as possible.
    pub asked_pps: Option<f64>,
    /// Datagrams per second the sender attempted in the window.
    pub offered_pps: f64,
    /// Datagrams per second that the receiving application read in the window.
    pub delivered_pps: f64,
    /// Time the sender spent blocked on its own socket buffer, all threads added, in the window.
    pub sender_blocked_s: f64,
    /// Sending threads.
    pub sender_threads: Vec<ThreadUse>,
    /// Receiving threads.
    pub receiver_threads: Vec<ThreadUse>,
    /// Every online CPU over the window.
    pub cpus: Vec<CpuUse>,
    /// Receiving sockets.
    pub sockets: Vec<SocketUse>,
    /// Where the receive softirq runs.
    pub softirq: SoftirqPlace,
    /// `net.core.netdev_max_backlog` in packets, when it can be read.
    pub backlog_limit_packets: Option<u64>,
    /// Datagrams per send call's message (`--gso N`; 1 without it), when the sender tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub segments_per_send: Option<u32>,
    /// The longest time in the window in which nothing was read although datagrams waited, when the sampling shows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reader_stall_s: Option<f64>,
    /// The trial's ledger (whole trial, not only the window).
    pub ledger: Ledger,
}

/// CPU time of one thread over the window.
///
/// **Source** `/proc/PID/task/TID/schedstat` (run and wait time in ns).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// Thread id.
    pub tid: i32,
    /// Thread name.
    pub name: String,
    /// CPU it was asked to run on.
    pub asked_cpu: Option<u32>,
    /// CPUs it was seen on.
    pub seen_cpus: Vec<u32>,
    /// Running, as a share of the window. Includes softirqs that ran on top of it.
    pub running_ratio: f64,
    /// Runnable but waiting for a CPU, as a share of the window.
    pub waiting_ratio: f64,
    /// Datagrams it handled in the window.
    pub packets: u64,
}

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

/// One receiving socket over the trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketUse {
    /// Index in the order of the server's sockets.
    pub index: u32,
    /// `sk_rcvbuf`.
    pub rcvbuf_bytes: u64,
    /// Datagrams of this size that it holds: `floor(sk_rcvbuf / truesize)`, when the truesize is known.
    pub capacity_packets: Option<u64>,
    /// Mean of the sampled `sk_rmem_alloc` in the window.
    pub queue_mean_bytes: f64,
    /// Largest sampled `sk_rmem_alloc` in the window.
    pub queue_max_bytes: u64,
    /// Samples taken in the window.
    pub samples: u64,
    /// Socket drops over the trial.
    pub drops_packets: u64,
    /// Datagrams read from it over the trial.
    pub delivered_packets: u64,
}

/// Where the receive softirq of the lab's link runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SoftirqPlace {
    /// Inside the sender's system call, on the sender's CPU (default veth, loopback).
    #[default]
    SenderCall,
    /// On CPUs chosen by RPS.
    Rps {
        /// CPUs of the mask.
        cpus: Vec<u32>,
    },
    /// NAPI in softirq context, on the CPU of the interrupt or of the sender.
    Napi {
        /// The CPUs it was seen on, when known.
        cpus: Vec<u32>,
    },
    /// A NAPI kernel thread.
    NapiThread {
        /// The CPUs it was seen on, when known.
        cpus: Vec<u32>,
    },
}
