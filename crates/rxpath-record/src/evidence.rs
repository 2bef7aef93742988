//! What a trial shows about its limit: the input of the diagnosis.
//!
//! It holds measurements and lab facts only. No scenario name, no variant name: a diagnosis that
//! could read the label would not be one.

mod tcp;

use rxpath_core::PathSide;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::{Drop, Ledger};

pub use rxpath_core::CpuUse;
pub use tcp::{Listener, TcpConnection, TcpService, TcpUse};

/// Everything measured about one trial's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowEvidence {
    /// Length of the measured window.
    pub window_s: f64,
    /// A host was watched: nobody could be asked what was sent, and what arrived at UDP stands for it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub watched: bool,
    /// Some sockets alone were asked for, and the ledger is theirs.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub narrowed: bool,
    /// Datagrams per second the sender was asked for; `None` = as fast as possible.
    pub target_pps: Option<f64>,
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
    /// The senders' machines that are not the receiver's; empty = all run on one machine.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sender_hosts: Vec<SenderHost>,
    /// Every online CPU of the receiver's machine over the window.
    pub cpus: Vec<CpuUse>,
    /// Receiving sockets.
    pub sockets: Vec<SocketUse>,
    /// Sides whose threads poll instead of sleeping, as far as known: that they run all the time says nothing of a limit.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub polling_sides: Vec<PathSide>,
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
    /// How the load could be spread over CPUs, and how it was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spread: Option<CpuDistribution>,
    /// Connection tracking of the receiver's namespace, when it was read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conntrack: Option<ConntrackUse>,
    /// What tracepoints measured, when they were watched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub probed: Option<Probed>,
    /// Losses of a watched host whose counters count packets of every protocol: they are in no ledger of datagrams.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub any_protocol: Vec<AnyProtocol>,
    /// TCP's part of a watched host's receive path, when a segment arrived, a counter moved or data waits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tcp: Option<TcpUse>,
    /// The network namespace that was watched, as a person calls it; empty in a trial.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub namespace: String,
    /// Packets per second that the softirqs of a watched host handled for other network namespaces, at least.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub elsewhere_pps: Option<f64>,
    /// What UDP's counters of a watched host count as one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub udp_counting: Option<UdpCounting>,
    /// Places of loss of a watched host that could not be read, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unread: Vec<String>,
    /// The trial's ledger (whole trial, not only the window).
    pub ledger: Ledger,
}

/// What UDP's counters of a watched host count as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UdpCounting {
    /// Datagrams that UDP counted as delivered and that no program read: the kernel took them, as the outer packets of
    /// tunnels. They are neither in what was offered nor in what was delivered. 0 where reads were not counted.
    pub taken_by_kernel_packets: u64,
    /// Segments in a packet of IP, on average, where UDP counts an aggregate as one datagram: a socket with `UDP_GRO` takes
    /// it whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_per_packet: Option<f64>,
}

/// A loss whose counter counts packets of every protocol: the number of UDP datagrams among them is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnyProtocol {
    /// Where, by which counter, how many.
    #[serde(flatten)]
    pub drop: Drop,
    /// Packets of any protocol that came that far, those lost there included.
    pub of_packets: u64,
}

/// A process that has a socket open.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct SocketOwner {
    /// Process id.
    pub pid: i32,
    /// Its name (`/proc/PID/stat`).
    pub name: String,
}

/// How the receive path's work could be divided among CPUs, and how it was over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDistribution {
    /// Receive queues of the device; `None` = not known.
    pub queues: Option<u32>,
    /// CPUs of the RPS masks; empty = RPS is off, `None` = not known.
    pub rps_cpus: Option<Vec<u32>>,
    /// Flows of the sender (pairs of addresses and ports); `None` = not known.
    pub flows: Option<u64>,
    /// Packets that the receive softirq of each CPU took. **Source** `softnet_stat` processed, for the whole machine;
    /// an aggregate of GRO or GSO counts as one.
    pub packets: Vec<CpuPackets>,
}

/// Packets of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPackets {
    /// CPU number.
    pub cpu: u32,
    /// Packets.
    pub packets: u64,
    /// Packets that its backlog refused. **Source** `softnet_stat` dropped.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub dropped_packets: u64,
    /// Rounds of its receive softirq that ended with work left. **Source** `softnet_stat` time_squeeze.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub squeezed_count: u64,
    /// The largest share of its sampled packets with one hash of addresses and ports, so of one flow; `None` = too few
    /// were sampled, or none. **Source** `skb->hash` at `net:netif_receive_skb`, in 64 buckets: two flows may share one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub one_flow_ratio: Option<f64>,
    /// Share of the time that threads of NAPIs ran on it, on a watched host where they do the receive work; `None` = not
    /// measured. **Source** `sched:sched_switch`, less the softirqs and interrupts within.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub napi_threads_ratio: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape of skip_serializing_if")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Connection tracking over the time of the ledger.
///
/// **Source** nfnetlink_conntrack `IPCTNL_MSG_CT_GET_STATS_CPU` and `..._GET_STATS`, or `/proc/net/stat/nf_conntrack`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConntrackUse {
    /// Packets dropped because no entry could be made (net/netfilter/nf_conntrack_core.c, `nf_conntrack_in`).
    pub drops_packets: u64,
    /// Entries that were thrown out to make room.
    pub early_drops_count: u64,
    /// Entries at the end.
    pub entries_count: u64,
    /// Most that there may be: `net.netfilter.nf_conntrack_max`.
    pub entries_max: Option<u64>,
}

/// What tracepoints measured over the window (BPF); ticks have no part in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probed {
    /// Every CPU; empty = not watched.
    pub cpus: Vec<ProbedCpu>,
    /// Tasks that were on a CPU for a significant share of the window, by CPU.
    pub tasks: Vec<ProbedTask>,
    /// Spinlocks of the readers' sockets that somebody waited for, the longest waiting first; `None` = not watched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub locks: Option<Vec<ContendedLock>>,
    /// What could not be watched, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub gaps: Vec<String>,
}

/// One CPU's time between tracepoints, as shares of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedCpu {
    /// CPU number.
    pub cpu: u32,
    /// In NET_RX and NET_TX, no matter which task or interrupt raised them. **Caveat** without NAPI threads.
    pub net_softirq_ratio: f64,
    /// In other softirqs.
    pub other_softirq_ratio: f64,
    /// In hard interrupts.
    pub irq_ratio: f64,
    /// Hard interrupts: each also costs its entry and exit, which are not in the shares above.
    pub interrupts_per_s: f64,
}

/// One task on one CPU, as shares of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedTask {
    /// Thread id.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// The CPU.
    pub cpu: u32,
    /// Whether it is a sender, a reader or a kernel thread of the receive path.
    pub part_of_path: bool,
    /// On the CPU, what interrupted it included.
    pub on_cpu_ratio: f64,
    /// Of that: network softirqs that something else raised.
    pub taken_ratio: f64,
    /// Runnable without the CPU.
    pub waiting_ratio: f64,
}

/// A spinlock that was waited for.
///
/// **Source** `lock:contention_begin` and `lock:contention_end`: the slow path alone, an uncontended lock shows nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContendedLock {
    /// The field of the socket: `sk_receive_queue.lock`, `reader_queue.lock`.
    pub lock: String,
    /// The socket's local port.
    pub port: u16,
    /// Waits.
    pub waits_count: u64,
    /// Time waited as a share of the window, all threads added.
    pub waited_ratio: f64,
    /// The receiving threads among those that waited, each with its share of the window.
    pub readers: Vec<LockWaiter>,
}

/// One thread that waited for a lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockWaiter {
    /// Thread id.
    pub tid: i32,
    /// Time waited as a share of the window; it counts as running.
    pub waited_ratio: f64,
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
    /// Its process, on a watched host: it may or may not be one of the process's readers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<i32>,
    /// What kept it from running at both ends of the window, whatever was free.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub halted: Option<Halt>,
    /// The CPU quota that stopped it for a part of the window.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub throttled: Option<Throttled>,
    /// Its machine, by the name in [`WindowEvidence::sender_hosts`]; empty = the receiver's.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub host: String,
}

/// A machine that sends and is not the receiver's: its CPU numbers are its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SenderHost {
    /// Its alias.
    pub name: String,
    /// Every online CPU of it over the window.
    pub cpus: Vec<CpuUse>,
}

/// Why a thread does not run at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Halt {
    /// A signal stopped it (SIGSTOP, SIGTSTP). **Source** state `T` of `/proc/PID/stat`.
    Signal,
    /// A debugger or tracer holds it. **Source** state `t`.
    Tracer,
    /// Its control group is frozen (`docker pause`). **Source** `cgroup.events`, `freezer.state`.
    Freezer,
}

/// A control group's CPU quota at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throttled {
    /// The group with the quota.
    pub group: String,
    /// How long it was stopped, as a share of the window; over several CPUs added up, and at most 1.
    ///
    /// **Source** `cpu.stat`, `throttled_usec` or `throttled_time`.
    pub ratio: f64,
    /// The share of its periods in which it used up its quota.
    ///
    /// **Source** `cpu.stat`, `nr_throttled` over `nr_periods`.
    #[serde(default)]
    pub used_up_ratio: f64,
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
    /// Datagrams read from it over the trial; on a watched host in the window, 0 where nobody counted them.
    pub delivered_packets: u64,
    /// Threads that read from it in the window, on a watched host and where that was watched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub readers: Option<Vec<i32>>,
    /// Threads that waited for it when the window ended, of a socket of a group that got nothing; none where nobody did. Absent
    /// where this was not asked, or not answered: it needs `CAP_SYS_PTRACE`, and no owner in `poll`, `select` or io_uring.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiters: Option<Vec<i32>>,
    /// Local address and port, on a watched host.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub local: String,
    /// It is connected, on a watched host: it gets what one peer sends, and no hash of a group chooses it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub connected: bool,
    /// Processes that have it open, on a watched host and where they could be seen.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub owners: Vec<SocketOwner>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_of_one_machine_is_written_as_before_there_were_hosts() {
        let sender_threads = vec![ThreadUse { tid: 7, ..ThreadUse::default() }];
        let one = WindowEvidence { sender_threads, ..WindowEvidence::default() };
        let mut written = serde_json::to_value(&one).unwrap();
        assert!(written.get("sender_hosts").is_none(), "{written}");
        assert!(written["sender_threads"][0].get("host").is_none(), "{written}");
        assert_eq!(serde_json::from_value::<WindowEvidence>(written.clone()).unwrap(), one);
        written["sender_threads"][0]["host"] = "gen1".into();
        let apart: WindowEvidence = serde_json::from_value(written).unwrap();
        assert_eq!(apart.sender_threads[0].host, "gen1");
    }
}
