//! What has arrived in a namespace: a softirq thread may deliver a packet after its send has returned.

use rxpath_host::lab::netns::{Inside, Namespace};

use crate::bed::{send, until};

/// Datagrams at a time: a CPU's backlog holds more of them (`netdev_max_backlog`), however long its softirq thread has no CPU.
const AT_ONCE: u32 = 500;

/// Sends `count` datagrams to the receiver's `port`, of which each has arrived then.
pub fn send_all(tx: &Namespace, rx: &Namespace, port: u16, count: u32) {
    for begun in (0..count).step_by(AT_ONCE as usize) {
        let (some, before) = (AT_ONCE.min(count - begun), arrived(rx));
        send(tx, port, some);
        until_arrived(rx, before + u64::from(some));
    }
}

/// Waits until IP has received so many packets there, however long ago the first came.
pub fn until_arrived(ns: &Namespace, packets: u64) {
    until("all have arrived", || arrived(ns) >= packets);
}

/// Packets that IP has received there (`Ip.InReceives`).
fn arrived(ns: &Namespace) -> u64 {
    let received = |_: &mut Inside| {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let values = text.lines().filter(|line| line.starts_with("Ip: ")).nth(1).unwrap();
        // Ip: Forwarding DefaultTTL InReceives
        values.split(' ').nth(3).unwrap().parse::<u64>().unwrap()
    };
    ns.run(received).unwrap()
}
