//! Packets that wait in queues between the two sides, where no counter moves while they do.

use rxpath_record::counters::Snapshot;
use rxpath_record::ledger::{LedgerInput, waiting_packets};

use super::compose::datagrams::sender_said;
use super::side::SideMeasurements;
use crate::scenario::spec::Variant;
use crate::testbed::Testbed;

/// Ethernet header.
const ETHERNET_BYTES: u64 = 14;
/// UDP header.
const UDP_BYTES: u64 = 8;

/// Whether every datagram of the load has left the queues, by the counters at both of their ends.
///
/// Only known for our own sender, who knows what it sent, and where nobody else's packets are counted with its.
/// `hooks` are those that the trial's programs attached in front of IP: what they take waits nowhere.
pub fn nothing(
    variant: &Variant,
    (testbed, hooks): (&dyn Testbed, &[String]),
    load: &SideMeasurements,
    around: [&Snapshot; 2],
) -> bool {
    if testbed.shared_with_others() || variant.load.datagrams().is_none() {
        return true;
    }
    let Some(load) = load.result.udp_load() else { return true };
    let (sender, path) = (sender_said(load), super::compose::path(testbed, hooks));
    let input = LedgerInput { sender, path, ..LedgerInput::default() };
    waiting_packets(&input, &around[1].since(around[0])) == 0
}

/// Datagrams in this many bytes of a queueing discipline.
///
/// **Source** net/core/dev.c `qdisc_pkt_len_init`: the length of an aggregate is that of its segments, each with
/// headers.
pub fn datagrams(queued_bytes: u64, variant: &Variant) -> u64 {
    let Some(datagrams) = variant.load.datagrams() else { return 0 };
    let ip = if variant.lab.ipv6 { 40 } else { 20 };
    queued_bytes / (ETHERNET_BYTES + ip + UDP_BYTES + u64::from(datagrams.size_bytes))
}
