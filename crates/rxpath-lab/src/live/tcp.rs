//! TCP's part of the receive path: counters that tell of full queues, and the listeners that drop.

use std::collections::BTreeMap;

use rxpath_host::netlink::{Netlink, TcpSocket};
use rxpath_record::counters::Moved;
use rxpath_record::evidence::{Listener, TcpUse};

use super::places::sum;
use super::readers::{Owners, owners_of};

/// Counters of drops in TCP's receive path.
const BESIDE: [&str; 7] = [
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.RcvPruned",
    "TcpExt.TCPOFODrop",
    "TcpExt.TCPZeroWindowDrop",
];
/// Counters that tell of full queues without a drop of their own.
const PRESSED: [&str; 5] = [
    "TcpExt.TCPReqQFullDrop",
    "TcpExt.TCPReqQFullDoCookies",
    "TcpExt.PruneCalled",
    "TcpExt.OfoPruned",
    "TcpExt.TCPRcvCollapsed",
];
/// Listeners that are named, at most.
const LISTENERS: usize = 8;

/// The listening sockets now; none where they cannot be listed: the counters tell the rest.
pub(super) fn listeners() -> Vec<TcpSocket> {
    Netlink::sock_diag().and_then(|mut diag| diag.tcp_listeners()).unwrap_or_default()
}

/// What moved, and who dropped; `None` when nothing moved.
pub(super) fn used(moved: &Moved, ends: [&[TcpSocket]; 2], owners: &Owners) -> Option<TcpUse> {
    let names = BESIDE.iter().chain(&PRESSED);
    let counters: BTreeMap<String, u64> = names
        .filter_map(|name| Some(((*name).to_owned(), sum(moved, &[name])?)))
        .filter(|(_, count)| *count > 0)
        .collect();
    if counters.is_empty() {
        return None;
    }
    let drops = |socket: &TcpSocket| socket.memory.map_or(0, |memory| memory.drops);
    let before: BTreeMap<u32, u32> = ends[0].iter().map(|it| (it.inode, drops(it))).collect();
    let one = |socket: &TcpSocket| Listener {
        local: socket.local.to_string(),
        owners: owners_of(socket.inode, owners),
        waiting_count: socket.receive_queue,
        backlog_count: socket.send_queue,
        // A listener that came in the window dropped all of it in the window.
        drops_count: drops(socket)
            .wrapping_sub(before.get(&socket.inode).copied().unwrap_or(0))
            .into(),
    };
    let told = |listener: &Listener| {
        listener.drops_count > 0 || listener.waiting_count > listener.backlog_count
    };
    let mut listeners: Vec<Listener> = ends[1].iter().map(one).filter(told).collect();
    listeners.sort_by(|a, b| b.drops_count.cmp(&a.drops_count).then(a.local.cmp(&b.local)));
    listeners.truncate(LISTENERS);
    Some(TcpUse { counters, listeners })
}
