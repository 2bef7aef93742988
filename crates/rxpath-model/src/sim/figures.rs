//! The figures of a simulation: some are counted in them while it runs, the others are computed at its end.

use schemars::JsonSchema;
use serde::Serialize;

use super::cpu::CpuSplit;

/// One stage over the whole simulation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StageFigures {
    /// `ring`, `backlog`, `socket`.
    pub stage: &'static str,
    /// Packets dropped in front of it.
    pub dropped_packets: u64,
    /// Of them, in the measured window.
    pub window_dropped_packets: u64,
    /// Packets that left it.
    pub left_packets: u64,
    /// Most packets in one of its queues.
    pub most_packets: u64,
    /// Mean number of packets in all of its queues.
    pub mean_packets: f64,
    /// Mean time in it.
    pub mean_ns: f64,
}

/// Quantiles of a time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyQuantiles {
    /// From where to where.
    pub span: &'static str,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90 of 100 are below.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// The figures of a simulation. Rates are of the measured window, counts of the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Offered in the window.
    pub offered_pps: f64,
    /// Delivered in the window.
    pub delivered_pps: f64,
    /// Lost of offered, over the whole.
    pub loss_ratio: f64,
    /// Stages in the order of the path.
    pub stages: Vec<StageFigures>,
    /// Packets that readers were working on at the end.
    pub in_hand_packets: u64,
    /// Interrupts of the NIC.
    pub interrupts_total: u64,
    /// Interrupts between CPUs.
    pub ipis_total: u64,
    /// Softirq passes.
    pub passes_total: u64,
    /// NAPI polls.
    pub polls_total: u64,
    /// Packets per poll.
    pub batch_mean_packets: f64,
    /// Polls by the packets that they took: `[packets, polls]`, empty sizes left out; 1024 stands for more, too.
    pub batches: Vec<[u64; 2]>,
    /// `time_squeeze` of softnet_stat.
    pub time_squeeze_total: u64,
    /// Softirqs that ended with ksoftirqd woken.
    pub ksoftirqd_wakeups_total: u64,
    /// Times that a reader slept.
    pub sleeps_total: u64,
    /// Softirq time spent on packets that were dropped later.
    pub wasted_ns: u64,
    /// Segments sent again (`tcp`).
    pub resent_packets: u64,
    /// CPU time of the window.
    pub cpus: Vec<CpuSplit>,
    /// Times.
    pub times: Vec<LatencyQuantiles>,
    /// Length of the measured window.
    pub window_ns: u64,
    /// Until the last packet was read or given up.
    pub simulated_ns: u64,
}
