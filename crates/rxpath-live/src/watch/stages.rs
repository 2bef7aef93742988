//! The path from left to right: what passed each stage, what it lost, and the CPU time it took.
//!
//! No packet is counted at every stage: each row names its counter. GRO and IP run inside the softirq's poll, so their
//! CPU time is part of its time and can't be distinguished here.

use rxpath_core::Fact;
use rxpath_core::number::si;
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::watch::{PathStage, StageRow};

use super::places::{Losses, TCP_LOST, lost_in};
use super::probes::NAPI_THREAD;
use super::{Window, reasoned};
use crate::live::RECEIVED;

const IP_DELIVERED: [&str; 2] = ["Ip.InDelivers", "Ip6.InDelivers"];
const UDP_READ: [&str; 2] = ["Udp.InDatagrams", "Udp6.InDatagrams"];
/// CPU time that belongs to no stage alone.
const INSIDE: &str = "part of the poll's time";

pub(super) fn rows(
    window: &Window<'_>,
    evidence: &WindowEvidence,
    losses: &Losses,
) -> Vec<StageRow> {
    vec![
        nic(window, losses),
        irq(window),
        gro(window),
        backlog(window),
        ip(window, evidence, losses),
        socket(window, evidence, losses),
        application(window, evidence),
    ]
}

fn blank(stage: PathStage) -> StageRow {
    StageRow {
        stage,
        rate_per_s: Fact::default(),
        unit: "packets".into(),
        rate_source: String::new(),
        drops_pps: Fact::default(),
        drops_source: String::new(),
        cpu_ratio: Fact::absent(INSIDE),
        note: String::new(),
    }
}

fn nic(window: &Window<'_>, losses: &Losses) -> StageRow {
    let links = window.links;
    let known = |rate: Fact<f64>| match &links.gap {
        None => rate,
        Some(why) => Fact::absent(why.as_str()),
    };
    let hardirq = window.between.cpus.iter().map(|cpu| cpu.irq_ratio).sum();
    // The backlog's drops are counted at the device as well (net/core/dev.c enqueue_to_backlog).
    let backlog = window.softnet_per_s("dropped").into_value().unwrap_or(0.0);
    let behind = links.dropped_pps - backlog;
    let mut note = "CPU: hard interrupts".to_owned();
    // Two clocks are behind the difference.
    if behind > 0.01 * links.dropped_pps {
        note = format!("{} dropped/s behind the ring (rx.dropped), {note}", si(behind));
    }
    StageRow {
        rate_per_s: known(Fact::ok(links.received_pps)),
        rate_source: "rx packets of the lowest devices: what bridges, bonds, VLANs and tunnels repeat is left out"
            .into(),
        drops_pps: known(lost_in(losses, PathStage::Nic)),
        drops_source: "rx missed, fifo or over (the largest of each device) + rx errors; by the kernel's reasons: \
                       rings of veths; rx dropped is behind the ring"
            .into(),
        cpu_ratio: match window.seen {
            Ok(seen) => {
                let cpus = seen.steal.iter().flat_map(|steal| &steal.cpus);
                Fact::ok(cpus.map(|cpu| cpu.time.hardirq_s / cpu.window_s.max(1e-3)).sum())
            }
            Err(_) => Fact::ok(hardirq),
        },
        note,
        ..blank(PathStage::Nic)
    }
}

fn irq(window: &Window<'_>) -> StageRow {
    let mut row = StageRow {
        drops_pps: Fact::ok(0.0),
        drops_source: "a poll drops nothing: what it does not take stays in the ring".into(),
        ..blank(PathStage::Irq)
    };
    let mut notes = Vec::new();
    let threads = if let Ok(seen) = window.seen {
        notes.extend(polled(seen, &mut row));
        seen.napi_threads.values().sum::<u64>() as f64 / 1e9 / seen.per_s()
    } else {
        let ticks = window.between.cpus.iter().map(|cpu| cpu.softirq_ratio).sum();
        row.rate_per_s = window.softnet_per_s("processed");
        row.rate_source = "softnet_stat processed: after GRO, backlog included".into();
        row.cpu_ratio = Fact::ok(ticks);
        notes.push("CPU: all softirqs, by ticks".into());
        scheduled_napi_threads(window)
    };
    if threads > 0.0 {
        row.cpu_ratio = row.cpu_ratio.map(|softirqs| softirqs + threads);
        notes.push(format!("NAPI threads {:.1} %", 100.0 * threads));
    }
    let squeezed = window.softnet_per_s("time_squeeze").into_value().unwrap_or(0.0);
    if squeezed > 0.0 {
        notes.push(format!("{squeezed:.0} squeezed/s"));
    }
    row.note = notes.join(", ");
    row
}

/// What the tracepoints show of the polls; the packets of a poll.
fn polled(seen: &super::Seen, row: &mut StageRow) -> Option<String> {
    let devices = seen.napis.iter().filter(|napi| napi.ifindex != 0);
    let polls: u64 = devices.map(|napi| napi.polls_count).sum();
    let packets = packets(seen, false);
    let ns: u64 = seen.net_rx.values().map(|(_, ns)| ns).sum();
    row.rate_per_s = Fact::ok(packets as f64 / seen.per_s());
    row.rate_source = "packets of the devices' NAPI polls (tracepoint napi:napi_poll)".into();
    row.cpu_ratio = Fact::ok(ns.saturating_sub(backlog_ns(seen)) as f64 / 1e9 / seen.per_s());
    (polls > 0).then(|| format!("{:.1} packets a poll", packets as f64 / polls as f64))
}

/// CPU time of threads that poll, which ticks count as the system's.
fn scheduled_napi_threads(window: &Window<'_>) -> f64 {
    let Some(usage) = &window.used.usage else { return 0.0 };
    let threads = usage.threads.iter().filter(|thread| thread.comm.starts_with(NAPI_THREAD));
    threads.map(|thread| thread.run_ns).sum::<u64>() as f64 / usage.span_ns.max(1) as f64
}

/// Packets of the polls of devices, or of those of backlogs.
fn packets(seen: &super::Seen, of_backlogs: bool) -> u64 {
    let own = seen.napis.iter().filter(|napi| (napi.ifindex == 0) == of_backlogs);
    own.map(|napi| napi.packets).sum()
}

fn backlog_ns(seen: &super::Seen) -> u64 {
    seen.napis.iter().filter(|napi| napi.ifindex == 0).map(|napi| napi.poll_ns).sum()
}

fn gro(window: &Window<'_>) -> StageRow {
    let processed = window.softnet_per_s("processed");
    let after = processed.value().copied().unwrap_or(0.0);
    let polled = window.seen.ok().map(|seen| packets(seen, false) as f64 / seen.per_s());
    let merged = polled.filter(|polled| *polled > after && after > 0.0);
    StageRow {
        rate_per_s: processed,
        rate_source: "softnet_stat processed: packets given to the protocols".into(),
        drops_pps: Fact::ok(0.0),
        drops_source: "GRO drops nothing".into(),
        note: merged
            .map_or_else(String::new, |polled| format!("{:.1} merged into one", polled / after)),
        ..blank(PathStage::Gro)
    }
}

fn backlog(window: &Window<'_>) -> StageRow {
    StageRow {
        rate_per_s: window.probed(|seen| packets(seen, true) as f64),
        rate_source: "packets of the backlogs' polls (tracepoint napi:napi_poll)".into(),
        drops_pps: window.softnet_per_s("dropped"),
        drops_source: "softnet_stat dropped".into(),
        cpu_ratio: window.probed(|seen| backlog_ns(seen) as f64 / 1e9),
        note: if window.seen.is_ok() {
            "CPU: with the protocols behind it".into()
        } else {
            String::new()
        },
        ..blank(PathStage::Backlog)
    }
}

fn ip(window: &Window<'_>, evidence: &WindowEvidence, losses: &Losses) -> StageRow {
    let counted =
        "header, address and discard counters of IP, no route, reverse path filter, reassembly";
    StageRow {
        rate_per_s: window.rates.per_s(&RECEIVED),
        rate_source: "Ip.InReceives + Ip6.InReceives".into(),
        drops_pps: lost_in(losses, PathStage::Ip),
        drops_source: if reasoned::watched(window) {
            format!(
                "{counted}; by the kernel's reasons: filters in front of IP, netfilter, routing"
            )
        } else {
            format!("{counted}; what a packet filter drops has no counter here")
        },
        note: reasoned::note(&reasoned::at_ip(window, evidence)),
        ..blank(PathStage::Ip)
    }
}

fn socket(window: &Window<'_>, evidence: &WindowEvidence, losses: &Losses) -> StageRow {
    let fullest = evidence.sockets.iter().filter(|socket| socket.rcvbuf_bytes > 0);
    let filled = fullest.map(|socket| socket.queue_max_bytes as f64 / socket.rcvbuf_bytes as f64);
    let filled = filled.fold(0.0, f64::max);
    let mut notes = vec![format!("fullest UDP queue {:.0} %", 100.0 * filled)];
    let refused = reasoned::at_sockets(window);
    notes.extend(Some(reasoned::note(&refused)).filter(|note| !note.is_empty()));
    // What TCP lost is named by its counters, whatever the verdict is about.
    for (name, words, _) in TCP_LOST {
        let rate = window.rates.per_s(&[name]).into_value().unwrap_or(0.0);
        if rate > 0.0 {
            notes.insert(0, format!("{words} {}/s", si(rate)));
        }
    }
    StageRow {
        rate_per_s: window.rates.per_s(&IP_DELIVERED),
        rate_source: "Ip.InDelivers + Ip6.InDelivers".into(),
        drops_pps: lost_in(losses, PathStage::Socket),
        drops_source:
            "UDP: InErrors, NoPorts; TCP: ListenDrops, BacklogDrop, \
                       RcvQDrop, OFODrop, ZeroWindowDrop, InErrs; by the kernel's reasons: filters of sockets, IPsec"
                .into(),
        note: notes.join(", "),
        ..blank(PathStage::Socket)
    }
}

fn application(window: &Window<'_>, evidence: &WindowEvidence) -> StageRow {
    let threads = &evidence.receiver_threads;
    let running: f64 = threads.iter().map(|thread| thread.running_ratio).sum();
    let waiting: f64 = threads.iter().map(|thread| thread.waiting_ratio).sum();
    StageRow {
        rate_per_s: window.rates.per_s(&UDP_READ),
        unit: "datagrams read".into(),
        rate_source: "Udp.InDatagrams + Udp6.InDatagrams: counted when a program reads".into(),
        drops_pps: Fact::ok(0.0),
        drops_source: "what a program throws away is its own affair".into(),
        cpu_ratio: if threads.is_empty() {
            Fact::absent("no thread with a UDP socket ran, or its process is not ours to see")
        } else {
            Fact::ok(running)
        },
        note: if waiting > 0.01 {
            format!("waits for a CPU {:.0} %", 100.0 * waiting)
        } else {
            String::new()
        },
        ..blank(PathStage::Application)
    }
}
