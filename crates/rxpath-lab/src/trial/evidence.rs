//! From what was read in the window to the evidence that the diagnosis is given.
//!
//! Facts only: no scenario name, no variant name.

use rxpath_core::Side;
use rxpath_live::observe::Between;
use rxpath_load::udp::result::ServeResult;
use rxpath_record::evidence::{
    ConntrackUse, Evidence, Probed, SocketUse, SoftirqPlace, Spread, ThreadUse,
};
use rxpath_record::ledger::Ledger;

use super::line::Line;
use super::result::Worker;
use super::window::{self, Span};
use crate::testbed::window::Windowed;

/// What one side showed in the window.
pub struct SideSeen<'a> {
    /// Its span of the window.
    pub span: &'a Span,
    /// Its threads, as its result lists them; empty for foreign programs.
    pub threads: &'a [Worker],
    /// Its process, for programs that list no threads.
    pub pid: u32,
}

/// All that evidence is made of.
pub struct EvidenceInput<'a> {
    /// The hosts over the window.
    pub window: &'a Windowed,
    /// The sending programs.
    pub loads: Vec<SideSeen<'a>>,
    /// The receiving programs, one of each receiver.
    pub serves: Vec<SideSeen<'a>>,
    /// The receiver's result and its interval lines, when it is ours.
    pub served: Option<(&'a ServeResult, &'a [Line])>,
    /// Time that the senders' threads waited for room in their send buffers. **Unit** s.
    pub blocked_s: f64,
    /// Asked rate.
    pub target_pps: Option<f64>,
    /// Datagrams per send, when the sender tells.
    pub segments_per_send: Option<u32>,
    /// Offered and delivered packets per second of the window.
    pub pps: [f64; 2],
    /// Sides whose threads never sleep.
    pub polling_sides: Vec<Side>,
    /// Where the receive softirq runs.
    pub softirq: SoftirqPlace,
    /// How the load could be spread, and how it was.
    pub spread: Spread,
    /// `net.core.netdev_max_backlog`.
    pub backlog_limit_packets: Option<u64>,
    /// Connection tracking, when it was read.
    pub conntrack: Option<ConntrackUse>,
    /// What tracepoints measured.
    pub probed: Option<Probed>,
    /// The trial's ledger.
    pub ledger: &'a Ledger,
}

/// Puts the evidence of one trial together.
pub fn gather(seen: &EvidenceInput<'_>) -> Evidence {
    let between = &seen.window.between;
    // Without hosts of their own the senders run on the receiver's.
    let of_senders = seen.window.of_senders.iter().chain(std::iter::repeat(between));
    let sending = seen.loads.iter().zip(of_senders);
    let reading = seen.serves.iter().enumerate();
    Evidence {
        watched: false,
        window_s: between.seconds(),
        target_pps: seen.target_pps,
        offered_pps: seen.pps[0],
        delivered_pps: seen.pps[1],
        sender_blocked_s: seen.blocked_s,
        sender_threads: sending.flat_map(|(load, host)| threads(host, load)).collect(),
        receiver_threads: reading
            .flat_map(|(index, serve)| threads(seen.window.of_receiver(index), serve))
            .collect(),
        cpus: between.cpus.clone(),
        polling_sides: seen.polling_sides.clone(),
        sockets: seen
            .served
            .map_or_else(Vec::new, |(result, lines)| sockets(between, result, lines)),
        softirq: seen.softirq.clone(),
        backlog_limit_packets: seen.backlog_limit_packets,
        segments_per_send: seen.segments_per_send,
        reader_stall_s: seen.served.and_then(|(result, lines)| stall_s(between, result, lines)),
        spread: Some(seen.spread.clone()),
        conntrack: seen.conntrack,
        probed: seen.probed.clone(),
        ledger: seen.ledger.clone(),
        ..Evidence::default()
    }
}

/// CPU time of a side's threads over the window.
pub fn threads(between: &Between, side: &SideSeen<'_>) -> Vec<ThreadUse> {
    let window_ns = between.seconds() * 1e9;
    let share = |ns: u64| if window_ns > 0.0 { ns as f64 / window_ns } else { 0.0 };
    let one = |tid: i32, asked_cpu: Option<u32>, seen_cpus: Vec<u32>, packets: u64| {
        let time = between.threads.get(&tid)?;
        Some(ThreadUse {
            tid,
            name: time.name.clone(),
            asked_cpu,
            seen_cpus: if seen_cpus.is_empty() { vec![time.last_cpu] } else { seen_cpus },
            running_ratio: share(time.run_ns),
            waiting_ratio: share(time.wait_ns),
            packets,
            halted: time.halted,
            ..ThreadUse::default()
        })
    };
    if side.threads.is_empty() {
        let leader = side.pid as i32;
        let all = between.threads.iter().filter(|(_, time)| time.leader == leader);
        // Who of them did how much is not known: the process's own thread stands for all.
        let done = |tid: i32| if tid == leader { side.span.done } else { 0 };
        return all.filter_map(|(tid, _)| one(*tid, None, Vec::new(), done(*tid))).collect();
    }
    let cpus = |i: usize| side.span.thread_cpus.get(i).cloned().unwrap_or_default();
    let packets = |i: usize| side.span.thread_done.get(i).copied().unwrap_or(0);
    let each = side.threads.iter().enumerate();
    each.filter_map(|(i, thread)| one(thread.tid, thread.asked_cpu, cpus(i), packets(i))).collect()
}

/// The longest stall that the reader itself or the samples show: the reader's own clock sees stalls that end
/// between two samples.
fn stall_s(between: &Between, result: &ServeResult, lines: &[Line]) -> Option<f64> {
    let [from, to] = between.window_ns;
    let own = result.threads.iter().map(|thread| thread.longest_away_us / 1e6).fold(0.0, f64::max);
    let sampled = window::longest_stall_s(lines, from, to).unwrap_or(0.0);
    Some(own.max(sampled)).filter(|stall| *stall > 0.0)
}

fn sockets(between: &Between, result: &ServeResult, lines: &[Line]) -> Vec<SocketUse> {
    let [from, to] = between.window_ns;
    let one = |(i, socket): (usize, &rxpath_load::udp::result::SocketResult)| {
        let (queue_mean_bytes, queue_max_bytes, samples) = window::queue(lines, i, from, to);
        SocketUse {
            index: socket.index,
            rcvbuf_bytes: socket.rcvbuf_bytes,
            capacity_packets: socket.capacity_packets,
            queue_mean_bytes,
            queue_max_bytes,
            samples,
            drops_packets: socket.drops_packets,
            delivered_packets: socket.delivered_packets,
            ..SocketUse::default()
        }
    };
    result.sockets.iter().enumerate().map(one).collect()
}
