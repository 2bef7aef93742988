//! TCP's part of the receive path: its counters, the listeners whose queues are full, the services by their connections.

mod looks;
mod services;

use std::collections::BTreeMap;

use rxpath_core::{IntoMap, SortFew};
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::TcpSocket;
use rxpath_record::evidence::{Listener, TcpUse};

use super::owners::owners_of;
use super::places::sum;
use super::{LiveRequest, Read};

pub(crate) use looks::TcpLooks;

/// Counters of drops in TCP's receive path.
const DROPS: [&str; 7] = [
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.RcvPruned",
    "TcpExt.TCPOFODrop",
    "TcpExt.TCPZeroWindowDrop",
];
/// Counters of full queues that are no drops themselves.
const PRESSED: [&str; 9] = [
    "TcpExt.TCPReqQFullDrop",
    "TcpExt.TCPReqQFullDoCookies",
    "TcpExt.SyncookiesSent",
    "TcpExt.PruneCalled",
    "TcpExt.OfoPruned",
    "TcpExt.TCPRcvCollapsed",
    "TcpExt.TCPToZeroWindowAdv",
    "TcpExt.TCPWantZeroWindowAdv",
    "TcpExt.TCPMemoryPressures",
];
/// Counters of gaps, of duplicates and of what was sent again.
const AGAIN: [&str; 5] = [
    "TcpExt.TCPOFOQueue",
    "TcpExt.TCPDSACKOldSent",
    "TcpExt.TCPDSACKOfoSent",
    "Tcp.RetransSegs",
    "Tcp.InErrs",
];
/// Listeners that are named, at most.
const LISTENERS: usize = 8;

/// The listening sockets now; none where they cannot be listed: the counters show the rest.
pub(super) fn listeners() -> Vec<TcpSocket> {
    Netlink::sock_diag().and_then(|mut diag| diag.tcp_listeners()).unwrap_or_default()
}

/// TCP's part; `None` when no segment came, no counter moved and nothing waits.
pub(super) fn used(read: &Read<'_>) -> Option<TcpUse> {
    let names = DROPS.iter().chain(&PRESSED).chain(&AGAIN);
    let counters: BTreeMap<String, u64> = names
        .filter_map(|name| Some(((*name).to_owned(), sum(read.moved, &[name])?)))
        .filter(|(_, count)| *count > 0)
        .into_map();
    let received_segments = sum(read.moved, &["Tcp.InSegs"]).unwrap_or(0);
    let (services, listeners) = (services::of(read), full_listeners(read));
    let still = counters.is_empty() && received_segments == 0;
    if still && services.is_empty() && listeners.is_empty() {
        return None;
    }
    Some(TcpUse {
        received_segments,
        sent_segments: sum(read.moved, &["Tcp.OutSegs"]).unwrap_or(0),
        counters,
        listeners,
        services,
        connections_count: read.tcp.open_count(),
        gap: read.tcp.gap.clone(),
    })
}

/// Listeners that dropped something or whose queue was full in a sample, the one that dropped most first.
fn full_listeners(read: &Read<'_>) -> Vec<Listener> {
    let drops = |socket: &TcpSocket| socket.memory.map_or(0, |memory| memory.drops);
    let before: BTreeMap<u32, u32> =
        read.around[0].listeners.iter().map(|it| (it.inode, drops(it))).into_map();
    let one = |socket: &TcpSocket| Listener {
        local: socket.local.to_string(),
        owners: owners_of(socket.inode, read.owners),
        waiting_count: socket.receive_queue,
        waiting_max_count: read.tcp.most_waiting(socket.inode).max(socket.receive_queue),
        backlog_count: socket.send_queue,
        // A listener that came in the window dropped all of it in the window.
        drops_count: drops(socket)
            .wrapping_sub(before.get(&socket.inode).copied().unwrap_or(0))
            .into(),
    };
    let full = |listener: &Listener| {
        listener.drops_count > 0 || listener.waiting_max_count > listener.backlog_count
    };
    let covers = read.asked.map(LiveRequest::covers);
    let of_asked = |socket: &&TcpSocket| covers.as_ref().is_none_or(|covers| covers(socket));
    let now = read.around[1].listeners.iter().filter(of_asked);
    let mut listeners: Vec<Listener> = now.map(one).filter(full).collect();
    listeners.sort_few_by(|a, b| {
        let drops = b.drops_count.cmp(&a.drops_count);
        drops.then(b.waiting_max_count.cmp(&a.waiting_max_count)).then(a.local.cmp(&b.local))
    });
    listeners.truncate(LISTENERS);
    listeners
}
