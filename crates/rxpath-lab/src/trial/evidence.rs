//! From what was read in the window to the evidence that the diagnosis is given.
//!
//! Facts only: no scenario name, no variant name.

use rxpath_live::observe::Between;
use rxpath_load::udp::result::ServeResult;
use rxpath_load::usage::ThreadUsage;
use rxpath_record::evidence::{SenderHost, SocketUse, ThreadUse, WindowEvidence};

use super::line::Line;
use super::side::SideMeasurements;
use super::window::{self, Span};
use crate::testbed::window::Windowed;

/// What one side showed in the window.
pub struct SideSeen<'a> {
    /// Its span of the window.
    pub span: Span,
    /// Its threads, as its result lists them; empty for foreign programs.
    pub threads: Vec<&'a ThreadUsage>,
    /// Its process, for programs that list no threads.
    pub pid: u32,
}

impl<'a> SideSeen<'a> {
    /// Of a program that did this in the window.
    pub fn of(program: &'a SideMeasurements, span: Span) -> Self {
        Self { span, threads: program.result.workers(), pid: program.pid }
    }
}

/// Puts the evidence of one trial together: what the programs, those that send and one of each receiver, and their hosts
/// showed in the window, and what is known without it. `datagrams` is the result of our own receiver of them and its
/// interval lines.
pub fn gather(
    window: &Windowed,
    [loads, serves]: [Vec<SideSeen<'_>>; 2],
    datagrams: Option<(&ServeResult, &[Line])>,
    known: WindowEvidence,
) -> WindowEvidence {
    let between = &window.between;
    // Without hosts of their own the senders run on the receiver's.
    let of_senders = window.of_senders.iter().chain(std::iter::repeat(between));
    let sending = loads.iter().zip(of_senders).zip(machines(window));
    let reading = serves.iter().enumerate();
    WindowEvidence {
        window_s: between.seconds(),
        sender_threads: sending
            .flat_map(|((load, between), host)| {
                let of_host = move |thread| ThreadUse { host: host.clone(), ..thread };
                threads(between, load).into_iter().map(of_host)
            })
            .collect(),
        receiver_threads: reading
            .flat_map(|(index, serve)| threads(window.of_receiver(index), serve))
            .collect(),
        sender_hosts: sender_hosts(window),
        cpus: between.cpus.clone(),
        sockets: datagrams.map_or_else(Vec::new, |(result, lines)| sockets(between, result, lines)),
        reader_stall_s: datagrams.and_then(|(result, lines)| stall_s(between, result, lines)),
        ..known
    }
}

/// For each sender the name of its machine; nothing for the receiver's own.
fn machines(window: &Windowed) -> impl Iterator<Item = String> {
    let apart = window.apart.first().into_iter().flatten();
    apart.map(|name| name.clone().unwrap_or_default()).chain(std::iter::repeat(String::new()))
}

/// The senders' machines that are not the receiver's.
fn sender_hosts(window: &Windowed) -> Vec<SenderHost> {
    let others = machines(window).zip(&window.of_senders).filter(|(name, _)| !name.is_empty());
    others.map(|(name, between)| SenderHost { name, cpus: between.cpus.clone() }).collect()
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
    let own = result.threads.iter().map(|thread| thread.longest_away_us / 1e6).fold(0.0, f64::max);
    let sampled = window::longest_stall_s(lines, between.window_ns).unwrap_or(0.0);
    Some(own.max(sampled)).filter(|stall| *stall > 0.0)
}

fn sockets(between: &Between, result: &ServeResult, lines: &[Line]) -> Vec<SocketUse> {
    let one = |(i, socket): (usize, &rxpath_load::udp::result::SocketResult)| {
        let (queue_mean_bytes, queue_max_bytes, samples) =
            window::queue(lines, i, between.window_ns);
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

#[cfg(test)]
mod tests {
    use rxpath_record::evidence::CpuUse;

    use super::*;
    use rxpath_live::observe::ThreadTime;

    /// A host with one busy CPU of this number, on which the program 7 ran.
    fn host(cpu: u32) -> Between {
        let time = ThreadTime {
            name: "rx".into(),
            last_cpu: cpu,
            run_ns: 500,
            wait_ns: 0,
            leader: 7,
            halted: None,
        };
        Between {
            window_ns: [0, 1_000],
            cpus: vec![CpuUse { cpu, ..CpuUse::default() }],
            threads: [(7, time)].into(),
            ..Between::default()
        }
    }

    #[test]
    fn each_sender_s_threads_and_cpus_are_those_of_its_own_machine() {
        let window = Windowed {
            between: host(0),
            of_senders: vec![host(1), host(2)],
            // The first sender is a namespace of the receiver's machine.
            apart: vec![vec![None, Some("gen2".into())]],
            ..Windowed::default()
        };
        let seen = || SideSeen { span: Span::default(), threads: Vec::new(), pid: 7 };
        let gather = |window: &Windowed| {
            let both = [vec![seen(), seen()], vec![seen()]];
            super::gather(window, both, None, WindowEvidence::default())
        };
        let evidence = gather(&window);
        let senders = evidence.sender_threads.iter();
        let senders: Vec<_> =
            senders.map(|it| (it.host.as_str(), it.seen_cpus.as_slice())).collect();
        assert_eq!(senders, [("", [1].as_slice()), ("gen2", [2].as_slice())]);
        assert_eq!(evidence.receiver_threads[0].host, "");
        let [gen2] = evidence.sender_hosts.as_slice() else { panic!("{evidence:?}") };
        assert_eq!((gen2.name.as_str(), gen2.cpus[0].cpu), ("gen2", 2));
        assert_eq!(evidence.cpus[0].cpu, 0);
        // One machine for all has no names.
        let window = Windowed { between: host(0), ..Windowed::default() };
        let evidence = gather(&window);
        assert!(evidence.sender_hosts.is_empty(), "{evidence:?}");
        assert!(evidence.sender_threads.iter().all(|thread| thread.host.is_empty()));
    }
}
