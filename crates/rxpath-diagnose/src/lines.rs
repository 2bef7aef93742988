//! Evidence lines that more than one rule shows.

pub mod tcp;

use rxpath_core::SortFew;
use rxpath_core::number::si;
use rxpath_record::ledger::{Drop, Place};
use rxpath_record::verdict::EvidenceLine;

use crate::thresholds::{FOREIGN_RATIO, STEAL_RATIO};
use crate::view::{CpuAt, Lead, SideThreads, View, sound_rate, sound_ratio};
use crate::wording::{count, cpus, datagrams, percent, rate, span, threads};

/// Services that are named in a line.
const SERVICES: usize = 4;

const SCHEDSTAT: &str = "/proc/PID/task/TID/schedstat";

/// One line.
pub fn line(text: impl Into<String>, source: impl Into<String>) -> EvidenceLine {
    EvidenceLine { text: text.into(), source: source.into() }
}

/// What was lost at `place`, one line for each owning counter.
pub fn drops(view: &View, place: Place) -> Vec<EvidenceLine> {
    view.drops_at(place).into_iter().map(|drop| drop_line(view, drop)).collect()
}

/// What one counter has of the losses at its place.
pub fn drop_line(view: &View, drop: &Drop) -> EvidenceLine {
    let (range, offered) = (drop.range(), view.offered_packets());
    let lost = range.around(drop.packets, offered);
    let of = match view.of_any_protocol(drop.place) {
        Some(all) => format!("{} packets of any protocol", count(all)),
        None => format!("{} offered", count(offered)),
    };
    // A share would be one number.
    let share = if range.between(offered).is_some() {
        String::new()
    } else {
        format!(" ({})", percent(view.share_at(drop.place, drop.packets)))
    };
    let mut text = format!("{lost} of {of}{share} lost at {}", drop.place.words().noun);
    let disagree: Vec<&str> =
        drop.cross_checks.iter().filter(|c| !c.agrees).map(|c| c.counter.as_str()).collect();
    if !disagree.is_empty() {
        text = format!("{text}; {} says otherwise", disagree.join(", "));
    }
    let derived = if drop.derived { " (derived)" } else { "" };
    line(text, format!("{}{derived}", drop.counter))
}

/// The base of a share of the loss at `place`.
pub fn whose(view: &View, place: Place) -> &'static str {
    match view.of_any_protocol(place) {
        Some(_) => "the packets of any protocol that got this far",
        None => "the offered datagrams",
    }
}

/// ` (NAME)` of the watched network namespace, where it has one.
pub fn named(view: &View) -> String {
    let name = &view.raw.namespace;
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

/// Softirqs of this machine worked for other network namespaces.
pub fn elsewhere(view: &View) -> Option<EvidenceLine> {
    let pps = view.raw.elsewhere_pps.map(sound_rate).filter(|pps| *pps > 0.0)?;
    let text = format!(
        "{} packets/s went to other network namespaces: this verdict is about one of them{}",
        si(pps.round()),
        named(view)
    );
    Some(line(text, "softnet_stat processed, less rx packets of this namespace's devices"))
}

/// UDP's losses and rates, if it had traffic, and TCP's state, if it had traffic.
pub fn traffic(view: &View) -> Vec<EvidenceLine> {
    let mut lines = Vec::new();
    if view.offered_packets() > 0 || view.lost_packets() > 0 || !view.raw.watched {
        lines.push(lossless(view));
    }
    if view.offered_packets() > 0 || !view.raw.watched {
        lines.push(rates(view));
    }
    lines.extend(counted_as_one(view));
    lines.extend(tcp::summary(view));
    lines.extend(tcp::services(view));
    lines
}

/// The UDP counts that are not datagrams read by a program.
fn counted_as_one(view: &View) -> Vec<EvidenceLine> {
    let Some(counting) = &view.raw.udp_counting else { return Vec::new() };
    let mut lines = Vec::new();
    let taken = counting.taken_by_kernel_packets as f64 / view.window_s.unwrap_or(f64::INFINITY);
    if sound_rate(taken) >= 1.0 {
        let text = format!(
            "another {} were taken by the kernel itself, as the outer packets of tunnels: they count neither as arrived nor as read",
            rate(taken)
        );
        lines.push(line(
            text,
            "Udp.InDatagrams + Udp6.InDatagrams, less the reads (sock:sock_recv_length)",
        ));
    }
    if let Some(segments) = counting.segments_per_packet.filter(|per| per.is_finite()) {
        let text = format!(
            "a datagram here may be an aggregate: packets of IP had {segments:.1} segments on average, and UDP counts an aggregate that a UDP_GRO socket takes whole as one"
        );
        lines.push(line(text, "IpExt.In*ECTPkts, InCEPkts per Ip.InReceives, IPv6 included"));
    }
    lines
}

/// The source of the window's rates.
pub fn counted_by(view: &View) -> &'static str {
    if view.raw.narrowed && view.sockets.iter().any(|socket| socket.readers.is_some()) {
        "tracepoint sock:sock_recv_length and SO_MEMINFO drops of the sockets asked for"
    } else if view.raw.watched {
        "the kernel's counters of UDP in this network namespace, all ports together"
    } else {
        "sender's and receiver's own counts in the window"
    }
}

/// Offered and delivered rate of the window.
pub fn rates(view: &View) -> EvidenceLine {
    if view.raw.watched {
        let (came, read) = (rate(view.offered_pps()), rate(view.delivered_pps()));
        return line(
            format!("UDP: {came} arrived and {read} were put into sockets and read"),
            counted_by(view),
        );
    }
    let asked = view.target_pps().map(|pps| format!("target rate {}, ", rate(pps)));
    let text = format!(
        "{}the sender offered {} and the application read {}",
        asked.unwrap_or_default(),
        rate(view.offered_pps()),
        rate(view.delivered_pps()),
    );
    line(text, counted_by(view))
}

/// No significant loss.
pub fn lossless(view: &View) -> EvidenceLine {
    let (lost, offered) = (view.lost_packets(), count(view.offered_packets()));
    let surely = if view.possible_losses().is_empty() { "" } else { "surely " };
    let text = if lost == 0 {
        format!("nothing {surely}was lost of {offered} offered")
    } else if view.raw.watched {
        return strays(view);
    } else {
        let share = percent(view.of_offered(lost));
        let lost = count(lost);
        format!("{lost} of {offered} offered ({share}) {surely}lost: too few to be the limit")
    };
    line(text, "ledger")
}

/// Losses of a watched host too small to be a limit: place and counter.
fn strays(view: &View) -> EvidenceLine {
    let mut drops: Vec<&Drop> = view.losses().filter(|drop| drop.packets > 0).collect();
    drops.sort_few_by(|a, b| b.packets.cmp(&a.packets).then(a.counter.cmp(&b.counter)));
    let each = drops.iter().map(|drop| {
        let what = match view.of_any_protocol(drop.place) {
            Some(_) => format!("{} of any protocol", count(drop.packets)),
            None => format!("{} of {} offered", count(drop.packets), count(view.offered_packets())),
        };
        format!("{what} at {}", drop.place.words().noun)
    });
    let text = format!("too few lost to be the limit: {}", each.collect::<Vec<_>>().join(", "));
    let counters: Vec<&str> = drops.iter().map(|drop| drop.counter.as_str()).collect();
    line(text, counters.join("; "))
}

/// The busiest thread of a side: its run and wait time.
pub fn lead(whose: &str, side: &SideThreads) -> EvidenceLine {
    let Lead { running, waiting, .. } = side.lead;
    let which = if side.count > 1 {
        format!("the busiest of the {whose}'s {}", threads(side.count))
    } else {
        format!("the {whose}'s thread")
    };
    let on = side.lead.at().map(|at| format!(" on {at}")).unwrap_or_default();
    let text = format!(
        "{which} ran {} of the window{on} and waited for a CPU {} (running includes softirqs that interrupted it)",
        percent(running),
        percent(waiting),
    );
    line(text, SCHEDSTAT)
}

/// The cost of one datagram for the reading threads, and the rate that follows from it.
pub fn reader_cost(view: &View) -> Option<EvidenceLine> {
    let side = &view.reader;
    let cost_ns = side.cost_ns(view.window_s).filter(|ns| *ns >= 1.0)?;
    let rate_each = 1e9 / cost_ns;
    let text = format!(
        "a datagram cost the receiving application {} of running time: {} can read at most {}",
        span(cost_ns / 1e9),
        threads(side.active),
        rate(rate_each * side.active as f64),
    );
    Some(line(text, format!("{SCHEDSTAT} over the receiver's count")))
}

/// Other users of `cpu`, if significant.
pub fn others_on<'a>(view: &View, cpu: Option<impl Into<CpuAt<'a>>>) -> Vec<EvidenceLine> {
    let Some(at): Option<CpuAt<'_>> = cpu.map(Into::into) else { return Vec::new() };
    let Some(usage) = view.cpu(at) else { return Vec::new() };
    let foreign = usage.foreign_ratio.map(sound_ratio).filter(|ratio| *ratio >= FOREIGN_RATIO);
    let steal = Some(sound_ratio(usage.steal_ratio)).filter(|ratio| *ratio >= STEAL_RATIO);
    let mut lines = Vec::new();
    if let Some(ratio) = foreign {
        let text = format!("threads outside the workload took {} of {at}", percent(ratio));
        lines.push(line(text, "/proc/PID/task/*/schedstat of the others"));
    }
    if let Some(ratio) = steal {
        let text = format!("the hypervisor took {} of {at}", percent(ratio));
        lines.push(line(text, format!("{} steal", at.stat())));
    }
    lines
}

/// How busy `cpu` was, and with what.
pub fn cpu_use<'a>(view: &View, cpu: impl Into<CpuAt<'a>>) -> Option<EvidenceLine> {
    let at: CpuAt<'_> = cpu.into();
    let usage = view.cpu(at)?;
    let share = |ratio: f64| percent(sound_ratio(ratio));
    let mut text = format!(
        "{at} was busy {} of the window; by ticks, which can be wrong by half or more: softirq {}, system {}, user {}",
        percent(view.busy_ratio(at)?),
        share(usage.softirq_ratio),
        share(usage.system_ratio),
        share(usage.user_ratio),
    );
    let mut source = at.stat();
    // Tracepoints were watched on the receiver's machine alone.
    let here = Some(at.cpu).filter(|_| at.host.is_empty());
    if let Some(threads) = here.and_then(|cpu| view.napi_threads_ratio(cpu)) {
        text += &format!("; measured: NAPI threads {}", percent(threads));
        source += ", sched:sched_switch";
    }
    if let Some(probed) = here.and_then(|cpu| view.probed_cpu(cpu)) {
        text += &format!("; measured: network softirqs {}", share(probed.net_softirq_ratio));
        source += ", irq:softirq_entry and softirq_exit";
    }
    Some(line(text, source))
}

/// How busy `cpu` was, with what, and its other users.
pub fn cpu_and_others<'a>(view: &View, cpu: Option<impl Into<CpuAt<'a>>>) -> Vec<EvidenceLine> {
    let at: Option<CpuAt<'_>> = cpu.map(Into::into);
    at.and_then(|at| cpu_use(view, at)).into_iter().chain(others_on(view, at)).collect()
}

/// How full the sockets' queues were.
pub fn queues(view: &View) -> Option<EvidenceLine> {
    let sampled = view.sockets.iter().filter(|s| s.samples > 0 && s.rcvbuf_bytes > 0);
    let fullest = sampled.max_by(|a, b| {
        let fill = |s: &rxpath_record::evidence::SocketUse| {
            sound_ratio(s.queue_mean_bytes / s.rcvbuf_bytes as f64)
        };
        fill(a).total_cmp(&fill(b)).then(b.index.cmp(&a.index))
    })?;
    let of = |bytes: f64| percent(sound_ratio(bytes / fullest.rcvbuf_bytes as f64));
    let which = if fullest.local.is_empty() {
        format!("socket {}", fullest.index)
    } else {
        format!("socket {} ({})", fullest.index, fullest.local)
    };
    let text = format!(
        "the queue of {which} held {} of its {} bytes on average and {} at most ({} samples)",
        of(fullest.queue_mean_bytes),
        count(fullest.rcvbuf_bytes),
        of(fullest.queue_max_bytes as f64),
        count(fullest.samples),
    );
    Some(line(text, "SO_MEMINFO rmem_alloc and rcvbuf"))
}

/// Softirqs of the receive path share the reader's CPU.
pub fn softirq_beside_reader(view: &View) -> Option<EvidenceLine> {
    let cpu = view.softirq_on_reader()?;
    let ratio = view.softirq_ratio(cpu)?;
    let measured = view.probed_cpu(cpu).is_some();
    let (of, source) = if measured {
        ("time", "irq:softirq_entry and softirq_exit".to_owned())
    } else {
        ("ticks", format!("/proc/stat cpu{cpu} softirq"))
    };
    let text = format!(
        "the receive softirq runs on {}, the reader's CPU: {} of its {of}",
        cpus(&[cpu]),
        percent(ratio)
    );
    Some(line(text, source))
}

/// The drops of each service on a watched host, and how the drops of the worst are distributed over its sockets.
pub fn services(view: &View) -> Vec<EvidenceLine> {
    let Some(worst) = view.services.first() else { return Vec::new() };
    let all = view.service_drops();
    let each = view.services.iter().take(SERVICES).map(|service| {
        let part = percent(service.drops() as f64 / all.max(1) as f64);
        format!("{}: {} ({part} of the drops)", service.name(), count(service.drops()))
    });
    let mut text = format!("dropped at {}", each.collect::<Vec<_>>().join("; "));
    if view.services.len() > SERVICES {
        text += &format!("; {} more services", count((view.services.len() - SERVICES) as u64));
    }
    let mut lines = vec![line(text, "SO_MEMINFO drops by address and port")];
    let most = worst.sockets.iter().max_by_key(|s| (s.drops_packets, std::cmp::Reverse(s.index)));
    if let Some(most) = most.filter(|_| worst.sockets.len() > 1) {
        let part = percent(most.drops_packets as f64 / worst.drops().max(1) as f64);
        let counted = worst
            .sockets
            .iter()
            .any(|socket| socket.readers.is_some() || socket.delivered_packets > 0);
        let caution = if counted {
            ""
        } else {
            "; arrivals per socket are not counted, so this alone does not show uneven distribution"
        };
        let text = format!(
            "socket {} of the {} on {} has {part} of its drops{caution}",
            most.index,
            count(worst.sockets.len() as u64),
            worst.local,
        );
        lines.push(line(text, "SO_MEMINFO drops"));
    }
    if worst.sockets.iter().all(|socket| socket.readers.as_ref().is_some_and(Vec::is_empty)) {
        let text = format!("no thread read from {} in the window", worst.local);
        lines.push(line(text, "tracepoint sock:sock_recv_length"));
    }
    lines
}

/// Text that a loss claim adds to another verdict.
pub fn next_loss(view: &View, lost: u64, at: Place) -> String {
    let share = percent(view.share_at(at, lost));
    if view.of_any_protocol(at).is_some() {
        let packets = if lost == 1 { "packet" } else { "packets" };
        return format!(
            "{} {packets} of any protocol ({share} of those that got this far) lost at {}",
            count(lost),
            at.words().noun
        );
    }
    format!("{} ({share} of the offered) lost at {}", datagrams(lost), at.words().noun)
}
