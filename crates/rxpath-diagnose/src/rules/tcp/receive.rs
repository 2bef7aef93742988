//! Segments for which no receive buffer or socket backlog has room.

use rxpath_record::evidence::TcpUse;

use super::reader::full;
use super::{confidence, noteworthy};
use crate::lines::tcp::{DROPPING, PRESSED, counters, moved, service, sum};
use crate::rules::prelude::*;

const BACKLOG: &str = "TcpExt.TCPBacklogDrop";

/// The service at whose connections at least half of the drops happened.
fn dropping(tcp: &TcpUse, lost: u64) -> Option<String> {
    let worst = tcp.services.iter().max_by_key(|one| one.drops_count)?;
    (worst.drops_count > 0 && worst.drops_count >= lost.div_ceil(2)).then(|| service(worst))
}

/// Segments for which a socket got no memory, by the kernel's reasons: some of these drops move no counter
/// (net/ipv4/tcp_input.c `tcp_rcv_established`).
fn without_memory(view: &View) -> u64 {
    let rows = view.raw.ledger.reasons.iter();
    let tcps = rows.filter(|row| row.reason == "PROTO_MEM" && row.place.starts_with("tcp_"));
    tcps.fold(0, |sum, row| sum.saturating_add(row.packets))
}

pub fn judge(view: &View) -> Option<Claim> {
    let tcp = view.raw.tcp.as_ref()?;
    let memory = without_memory(view);
    let lost = sum(tcp, &DROPPING).max(memory);
    // Buffers that nobody empties are that program's matter.
    if (lost == 0 && sum(tcp, &PRESSED) == 0) || full(tcp).is_some() {
        return None;
    }
    let at = dropping(tcp, lost).filter(|_| lost > 0);
    let backlog = moved(tcp, BACKLOG);
    let sentence = match lost {
        0 => "TCP: receive buffers ran short: the kernel had to make room in them, and dropped nothing for it".to_owned(),
        lost => format!(
            "TCP: {} had no room: {} segments were dropped at {} and have to be sent again",
            if backlog > lost / 2 { "socket backlogs" } else { "receive buffers" },
            count(lost),
            at.as_deref().unwrap_or("sockets"),
        ),
    };
    let sure = confidence(lost, at.is_some());
    let which = at.map(|at| {
        line(
            format!("half of the drops or more at connections of {at}"),
            "sock_diag: drops of the connections",
        )
    });
    let reason = (memory > 0).then(|| {
        let text = format!("{} segments found no memory for their socket", count(memory));
        line(text, "skb:kfree_skb PROTO_MEM in TCP's functions")
    });
    let next = format!("TCP: {} segments dropped because receive buffers had no room", count(lost));
    let more_memory = (memory > lost / 2).then_some(
        "more memory for sockets: see which limit it is, memory.events and memory.max of the service's control group (version 1: memory.kmem.tcp.failcnt and memory.kmem.tcp.limit_in_bytes), or /proc/net/sockstat (TCP: mem) near net.ipv4.tcp_mem",
    );
    let shorter_calls = (backlog > 0).then_some(
        "shorter system calls on the connection: its backlog takes what arrives while a thread of the program holds the socket; its limit grows with the receive and send buffers",
    );
    Some(
        Claim::new(Stage::TcpReceive, sure, &[Part::Window], sentence)
            .losing(noteworthy(lost))
            .because(counters(tcp, &[&DROPPING[..], &PRESSED].concat()))
            .because(which)
            .because(reason)
            .next(next)
            .remedies(more_memory)
            .remedies(shorter_calls)
            .remedy("read faster: a full receive buffer is one that its program does not empty (`ss -tm` shows which: Recv-Q, rb)")
            .remedy("larger buffers: the third value of net.ipv4.tcp_rmem where the kernel sizes them, SO_RCVBUF where the program does; net.ipv4.tcp_mem is the limit of all"),
    )
}
