//! From what was read in the window to the evidence that the diagnosis is given.
//!
//! Facts only: no scenario name, no variant name.

use rxpath_load::udp::result::{Interval, ServeResult, ThreadResult};
use rxpath_record::evidence::{Evidence, SocketUse, SoftirqPlace, ThreadUse};
use rxpath_record::ledger::Ledger;

use super::observe::Between;
use super::window::{self, Span};

/// What one side showed in the window.
pub struct SideSeen<'a> {
    /// Its span of the window.
    pub span: &'a Span,
    /// Its threads, as its result lists them; empty for foreign programs.
    pub threads: &'a [ThreadResult],
    /// Its process, for programs that list no threads.
    pub pid: u32,
}

/// All that evidence is made of.
pub struct Seen<'a> {
    /// The machine over the window.
    pub between: &'a Between,
    /// The sending side.
    pub load: SideSeen<'a>,
    /// The receiving side.
    pub serve: SideSeen<'a>,
    /// The receiver's result and its interval lines, when it is ours.
    pub served: Option<(&'a ServeResult, &'a [Interval])>,
    /// Asked rate.
    pub asked_pps: Option<f64>,
    /// Datagrams per send, when the sender tells.
    pub segments_per_send: Option<u32>,
    /// Where the receive softirq runs.
    pub softirq: SoftirqPlace,
    /// The trial's ledger.
    pub ledger: &'a Ledger,
}

/// Puts the evidence of one trial together.
pub fn gather(seen: &Seen<'_>) -> Evidence {
    let backlog = rxpath_host::Root::host().number("/proc/sys/net/core/netdev_max_backlog");
    Evidence {
        window_s: seen.between.seconds(),
        asked_pps: seen.asked_pps,
        offered_pps: seen.load.span.per_second(seen.load.span.offered_packets),
        delivered_pps: seen.serve.span.per_second(seen.serve.span.packets),
        sender_blocked_s: seen.load.span.blocked_s,
        sender_threads: threads(seen.between, &seen.load),
        receiver_threads: threads(seen.between, &seen.serve),
        cpus: seen.between.cpus.clone(),
        sockets: seen
            .served
            .map_or_else(Vec::new, |(result, lines)| sockets(seen.between, result, lines)),
        softirq: seen.softirq.clone(),
        backlog_limit_packets: backlog.ok(),
        segments_per_send: seen.segments_per_send,
        reader_stall_s: seen
            .served
            .and_then(|(result, lines)| stall_s(seen.between, result, lines)),
        ledger: seen.ledger.clone(),
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
        })
    };
    if side.threads.is_empty() {
        return one(side.pid as i32, None, Vec::new(), side.span.packets).into_iter().collect();
    }
    let cpus = |i: usize| side.span.thread_cpus.get(i).cloned().unwrap_or_default();
    let packets = |i: usize| side.span.thread_packets.get(i).copied().unwrap_or(0);
    let each = side.threads.iter().enumerate();
    each.filter_map(|(i, thread)| one(thread.tid, thread.asked_cpu, cpus(i), packets(i))).collect()
}

/// The longest stall that the reader itself or the samples show: the reader's own clock sees stalls that end
/// between two samples.
fn stall_s(between: &Between, result: &ServeResult, lines: &[Interval]) -> Option<f64> {
    let [from, to] = between.window_ns;
    let own = result.threads.iter().map(|thread| thread.longest_away_us / 1e6).fold(0.0, f64::max);
    let sampled = window::longest_stall_s(lines, from, to).unwrap_or(0.0);
    Some(own.max(sampled)).filter(|stall| *stall > 0.0)
}

fn sockets(between: &Between, result: &ServeResult, lines: &[Interval]) -> Vec<SocketUse> {
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
        }
    };
    result.sockets.iter().enumerate().map(one).collect()
}
