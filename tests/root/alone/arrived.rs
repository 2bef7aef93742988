//! What has arrived in a namespace: a softirq thread may deliver a packet after its send has returned.

use rxpath_host::lab::netns::{Inside, Namespace};

use crate::bed::until;

/// Waits until IP has received so many packets there, however long ago the first came (`Ip.InReceives`).
pub fn until_arrived(ns: &Namespace, packets: u64) {
    let received = |_: &mut Inside| {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let values = text.lines().filter(|line| line.starts_with("Ip: ")).nth(1).unwrap();
        // Ip: Forwarding DefaultTTL InReceives
        values.split(' ').nth(3).unwrap().parse::<u64>().unwrap()
    };
    until("all have arrived", || ns.run(received).unwrap() >= packets);
}
