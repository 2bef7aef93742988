//! The rows below the path: CPUs, queues, sockets, tasks, drops, latency.

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::Place;

/// One CPU; shares of wall time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuRow {
    /// Number.
    pub cpu: u32,
    /// NUMA node.
    pub node: Option<u32>,
    /// User mode, by ticks.
    pub user_ratio: f64,
    /// Kernel mode, by ticks.
    pub system_ratio: f64,
    /// Softirqs, by ticks.
    pub softirq_ratio: f64,
    /// Hard interrupts, by ticks.
    pub irq_ratio: f64,
    /// Taken by the hypervisor.
    pub steal_ratio: f64,
    /// Idle and iowait.
    pub idle_ratio: f64,
    /// NET_RX, measured, and the polls of NAPI threads. **Caveat** without NET_TX, which the field of this name in the evidence
    /// includes.
    pub net_softirq_ratio: Fact<f64>,
    /// Packets that its softirqs handled, per second. **Source** `softnet_stat` processed.
    pub processed_pps: f64,
    /// NET_RX runs that ended with work left, per second. **Source** `softnet_stat` time_squeeze.
    pub squeezed_per_s: f64,
    /// Packets that its backlog refused, per second. **Source** `softnet_stat` dropped.
    pub dropped_pps: f64,
    /// The task that used most of it.
    pub busiest_task: String,
}

/// One receive queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QueueRow {
    /// Device.
    pub device: String,
    /// Queue.
    pub queue: u32,
    /// NAPI instance.
    pub napi_id: Fact<u32>,
    /// Interrupt.
    pub irq: Fact<u32>,
    /// CPUs that handle it, as set in the hardware: `0`, `2-3`.
    pub cpus: Fact<String>,
    /// Packets per second.
    pub packets_pps: Fact<f64>,
    /// Drops per second.
    pub drops_pps: Fact<f64>,
    /// Interrupts per second.
    pub interrupts_per_s: Fact<f64>,
    /// Packets a poll, measured.
    pub packets_per_poll: Fact<f64>,
    /// Share of its polls that used up their budget, measured.
    pub exhausted_ratio: Fact<f64>,
}

/// One socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketRow {
    /// `udp`, `tcp`, `tcp-listen`.
    pub protocol: String,
    /// Own address.
    pub local: String,
    /// The other's address; empty when unconnected.
    pub remote: String,
    /// Inode, as in `/proc/PID/fd`.
    pub inode: u32,
    /// Memory of the receive queue now, in bytes of truesize; of a listener connections that wait.
    pub queued: u64,
    /// Largest of the window.
    pub queued_max: u64,
    /// Limit of it, in the same unit.
    pub limit: u64,
    /// Dropped per second.
    pub drops_pps: f64,
    /// Dropped since the socket was made.
    pub drops_total: u64,
    /// Who has it open, as `name (pid)`.
    pub processes: Vec<String>,
    /// Why `processes` is empty although some process may have it open; empty if it was looked up.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub processes_gap: String,
}

impl SocketRow {
    /// The largest filling of the window as a share of the limit.
    pub fn filled_ratio(&self) -> f64 {
        if self.limit == 0 { 0.0 } else { self.queued_max as f64 / self.limit as f64 }
    }
}

/// One task; shares of wall time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskRow {
    /// Thread.
    pub pid: u32,
    /// Process that it belongs to; 0 in recordings without this value.
    pub process: u32,
    /// Its name.
    pub comm: String,
    /// `task`, `ksoftirqd`, `napi`, `vcpu`, ...
    pub kind: String,
    /// CPUs it ran on.
    pub cpus: Vec<u32>,
    /// On a CPU, what was taken from it included.
    pub on_cpu_ratio: f64,
    /// Runnable and waiting for a CPU.
    pub waiting_ratio: Fact<f64>,
    /// Its own work.
    pub own_ratio: Fact<f64>,
    /// Taken from it: interrupts, softirqs of others, the hypervisor; estimates included.
    pub taken_ratio: Fact<f64>,
    /// Of that, network softirqs.
    pub taken_net_ratio: Fact<f64>,
    /// Of `taken_ratio`, the entry and exit of interrupts: an estimate, not in old recordings.
    pub irq_entry_ratio: Fact<f64>,
    /// Softirqs that its own calls started.
    pub own_softirq_ratio: Fact<f64>,
    /// Of what was taken, the hypervisor's: the CPU's steal time, divided among its tasks by their time on it.
    pub hypervisor_ratio: Fact<f64>,
    /// Who took most, as `device (share)`.
    pub taken_by: String,
}

/// Packets lost at a place of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossRow {
    /// Where.
    pub place: Place,
    /// How many, per second.
    pub packets_pps: f64,
}

impl LossRow {
    /// The places that a host which receives can count, in the order of the path. Of the others, `device-refused` also counts
    /// frames that nobody here wants.
    pub const PLACES: [Place; 22] = [
        Place::Network,
        Place::Ring,
        Place::Backlog,
        Place::Ip,
        Place::ReversePath,
        Place::Routing,
        Place::Fragments,
        // By the kernel's reasons only, but for routing.
        Place::IngressHook,
        Place::Netfilter,
        Place::ReasonOnly,
        Place::IpsecPolicy,
        Place::SocketFilter,
        Place::NoListener,
        Place::Checksum,
        Place::SocketBuffer,
        Place::UdpMemory,
        Place::UdpOther,
        Place::ListenQueue,
        Place::SocketBacklog,
        Place::TcpReceiveQueue,
        Place::TcpOutOfOrder,
        Place::TcpOther,
    ];
}

/// Packets dropped for one reason at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DropRow {
    /// Where: a kernel function, or the place that a counter belongs to.
    pub place: String,
    /// Why: the kernel's drop reason; empty for counters.
    pub reason: String,
    /// Device, where known.
    pub device: String,
    /// Inode of the network namespace; 0 where not known.
    pub netns: u32,
    /// Network protocol: `ip`, `ipv6`, `arp` or its EtherType; empty where not known.
    pub protocol: String,
    /// `udp`, `tcp`, ...; empty where not known.
    pub transport: String,
    /// Destination port; 0 where not known.
    pub port: u16,
    /// Inode of the socket that it was for; 0 where there was none, or for counters.
    pub socket_inode: u64,
    /// Processes that have the socket open.
    pub processes: Vec<String>,
    /// Packets per second.
    pub packets_pps: f64,
    /// Packets since watching began.
    pub packets_total: u64,
    /// The tracepoint or counter.
    pub source: String,
}

/// Latency from one stage to the next, over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LatencyRow {
    /// `receive-to-socket`: netif_receive_skb to sk_data_ready; `socket-to-read`: sk_data_ready to the read.
    pub stage: String,
    /// Latencies measured.
    pub count: u64,
    /// Median; upper end of its power-of-two bucket.
    pub p50_ns: u64,
    /// 99th percentile; upper end of its power-of-two bucket.
    pub p99_ns: u64,
}

/// Probes that counted only part of the time: their counts are scaled to the whole time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProbeDutyCycle {
    /// What they see: `tasks, softirqs and polls`.
    pub what: String,
    /// Share of the time that they counted, from the sample before to this one.
    pub ratio: f64,
    /// That time: rates and shares refer to it.
    pub counted_s: f64,
    /// Time from the sample to the end of this window: 0 unless it is an earlier window's.
    pub age_s: f64,
}

impl ProbeDutyCycle {
    /// What the probes of a live view see; each of the two counts at times of its own.
    pub const PROBES: [&'static str; 2] = ["tasks, softirqs, polls and latency", "drops"];
}

/// The cost of a live view's BPF programs over the window: they count their runs, and time one of 64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProbeShare {
    /// CPU time in the programs, all CPUs together, in CPUs: 0.01 is a hundredth of one CPU.
    pub cpu_ratio: f64,
    /// CPU time of the calls' own entries in addition to that, in CPUs: 60 ns for each run, an estimate; not in old
    /// recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_cpu_ratio: Option<f64>,
    /// Runs of the programs per second, all CPUs together.
    pub runs_per_s: f64,
    /// Mean time of a run, without the call's own entry.
    pub ns_per_run: f64,
    /// How long was measured.
    pub measured_s: f64,
    /// Time from then to the end of this window; 0 but in old recordings.
    pub age_s: f64,
    /// Kernel memory of the maps.
    pub map_bytes: u64,
    /// Slices, polls and drops that did not fit into a map since watching began.
    pub lost_count: u64,
    /// Why run times are not known, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

impl ProbeShare {
    /// CPU time in the programs, and of their entries, in s: of all that was measured, which is more than the window after windows
    /// without probes.
    pub fn cpu_s(&self) -> [f64; 2] {
        [self.cpu_ratio, self.entry_cpu_ratio.unwrap_or(0.0)].map(|ratio| ratio * self.measured_s)
    }
}
