//! TCP's part of a watched host: connections that nobody accepts in time, segments for which no buffer has room.
//!
//! What a trial's ledger of TCP says is another matter: here counters of the whole namespace moved.

use rxpath_record::evidence::{Listener, TcpUse};
use rxpath_record::verdict::{Confidence, EvidenceLine, Stage};

use crate::claim::{Claim, Part};
use crate::lines::line;
use crate::thresholds::REQUESTS_LOST_COUNT;
use crate::view::View;
use crate::wording::count;

/// Requests and finished handshakes that a listener dropped, whatever the reason. `ListenOverflows` are among them
/// (net/ipv4/tcp_ipv4.c `tcp_v4_syn_recv_sock`, tcp_input.c `tcp_conn_request`).
const LISTEN_DROPS: &str = "TcpExt.ListenDrops";
const LISTEN_OVERFLOWS: &str = "TcpExt.ListenOverflows";
const LISTENING: [&str; 4] =
    [LISTEN_DROPS, LISTEN_OVERFLOWS, "TcpExt.TCPReqQFullDrop", "TcpExt.TCPReqQFullDoCookies"];
/// Segments that were dropped: no counter counts another's.
const DROPPING: [&str; 4] = [
    "TcpExt.TCPRcvQDrop",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPOFODrop",
    "TcpExt.TCPZeroWindowDrop",
];
/// That a receive buffer was full, whether or not something had to be dropped for it. A segment that makes `RcvPruned` move
/// is dropped by the caller, which counts it too (net/ipv4/tcp_input.c `tcp_prune_queue`, `tcp_try_rmem_schedule`).
const PRESSED: [&str; 4] =
    ["TcpExt.PruneCalled", "TcpExt.RcvPruned", "TcpExt.OfoPruned", "TcpExt.TCPRcvCollapsed"];

fn moved(tcp: &TcpUse, name: &str) -> u64 {
    tcp.counters.get(name).copied().unwrap_or(0)
}

fn sum(tcp: &TcpUse, names: &[&str]) -> u64 {
    names.iter().fold(0, |sum, name| sum.saturating_add(moved(tcp, name)))
}

/// One line of the counters among `names` that moved.
fn counters(tcp: &TcpUse, names: &[&str]) -> Option<EvidenceLine> {
    let found: Vec<&str> = names.iter().copied().filter(|name| moved(tcp, name) > 0).collect();
    let each = found.iter().map(|name| {
        format!("{} by {}", name.trim_start_matches("TcpExt."), count(moved(tcp, name)))
    });
    let text = format!("moved in this network namespace: {}", each.collect::<Vec<_>>().join(", "));
    (!found.is_empty()).then(|| line(text, found.join(", ")))
}

fn named(listener: &Listener) -> String {
    match listener.owners.first() {
        Some(owner) => format!("{} of {} ({})", listener.local, owner.name, owner.pid),
        None => listener.local.clone(),
    }
}

/// The listener that dropped most.
fn worst(tcp: &TcpUse) -> Option<&Listener> {
    let dropping = tcp.listeners.iter().filter(|listener| listener.drops_count > 0);
    dropping.max_by_key(|listener| (listener.drops_count, std::cmp::Reverse(&listener.local)))
}

/// What decides among losses: a few are told where nothing else limits.
fn noteworthy(lost: u64) -> u64 {
    if lost >= REQUESTS_LOST_COUNT { lost } else { 0 }
}

pub fn accept_queue(view: &View) -> Option<Claim> {
    let tcp = view.raw.tcp.as_ref()?;
    let lost = moved(tcp, LISTEN_DROPS).max(moved(tcp, LISTEN_OVERFLOWS));
    if lost == 0 && sum(tcp, &LISTENING) == 0 {
        return None;
    }
    let overflows = moved(tcp, LISTEN_OVERFLOWS) > 0;
    let sure = match (lost >= REQUESTS_LOST_COUNT, overflows) {
        (true, true) => Confidence::Strong,
        (true, false) => Confidence::Fair,
        (false, _) => Confidence::Weak,
    };
    let at = worst(tcp).map_or_else(|| "a listener".into(), named);
    if lost == 0 {
        let sentence = "TCP: a queue of handshakes was full; they were answered with SYN cookies, and none was dropped";
        let claim =
            Claim::new(Stage::AcceptQueue, Confidence::Weak, &[Part::Window], sentence.into());
        return Some(claim.because(counters(tcp, &LISTENING)).cure(
            "a longer queue of handshakes: net.ipv4.tcp_max_syn_backlog and the backlog of listen(2)",
        ));
    }
    let what = if overflows {
        "more connections are made than are accepted: its accept queue was full"
    } else {
        "not because its accept queue was full: the queue of handshakes was, or a connection could not be made"
    };
    let sentence = format!(
        "TCP: {at} dropped {} connection requests or finished handshakes; {what}",
        count(worst(tcp).map_or(lost, |listener| listener.drops_count))
    );
    let full = tcp.listeners.iter().map(|listener| {
        let text = format!(
            "{}: {} dropped; {} waited at the end, more than {} may not",
            named(listener),
            count(listener.drops_count),
            count(listener.waiting_count.into()),
            count(u64::from(listener.backlog_count) + 1),
        );
        line(text, "sock_diag of the listening sockets: queues and drops")
    });
    Some(
        Claim::new(Stage::AcceptQueue, sure, &[Part::Window], sentence)
            .losing(noteworthy(lost))
            .because(counters(tcp, &LISTENING))
            .because(full)
            .cure("accept faster: the accepting thread waits or is full; more of them, each with a SO_REUSEPORT listener, share the connections")
            .cure("a longer queue: the backlog of listen(2), which net.core.somaxconn caps; handshakes that are not finished have net.ipv4.tcp_max_syn_backlog")
            .next(format!("TCP: {} connection requests dropped at listeners", count(lost))),
    )
}

pub fn receive(view: &View) -> Option<Claim> {
    let tcp = view.raw.tcp.as_ref()?;
    let lost = sum(tcp, &DROPPING);
    if lost == 0 && sum(tcp, &PRESSED) == 0 {
        return None;
    }
    let sentence = if lost > 0 {
        format!(
            "TCP: receive buffers had no room: {} segments were dropped at sockets and have to be sent again",
            count(lost)
        )
    } else {
        "TCP: receive buffers ran short: the kernel had to make room in them, and dropped nothing for it".into()
    };
    // Counters of a namespace: which socket it was is not told.
    let sure = if lost >= REQUESTS_LOST_COUNT { Confidence::Fair } else { Confidence::Weak };
    Some(
        Claim::new(Stage::TcpReceive, sure, &[Part::Window], sentence)
            .losing(noteworthy(lost))
            .because(counters(tcp, &[&DROPPING[..], &PRESSED].concat()))
            .cure("read faster: a full receive buffer is one that its program does not empty (`ss -tm` shows which: Recv-Q, rb)")
            .cure("larger buffers: the third value of net.ipv4.tcp_rmem where the kernel sizes them, SO_RCVBUF where the program does; net.ipv4.tcp_mem is the limit of all")
            .next(format!("TCP: {} segments dropped for want of room in receive buffers", count(lost))),
    )
}
