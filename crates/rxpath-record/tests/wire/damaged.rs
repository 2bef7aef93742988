//! Datagrams with a wrong checksum on hosts that have other traffic: which surely are the workload's.

use rxpath_record::ledger::{Balance, Drop, Ledger, LedgerInput, PacketBounds, Place};

use super::shared::{drop_at, shared_input};
use super::{TRUTH, by_place, moved};

/// Payload of datagrams that are verified when they are read.
const LONG: u32 = 173;

/// 40 datagrams of the workload came damaged, and so many of others. 50 segments of others came too.
fn counters(others: i64) -> Vec<(&'static str, i64)> {
    let sent = ["tx/Udp.OutDatagrams", "tx/link.eth0.tx.packets", "tx/ethtool.eth0.tx_packets"];
    let came = [
        "rx/ethtool.eth1.rx_packets",
        "rx/link.eth1.rx.packets",
        "rx/Ip.InReceives",
        "rx/Ip.InDelivers",
        "rx/IpExt.InNoECTPkts",
    ];
    let errors = ["rx/Udp.InErrors", "rx/Udp.InCsumErrors"];
    let mut all = vec![("rx/Tcp.InSegs", 50)];
    all.extend(sent.map(|counter| (counter, 40)));
    all.extend(came.map(|counter| (counter, 50 + 40 + others)));
    all.extend(errors.map(|counter| (counter, 40 + others)));
    all
}

/// Its sockets dropped three for want of room, and so many in all.
fn said(socket_drops: u64, payload_bytes: u32) -> LedgerInput {
    let mut said = shared_input();
    said.sender.offered_packets += 40;
    said.sender.sent_packets += 40;
    said.receiver.socket_drops = Some(vec![socket_drops]);
    said.receiver.payload_bytes = Some(payload_bytes);
    said
}

fn range(said: &LedgerInput, counters: &[(&str, i64)]) -> Option<PacketBounds> {
    let ledger = Ledger::from_counters(said, &moved(counters));
    drop_at(&ledger, Place::Checksum).map(Drop::range)
}

fn between(least_packets: u64, most: u64) -> PacketBounds {
    PacketBounds { least_packets, most_packets: Some(most) }
}

#[test]
fn what_the_workload_s_sockets_dropped_is_surely_its_own() {
    let mut said = said(43, LONG);
    assert_eq!(range(&said, &counters(0)), Some(between(40, 40)));
    assert_eq!(range(&said, &counters(25)), Some(between(40, 65)));
    // Sockets of others had no room for ten: the workload's may have dropped them.
    let full = ["rx/Udp.InErrors", "rx/Udp.RcvbufErrors"].map(|counter| (counter, 10));
    assert_eq!(range(&said, &[&counters(25)[..], &full].concat()), Some(between(30, 65)));
    // What is missing in all leaves the others no more than they lost, and nothing is unaccounted for.
    said.receiver.sequence_lost_packets = Some(50);
    let ledger = Ledger::from_counters(&said, &moved(&counters(0)));
    let [network, ring, socket] = TRUTH;
    let all = [network, ring, (Place::Checksum, 40), socket];
    assert_eq!((by_place(&ledger), ledger.balance()), (all.to_vec(), Balance::Closed));
}

#[test]
fn a_checksum_that_was_verified_before_the_socket_may_be_of_anybody() {
    assert_eq!(range(&said(3, 18), &counters(0)), Some(between(0, 40)), "a short datagram");
    // Connection tracking verifies long ones too.
    assert_eq!(range(&said(3, LONG), &counters(0)), Some(between(0, 40)));
    let mut unread = said(43, LONG);
    unread.receiver.socket_drops = None;
    assert_eq!(range(&unread, &counters(0)), Some(between(0, 40)));
}
