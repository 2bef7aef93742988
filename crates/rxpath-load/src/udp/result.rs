//! The results of `serve udp` and `load udp`, as `--json` prints them and the lab reads them.

use std::net::SocketAddr;

use rxpath_stats::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::Limit;
use crate::quantiles::Quantiles;
use crate::tally::Tally;
use crate::usage::{ThreadUsage, UsageMeter};
use crate::workload::of_results;

/// `result` of `serve udp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeResult {
    /// First datagram to last read.
    pub duration_s: f64,
    /// Read by this process.
    pub delivered_packets: u64,
    /// Per second of `duration_s`.
    pub delivered_pps: f64,
    /// Payload bytes read.
    pub delivered_bytes: u64,
    /// `SO_MEMINFO` drops of all sockets (`SKMEMINFO_DROPS`), read before close. Sockets of AF_XDP have none.
    pub socket_drops_packets: u64,
    /// `sk_rmem_alloc` of all sockets after draining: what was still queued.
    pub in_flight_bytes: u64,
    /// Datagrams longer than the buffer: counted at full length, read in part.
    #[serde(default)]
    pub truncated_packets: u64,
    /// Loss, duplicates and reordering by sequence numbers.
    pub sequence: Sequence,
    /// One-way delay from the sender's stamp to the read, when both use the same clock, or an experiment compared the
    /// two.
    pub one_way_delay_us: Option<Quantiles>,
    /// Datagrams that came before they were sent, by the clocks as they were compared.
    #[serde(default)]
    pub early_packets: u64,
    /// Kernel receive stamp to read, with `--stamps`.
    ///
    /// **Caveat** the first datagrams may carry no stamp: the kernel switches stamping on by a work item
    /// (`net_enable_timestamp`, net/core/dev.c).
    pub socket_wait_us: Option<Quantiles>,
    /// User CPU time of the process.
    pub cpu_user_s: f64,
    /// System CPU time of the process, including softirqs that interrupted it.
    pub cpu_system_s: f64,
    /// Which side was the limit, as far as this side can tell.
    #[serde(default)]
    pub limit: Limit,
    /// One entry per thread.
    pub threads: Vec<ThreadResult>,
    /// One entry per socket.
    pub sockets: Vec<SocketResult>,
    /// Dropped by the receiver's own XDP program, with `--engine xdp-drop`: counted, and delivered to nobody.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dropped_in_xdp_packets: Option<u64>,
    /// What became of the frames, with XDP.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub xdp: Option<XdpReceiveLedger>,
}

/// What became of the frames that a receiver's XDP program saw, over all queues.
///
/// Matched = redirected + dropped + passed; redirected = delivered + dropped by the socket + dropped for a full ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct XdpReceiveLedger {
    /// Datagrams to the receiver.
    pub matched_packets: u64,
    /// Of these, handed to an AF_XDP socket.
    pub redirected_packets: u64,
    /// Of these, dropped by the program.
    pub dropped_packets: u64,
    /// Of these, left to the stack, because their queue had no socket.
    pub passed_packets: u64,
    /// Other frames, left to the stack.
    pub other_packets: u64,
    /// Datagrams that came through the stack, such as passed ones and fragments: still in the socket that holds the port,
    /// which nobody reads.
    #[serde(default)]
    pub unread_packets: u64,
    /// Dropped by the AF_XDP sockets: no frame to receive into, or too long for one (`rx_dropped`).
    pub socket_dropped_packets: u64,
    /// Dropped because a ring was full (`rx_ring_full`).
    pub ring_full_packets: u64,
    /// Times that the kernel found no frame to receive into (`rx_fill_ring_empty_descs`).
    pub fill_ring_empty_count: u64,
}

/// What sequence numbers show. Datagrams under 16 bytes carry none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sequence {
    /// Whether datagrams carried sequence numbers.
    pub checked: bool,
    /// Streams seen.
    pub streams_count: u64,
    /// Numbers that never arrived, up to the highest seen of each stream.
    pub lost_packets: u64,
    /// Numbers that arrived twice.
    pub duplicate_packets: u64,
    /// Numbers that arrived after a higher one.
    pub reordered_packets: u64,
    /// Of the reordered ones, those so late (more than 16,320 numbers) that they might be duplicates.
    #[serde(default)]
    pub beyond_window_packets: u64,
    /// Datagrams of streams beyond the number that is tracked.
    #[serde(default)]
    pub untracked_packets: u64,
    /// Datagrams of 16 bytes and more that are not rxpath's, or too short to carry a number.
    #[serde(default)]
    pub unnumbered_packets: u64,
    /// Numbered datagrams of each sender of an experiment between hosts; none where all are of sender 0.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub senders: Vec<SenderPackets>,
}

/// What came from one of several senders of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SenderPackets {
    /// The sender's number among those of its experiment, from 0.
    pub sender: u16,
    /// Its datagrams, duplicates among them.
    pub packets: u64,
}

/// One worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// The thread and its CPU time.
    #[serde(flatten)]
    pub usage: ThreadUsage,
    /// Datagrams handled.
    pub packets: u64,
    /// System calls made to move them.
    pub calls_count: u64,
    /// Time blocked on the socket (sender: no send buffer; receiver: waiting for a datagram).
    pub blocked_s: f64,
    /// Longest intended pause of a receiver between two reads (`--sleep`); 0 for none.
    #[serde(default)]
    pub longest_away_us: f64,
}

impl ThreadResult {
    /// Of the calling worker, a reader, at its end.
    pub(crate) fn of_reader(usage: UsageMeter, tally: &Tally, longest_away_ns: u64) -> Self {
        let (usage, blocked_s, _) = usage.end(tally);
        Self {
            usage,
            packets: tally.units.get(),
            calls_count: tally.calls.get(),
            blocked_s: blocked_s.unwrap_or(0.0),
            longest_away_us: longest_away_ns as f64 / 1e3,
        }
    }
}

/// One receiving socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketResult {
    /// Index in the order of opening.
    pub index: u32,
    /// Datagrams read from it.
    pub delivered_packets: u64,
    /// `SKMEMINFO_DROPS`.
    pub drops_packets: u64,
    /// `sk_rcvbuf` (the kernel doubles the requested value).
    pub rcvbuf_bytes: u64,
    /// `sk_rmem_alloc` after draining.
    pub rmem_bytes: u64,
    /// Datagrams of the observed size that fit: `floor(sk_rcvbuf / truesize)`; `None` until a truesize is known.
    pub capacity_packets: Option<u64>,
    /// Memory that one datagram of the observed size takes.
    pub truesize_bytes: Option<u64>,
    /// `SO_INCOMING_NAPI_ID`; 0 = the device has no NAPI and busy polling cannot act.
    pub napi_id: u32,
    /// Aggregates read (with `--gro`; equal to the datagrams otherwise).
    pub reads_count: u64,
}

/// `result` of `load udp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadResult {
    /// First send to last.
    pub duration_s: f64,
    /// By the schedule of `--rate`; equal to offered without one.
    pub target_packets: u64,
    /// Attempted.
    pub offered_packets: u64,
    /// Accepted by this host's kernel.
    pub sent_packets: u64,
    /// Per second of `duration_s`.
    pub sent_pps: f64,
    /// Refused by this host's kernel, errors that were retried not counted.
    pub send_errors_packets: u64,
    /// The same by errno name.
    pub send_errors: std::collections::BTreeMap<String, u64>,
    /// `ECONNREFUSED` answers (an earlier datagram found no listener); the send was retried.
    pub refused_count: u64,
    /// Whether datagrams went around the kernel's UDP, whose counters leave them out.
    #[serde(default)]
    pub bypasses_udp: bool,
    /// With `--engine xdp-frames`: what the device took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frames: Option<FramesLedger>,
    /// Calls that stopped within a batch although the next datagram could be sent: the kernel hides the reason.
    #[serde(default)]
    pub hidden_errors_count: u64,
    /// `--rate`, or `None` when as fast as possible.
    pub target_pps: Option<f64>,
    /// Intended send time to the send call, with `--rate`.
    pub lateness_us: Option<Lateness>,
    /// Time blocked on a full send buffer, sum over threads.
    pub blocked_s: f64,
    /// Datagrams per send (1, or the N of `--gso N`; every send is a full batch).
    pub segments_per_send: u32,
    /// User CPU time of the process.
    pub cpu_user_s: f64,
    /// System CPU time of the process; on a default veth the receive softirq is in it.
    pub cpu_system_s: f64,
    /// Which side was the limit, as far as this side can tell.
    #[serde(default)]
    pub limit: Limit,
    /// One entry per thread.
    pub threads: Vec<ThreadResult>,
    /// What AF_XDP sockets handed over, with `--engine xdp`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub xdp: Option<XdpLedger>,
    /// What was attempted to each destination, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub destinations: Vec<DestinationResult>,
}

/// What was sent to one of several destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DestinationResult {
    /// The destination.
    pub to: SocketAddr,
    /// Attempted, as of all destinations.
    pub offered_packets: u64,
}

/// What happened to the descriptors of the frames to send, over all AF_XDP sockets.
///
/// **Caveat** a frame that the device drops is handed over and completed, too; the device counts it (`tx.dropped`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct XdpLedger {
    /// Taken by the kernel from the rings.
    pub handed_over_packets: u64,
    /// Frames that came back: the device is done with them.
    pub completed_packets: u64,
    /// Refused as not valid (`tx_invalid_descs` of `XDP_STATISTICS`).
    pub invalid_packets: u64,
    /// Calls that told the kernel to look at a ring.
    pub wakeups_count: u64,
}

impl std::ops::AddAssign for XdpLedger {
    fn add_assign(&mut self, other: Self) {
        self.handed_over_packets += other.handed_over_packets;
        self.completed_packets += other.completed_packets;
        self.invalid_packets += other.invalid_packets;
        self.wakeups_count += other.wakeups_count;
    }
}

/// What became of frames that were given to a device, by its driver's answers (tracepoint `xdp_devmap_xmit`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FramesLedger {
    /// Given to the device.
    pub offered_packets: u64,
    /// Taken by its driver; `None` where this kernel does not say.
    pub taken_packets: Option<u64>,
    /// Refused by its driver: no room in its ring, or in that of a veth's other end.
    pub refused_packets: Option<u64>,
}

impl FramesLedger {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Self {
            offered_packets: self.offered_packets + other.offered_packets,
            taken_packets: sum(self.taken_packets, other.taken_packets),
            refused_packets: sum(self.refused_packets, other.refused_packets),
        }
    }
}

/// How late sends were against their schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Lateness {
    /// Of a histogram; `None` when nothing was recorded.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        Quantiles::of(histogram).map(|all| Self { p50: all.p50, p99: all.p99, max: all.max })
    }
}

/// One line of `--interval`: cumulative, so that any two lines give a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// `CLOCK_MONOTONIC` at the reading of the counters.
    pub t_ns: u64,
    /// Attempted so far (sender only).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offered_packets: Option<u64>,
    /// Sent so far (sender) or delivered so far (receiver).
    pub packets: u64,
    /// Payload bytes of these.
    pub bytes: u64,
    /// The same per thread.
    pub thread_packets: Vec<u64>,
    /// Per socket (receiver).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub socket_packets: Vec<u64>,
    /// `sk_rmem_alloc` per socket (receiver).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub socket_rmem_bytes: Vec<u64>,
    /// `SKMEMINFO_DROPS` per socket (receiver).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub socket_drops_packets: Vec<u64>,
    /// Blocked on the send buffer so far, all threads (sender).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blocked_s: Option<f64>,
    /// Dropped by the receiver's own XDP program so far.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dropped_in_xdp_packets: Option<u64>,
    /// CPU each thread is on now.
    pub thread_cpus: Vec<u32>,
}

of_results!(ThreadResult, Interval);
