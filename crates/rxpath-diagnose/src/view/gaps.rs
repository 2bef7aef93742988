//! What is missing from the evidence, and how much it matters.

use rxpath_record::evidence::{SocketUse, SoftirqPlace};
use rxpath_record::ledger::{Balance, Place};
use rxpath_record::verdict::Confidence;

use super::{SideThreads, View};
use crate::part::Part;
use crate::thresholds::{COVERED_RATIO, UNACCOUNTED_RATIO, WINDOW_SHORT_S, WINDOW_TOO_SHORT_S};
use crate::wording::{count, percent, span};

/// One gap.
#[derive(Clone, Debug)]
pub struct EvidenceGap {
    /// Where.
    pub part: Part,
    /// The highest confidence of a claim that rests on this part.
    pub cap: Confidence,
    /// What is missing, as text.
    pub text: String,
    /// Where it should have come from.
    pub source: &'static str,
}

/// Everything that is missing, in a fixed order.
pub fn find(view: &View) -> Vec<EvidenceGap> {
    [ledger(view), window(view), senders(view), readers(view), cpus(view), sockets(view)]
        .into_iter()
        .flatten()
        .chain(places(view))
        .collect()
}

/// Losses that would not be seen.
fn places<'a>(view: &'a View<'_>) -> impl Iterator<Item = EvidenceGap> + 'a {
    let source = "places of loss that were not read";
    view.raw.unread.iter().map(move |what| support(Part::Places, what.clone(), source))
}

/// The rest can still decide, but not with certainty.
fn support(part: Part, text: String, source: &'static str) -> EvidenceGap {
    EvidenceGap { part, cap: Confidence::Fair, text, source }
}

/// Without it, several explanations fit.
fn essential(part: Part, text: String, source: &'static str) -> EvidenceGap {
    EvidenceGap { part, cap: Confidence::Weak, text, source }
}

fn ledger(view: &View) -> Option<EvidenceGap> {
    let ledger = &view.raw.ledger;
    let (packets, text) = match ledger.balance() {
        Balance::Closed => {
            let text = format!("the ledger carries a note: {}", ledger.notes.iter().min()?);
            return Some(support(Part::Ledger, text, "ledger"));
        }
        Balance::Within(packets) => {
            let text = format!(
                "the ledger closes within the bounds of its counters: at most {} datagrams unaccounted for, {} of the offered \
                 ones",
                count(packets),
                percent(view.of_offered(packets))
            );
            (packets, text)
        }
        Balance::Missing(packets) => {
            let share = percent(view.of_offered(packets));
            let text = format!(
                "the ledger does not close: {} datagrams unaccounted for, {share} of the offered ones",
                ledger.unaccounted()
            );
            (packets, text)
        }
        Balance::Excess(packets) => {
            let text = format!(
                "the ledger does not close: {} more datagrams arrived than were sent",
                count(packets)
            );
            (packets, text)
        }
        Balance::Unknown => {
            let bounds = ledger.inexact.iter().map(ToString::to_string).min();
            let why = bounds.or_else(|| ledger.notes.iter().min().cloned()).unwrap_or_default();
            let text = format!("whether the ledger closes is not known: {why}");
            return Some(essential(Part::Ledger, text, "ledger"));
        }
    };
    let is_wide = view.of_offered(packets) > UNACCOUNTED_RATIO;
    let gap = if is_wide { essential } else { support };
    Some(gap(Part::Ledger, text, "ledger"))
}

fn window(view: &View) -> Option<EvidenceGap> {
    let source = "the measured window";
    let Some(window_s) = view.window_s else {
        let text = "the window has no length: rates and shares mean nothing".into();
        return Some(essential(Part::Window, text, source));
    };
    let text = |what: &str| format!("the window is {} long: {what}", span(window_s));
    if window_s < WINDOW_TOO_SHORT_S {
        return Some(essential(Part::Window, text("a few ticks decide every CPU share"), source));
    }
    (window_s < WINDOW_SHORT_S)
        .then(|| support(Part::Window, text("CPU shares are coarse"), source))
}

/// Threads of a side whose time, or whose CPU, was not measured; `doing` is what they do.
fn threads(
    side: &SideThreads,
    part: Part,
    doing: &str,
    source: &'static str,
) -> Option<EvidenceGap> {
    let text = match side {
        SideThreads { count: 0, .. } => format!("CPU time of the {doing} threads"),
        SideThreads { seen: false, .. } => {
            format!("the CPU on which a {doing} thread really ran")
        }
        _ => return None,
    };
    Some(essential(part, text, source))
}

fn senders(view: &View) -> Option<EvidenceGap> {
    // On a watched host no sender is judged.
    if view.raw.watched {
        return None;
    }
    let source = "/proc/PID/task/TID/schedstat of the sender";
    threads(&view.sender, Part::Senders, "sending", source).or_else(|| {
        let elsewhere = view.sender.lead.at().filter(|at| !at.host.is_empty());
        let unread = elsewhere.filter(|at| view.cpu(*at).is_none())?;
        Some(essential(Part::Senders, format!("CPU time of {unread}"), "/proc/stat of the sender"))
    })
}

fn readers(view: &View) -> Option<EvidenceGap> {
    let source = "/proc/PID/task/TID/schedstat of the receiver";
    let side = &view.reader;
    if let Some(gap) = threads(side, Part::Readers, "receiving", source) {
        return Some(gap);
    }
    if let Some(unsure) = &view.unsure {
        return Some(essential(Part::Readers, unsure.text.clone(), source));
    }
    let read = view.delivered_pps() * view.window_s.unwrap_or(0.0);
    let share = side.packets as f64 / read;
    // A reader that does not count its datagrams (0) differs from one that was left out.
    (side.packets > 0 && share < COVERED_RATIO).then(|| {
        let text = format!("threads that read {} of the datagrams", percent(1.0 - share));
        essential(Part::Readers, text, source)
    })
}

fn cpus(view: &View) -> Option<EvidenceGap> {
    let named = view.sender.cpus.iter().chain(&view.reader.cpus).chain(&view.softirq_cpus);
    let (text, source) = if view.cpus.is_empty() {
        ("CPU time of every CPU".into(), "/proc/stat")
    } else if let Some(cpu) = named.copied().filter(|&cpu| view.cpu(cpu).is_none()).min() {
        (format!("CPU time of CPU {cpu}"), "/proc/stat")
    } else if view.softirq_cpus.is_empty() {
        ("the CPU on which the receive softirq ran".into(), "/proc/softirqs")
    } else if view.raw.watched
        && matches!(view.raw.softirq, SoftirqPlace::NapiThread { .. })
        && view.softirq_cpus.iter().any(|cpu| view.napi_threads_ratio(*cpu).is_none())
    {
        // In a lab nothing else runs there.
        let text = "the NAPI thread's part of its CPU's system time".into();
        return Some(support(Part::Cpus, text, "/proc/stat"));
    } else {
        return None;
    };
    Some(essential(Part::Cpus, text, source))
}

fn sockets(view: &View) -> Option<EvidenceGap> {
    if !view.services_lost_most() {
        let lost = view.lost_at(Place::SocketBuffer);
        let text = format!(
            "most of the sockets that dropped: those that were looked at dropped {} of the {} datagrams lost at socket buffers",
            count(view.service_drops().min(lost)),
            count(lost),
        );
        return Some(essential(Part::Sockets, text, "SO_MEMINFO drops of the sockets"));
    }
    if let Some((text, source)) = members(view) {
        return Some(support(Part::Sockets, text, source));
    }
    let text = if view.sockets.is_empty() {
        "memory and drops of the receiving sockets"
    } else if view.sockets.iter().all(|socket| socket.samples == 0) {
        "samples of the sockets' queues in the window"
    } else {
        return None;
    };
    let source = "SO_MEMINFO of the receiving sockets";
    Some(support(Part::Sockets, text.into(), source))
}

/// In a watched group in which some sockets drop and others do not: whether the others got packets, and which threads
/// would read them.
fn members(view: &View) -> Option<(String, &'static str)> {
    let sockets = &view.sockets;
    let nothing = |it: &&&SocketUse| it.delivered_packets == 0 && it.drops_packets == 0;
    let idle: Vec<_> = sockets.iter().filter(nothing).collect();
    if !view.raw.watched || idle.is_empty() || idle.len() == sockets.len() {
        return None;
    }
    let (of, all) = (count(idle.len() as u64), count(sockets.len() as u64));
    if sockets.iter().any(|socket| socket.readers.is_none()) {
        let text = format!("whether the {of} of {all} sockets that dropped nothing got anything");
        return Some((text, "tracepoint sock:sock_recv_length"));
    }
    let unknown = idle.iter().filter(|socket| socket.waiters.as_ref().is_none_or(Vec::is_empty));
    let unknown = unknown.count() as u64;
    (unknown > 0).then(|| {
        let text =
            format!("who would read {} of the {all} sockets, which got nothing", count(unknown));
        (text, "/proc/PID/task/TID/syscall")
    })
}
