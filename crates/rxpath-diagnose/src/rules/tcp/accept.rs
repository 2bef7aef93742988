//! Connections are made faster than they are accepted, or their handshakes find no room.
//!
//! A full accept queue drops SYNs and the last segments of handshakes, with SYN cookies too. A full SYN queue drops SYNs only
//! without cookies (net/ipv4/tcp_input.c `tcp_conn_request`, tcp_ipv4.c `tcp_v4_syn_recv_sock`).

use rxpath_record::evidence::{Listener, TcpUse};

use super::{confidence, noteworthy};
use crate::lines::tcp::{LISTEN_DROPS, LISTEN_OVERFLOWS, at, counters, moved, sum};
use crate::rules::prelude::*;

/// A full SYN queue dropped a SYN: there were no cookies.
const SYN_DROPS: &str = "TcpExt.TCPReqQFullDrop";
/// Queues that were full, with and without a drop.
const LISTENING: [&str; 5] = [
    LISTEN_DROPS,
    LISTEN_OVERFLOWS,
    SYN_DROPS,
    "TcpExt.TCPReqQFullDoCookies",
    "TcpExt.SyncookiesSent",
];
/// Those that are no drops. With `net.ipv4.tcp_syncookies` 2 each SYN gets a cookie.
const COOKIES: [&str; 2] = ["TcpExt.TCPReqQFullDoCookies", "TcpExt.SyncookiesSent"];
const LONGER: &str = "a longer queue: the backlog of listen(2) in the service's configuration, which net.core.somaxconn caps; it is the length of the accept queue and of the SYN queue, and net.ipv4.tcp_max_syn_backlog counts only without SYN cookies";
const FASTER: &str = "accept faster: the accepting thread waits or is full; more of them, each with a SO_REUSEPORT listener, share the connections";
const WITH_COOKIES: &str =
    "SYN cookies (net.ipv4.tcp_syncookies 1): a full SYN queue then drops no connection request";

/// The listener that dropped most.
fn worst(tcp: &TcpUse) -> Option<&Listener> {
    let dropping = tcp.listeners.iter().filter(|listener| listener.drops_count > 0);
    dropping.max_by_key(|listener| (listener.drops_count, std::cmp::Reverse(&listener.local)))
}

/// A listener whose accept queue was full in a sample: one more than the backlog may wait.
fn full(tcp: &TcpUse) -> Option<&Listener> {
    let full = tcp.listeners.iter().filter(|it| it.waiting_max_count > it.backlog_count);
    full.max_by_key(|listener| (listener.waiting_max_count, std::cmp::Reverse(&listener.local)))
}

fn named(listener: &Listener) -> String {
    at(&listener.local, &listener.owners)
}

fn queues(tcp: &TcpUse) -> impl Iterator<Item = EvidenceLine> {
    tcp.listeners.iter().map(|listener| {
        let text = format!(
            "{}: {} dropped; {} waited to be accepted at the end, {} at most in a sample, the limit is {}",
            named(listener),
            count(listener.drops_count),
            count(listener.waiting_count.into()),
            count(listener.waiting_max_count.max(listener.waiting_count).into()),
            count(u64::from(listener.backlog_count) + 1),
        );
        line(text, "sock_diag of the listening sockets: queues and drops")
    })
}

pub fn judge(view: &View) -> Option<Claim> {
    let tcp = view.raw.tcp.as_ref()?;
    let lost = moved(tcp, LISTEN_DROPS).max(moved(tcp, LISTEN_OVERFLOWS));
    if lost == 0 {
        return lossless(tcp);
    }
    let overflows = moved(tcp, LISTEN_OVERFLOWS) > 0;
    let sure = confidence(lost, overflows);
    let at = worst(tcp).map_or_else(|| "a listener".into(), named);
    let (what, first) = if overflows {
        ("more connections are made than are accepted: its accept queue was full", Some(FASTER))
    } else if moved(tcp, SYN_DROPS) > 0 {
        ("its SYN queue was full, without SYN cookies", Some(WITH_COOKIES))
    } else {
        // Near tcp_max_syn_backlog only `ListenDrops` counts.
        let what = "its accept queue was not full: a connection could not be made, or open handshakes came near net.ipv4.tcp_max_syn_backlog without SYN cookies";
        (what, None)
    };
    let sentence = format!(
        "TCP: {at} dropped {} connection requests or finished handshakes; {what}",
        count(worst(tcp).map_or(lost, |listener| listener.drops_count))
    );
    Some(
        Claim::new(Stage::AcceptQueue, sure, &[Part::Window], sentence)
            .losing(noteworthy(lost))
            .because(counters(tcp, &LISTENING))
            .because(queues(tcp))
            .remedies(first)
            .remedy(LONGER)
            .next(format!("TCP: {} connection requests dropped at listeners", count(lost))),
    )
}

/// A queue was full and nothing was dropped for it.
fn lossless(tcp: &TcpUse) -> Option<Claim> {
    let claim = |sentence: String| {
        Claim::new(Stage::AcceptQueue, Confidence::Weak, &[Part::Window], sentence)
            .because(counters(tcp, &LISTENING))
            .because(queues(tcp))
    };
    if let Some(listener) = full(tcp) {
        let next = format!("TCP: the accept queue of {} was full", named(listener));
        let sentence = format!("{next} in a sample; nothing was dropped for it yet");
        return Some(claim(sentence).remedy(FASTER).remedy(LONGER).next(next));
    }
    (sum(tcp, &LISTENING) > 0).then(|| {
        let sentence = if sum(tcp, &COOKIES) > 0 {
            "TCP: handshakes were answered with SYN cookies, and none was dropped: a SYN queue was full, or net.ipv4.tcp_syncookies is 2"
        } else {
            "TCP: a SYN queue was full; no listener counted a drop"
        };
        claim(sentence.into()).remedy(LONGER)
    })
}
