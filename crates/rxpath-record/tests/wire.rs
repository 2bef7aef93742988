//! The ledger between two network cards: what the wire lost, what the cards lost, and what is not known.

#[path = "wire/damaged.rs"]
mod damaged;
#[path = "wire/egress.rs"]
mod egress;
#[path = "wire/segments.rs"]
mod segments;
#[path = "wire/shared.rs"]
mod shared;
#[path = "wire/whose.rs"]
mod whose;
#[path = "wire/worlds.rs"]
mod worlds;

use std::collections::BTreeMap;

use rxpath_record::counters::Moved;
use rxpath_record::ledger::{
    Ledger, LedgerInput, Link, OneWay, PathFacts, Place, ReceiverSaid, SenderSaid, WireCounters,
    WireFacts,
};

/// 1,000 datagrams: the network lost 6, the ring 1, the socket 3. Between cards of the driver igb.
const MOVED: [(&str, i64); 13] = [
    ("tx/Udp.OutDatagrams", 1_000),
    ("tx/link.eth0.tx.packets", 1_000),
    ("tx/ethtool.eth0.tx_packets", 1_000),
    ("rx/ethtool.eth1.rx_packets", 993),
    ("rx/ethtool.eth1.rx_missed_errors", 1),
    ("rx/link.eth1.rx.packets", 993),
    ("rx/Ip.InReceives", 993),
    ("rx/Ip.InDelivers", 993),
    ("rx/IpExt.InNoECTPkts", 993),
    ("rx/Udp.InDatagrams", 990),
    ("rx/Udp.InErrors", 3),
    ("rx/Udp.RcvbufErrors", 3),
    ("machine/softnet.cpu0.processed", 993),
];

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

fn input() -> LedgerInput {
    let missed = "rx/ethtool.eth1.rx_missed_errors";
    let forward = OneWay {
        sent: names(&["tx/ethtool.eth0.tx_packets"]),
        received: names(&["rx/ethtool.eth1.rx_packets", missed]),
        ..OneWay::default()
    };
    LedgerInput {
        sender: SenderSaid { offered_packets: 1_000, sent_packets: 1_000, ..SenderSaid::default() },
        receiver: ReceiverSaid {
            delivered_packets: 990,
            socket_drops: Some(vec![3]),
            payload_bytes: Some(18),
            ..ReceiverSaid::default()
        },
        path: PathFacts {
            tx_device: Some("eth0".into()),
            rx_device: Some("eth1".into()),
            link: Link::Nic,
            input_rules: Some(Vec::new()),
            ring: names(&[missed]),
            wire: WireFacts::Counted(Box::new(WireCounters {
                forward,
                backward: OneWay::default(),
            })),
            ..PathFacts::default()
        },
        reasoned: None,
    }
}

fn moved(more: &[(&str, i64)]) -> Moved {
    let mut values: BTreeMap<String, i64> =
        MOVED.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
    for (name, by) in more {
        *values.entry((*name).to_owned()).or_default() += by;
    }
    Moved { values, gaps: BTreeMap::new() }
}

fn by_place(ledger: &Ledger) -> Vec<(Place, u64)> {
    ledger.drops.iter().map(|drop| (drop.place, drop.packets)).collect()
}

const TRUTH: [(Place, u64); 3] = [(Place::Network, 6), (Place::Ring, 1), (Place::SocketBuffer, 3)];

#[test]
fn the_network_s_loss_is_what_one_card_sent_and_the_other_did_not_receive() {
    let ledger = Ledger::from_counters(&input(), &moved(&[]));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert_eq!((ledger.unaccounted_packets, ledger.notes.len()), (Some(0), 0), "{ledger:#?}");
    let network = &ledger.drops[0];
    assert!(network.derived && network.exact, "{network:?}");
}

#[test]
fn the_network_s_own_counters_are_in_a_note_and_are_never_added() {
    let switch = [("network/sw1.eth4.drops", 6)];
    let ledger = Ledger::from_counters(&input(), &moved(&switch));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
    let note = "the network's own counters changed: network/sw1.eth4.drops by 6";
    assert_eq!(ledger.notes, [note]);
    let mut unread = moved(&[]);
    unread.gaps.insert("network/".into(), "network.counters failed (exit status: 3)".into());
    unread.gaps.insert("network/sw2.drops".into(), "not there before the trial".into());
    let ledger = Ledger::from_counters(&input(), &unread);
    let whole =
        "the network's own counters are not known: network.counters failed (exit status: 3)";
    let one = "network/sw2.drops is not known: not there before the trial";
    assert_eq!(ledger.notes, [whole, one]);
}

#[test]
fn other_traffic_of_the_cards_makes_the_loss_an_interval_that_sequence_numbers_narrow() {
    // 500 segments to other hosts, 50 from others.
    let more = [
        ("tx/Tcp.OutSegs", 500),
        ("tx/ethtool.eth0.tx_packets", 500),
        ("tx/link.eth0.tx.packets", 500),
        ("rx/Tcp.InSegs", 50),
        ("rx/ethtool.eth1.rx_packets", 50),
        ("rx/link.eth1.rx.packets", 50),
        ("rx/Ip.InReceives", 50),
        ("rx/Ip.InDelivers", 50),
        ("rx/IpExt.InNoECTPkts", 50),
    ];
    let mut said = input();
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(ledger.lost_at(Place::Network), 0, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, None, "within the bounds: {ledger:#?}");
    let between = "between 0 and 506 datagrams were lost between the network cards";
    assert!(ledger.notes.iter().any(|note| note.contains(between)), "{:?}", ledger.notes);
    said.receiver.sequence_lost_packets = Some(10);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
}

#[test]
fn where_a_card_may_have_counted_what_its_ring_lost_the_network_s_loss_has_bounds() {
    let mut said = input();
    let WireFacts::Counted(wire) = &mut said.path.wire else { unreachable!() };
    wire.forward.perhaps_received.extend(wire.forward.received.pop());
    // 990 of the ring, too many for a number.
    let more = [
        ("rx/ethtool.eth1.rx_missed_errors", 89),
        ("rx/ethtool.eth1.rx_packets", 0),
        ("tx/ethtool.eth0.tx_packets", 89),
        ("tx/link.eth0.tx.packets", 89),
        ("tx/Udp.OutDatagrams", 89),
    ];
    said.sender.offered_packets += 89;
    said.sender.sent_packets += 89;
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(ledger.lost_at(Place::Network), 6, "{ledger:#?}");
    assert_eq!(ledger.lost_at(Place::Ring), 90, "{ledger:#?}");
    assert!(ledger.notes.iter().any(|note| note.contains("between 6 and 96")), "{ledger:#?}");
}

#[test]
fn a_wire_that_nobody_counts_is_named_and_not_made_of_the_remainder() {
    let mut said = input();
    said.path.wire = WireFacts::Unknown("sut: virtio_net does not see it".into());
    let ledger = Ledger::from_counters(&said, &moved(&[]));
    assert_eq!(ledger.unaccounted_packets, Some(6), "{ledger:#?}");
    let why = "what the network lost is not known: sut: virtio_net does not see it";
    assert!(ledger.notes.iter().any(|note| note == why), "{:?}", ledger.notes);
}

#[test]
fn limits_of_a_cloud_that_were_exceeded_stand_where_the_network_is_not_known() {
    let mut said = input();
    let exceeded = [
        ("tx/ethtool.eth0.pps_allowance_exceeded", 812),
        ("tx/ethtool.eth0.bw_out_allowance_exceeded", 0),
        ("rx/ethtool.eth1.bw_in_allowance_exceeded", 5),
        ("rx@sut/ethtool.eth1.bw_in_allowance_exceeded", 5),
        ("rx/ethtool.eth1.conntrack_allowance_available", -7),
    ];
    let known = Ledger::from_counters(&said, &moved(&exceeded));
    assert!(known.notes.iter().all(|note| !note.contains("limits")), "{:?}", known.notes);
    said.path.wire = WireFacts::Unknown("sut: ena does not see it".into());
    let ledger = Ledger::from_counters(&said, &moved(&exceeded));
    let why = "what the network lost is not known: sut: ena does not see it; the cloud held packets back or \
               dropped them above its limits: tx/ethtool.eth0.pps_allowance_exceeded by 812, \
               rx/ethtool.eth1.bw_in_allowance_exceeded by 5";
    assert!(ledger.notes.iter().any(|note| note == why), "{:?}", ledger.notes);
    assert_eq!(ledger.unaccounted_packets, Some(6), "a witness is no term: {ledger:#?}");
}

#[test]
fn a_counter_of_a_card_that_was_not_read_is_no_zero() {
    let mut gone = moved(&[]);
    let name = "rx/ethtool.eth1.rx_missed_errors";
    gone.values.remove(name);
    gone.gaps.insert(name.into(), "not there after the trial".into());
    let ledger = Ledger::from_counters(&input(), &gone);
    assert_eq!(ledger.lost_at(Place::Network), 0, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(7), "{ledger:#?}");
    assert!(ledger.notes.iter().any(|note| note.starts_with(name)), "{:?}", ledger.notes);
}

#[test]
fn a_card_whose_counter_began_again_does_not_show_what_the_network_lost() {
    let name = "rx/ethtool.eth1.rx_packets";
    let ledger = Ledger::from_counters(&input(), &moved(&[(name, -500_000)]));
    assert_eq!(ledger.lost_at(Place::Network), 0, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(6), "{ledger:#?}");
    let why = format!("what the network lost is not known: {name} is less than before the trial");
    assert!(ledger.notes.contains(&why), "{:?}", ledger.notes);
}

#[test]
fn a_driver_s_own_drops_are_not_the_backlog_s() {
    // rx_dropped of this driver holds what its ring lost.
    let more = [("rx/link.eth1.rx.dropped", 8), ("machine/softnet.cpu0.dropped", 2)];
    let lost = [("rx/Ip.InReceives", -2), ("rx/Ip.InDelivers", -2), ("rx/IpExt.InNoECTPkts", -2)];
    let mut said = input();
    said.receiver.delivered_packets -= 2;
    let all = [&more[..], &lost, &[("rx/Udp.InDatagrams", -2)]].concat();
    let ledger = Ledger::from_counters(&said, &moved(&all));
    assert_eq!(ledger.lost_at(Place::Backlog), 2, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
}

#[test]
fn what_the_sending_card_s_driver_dropped_has_its_place() {
    let more = [("tx/link.eth0.tx.dropped", 5), ("tx/Udp.OutDatagrams", 5)];
    let mut said = input();
    said.sender.offered_packets += 5;
    said.sender.sent_packets += 5;
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(ledger.lost_at(Place::SendingDevice), 5, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
}

/// What sequence numbers say is missing of 1,000 datagrams decides within the bounds.
fn with_numbers(more: &[(&str, i64)]) -> Ledger {
    let mut said = input();
    said.receiver.sequence_lost_packets = Some(10);
    Ledger::from_counters(&said, &moved(more))
}

#[test]
fn frames_of_no_ip_that_only_the_receiver_got_are_not_taken_off_the_network_s_loss() {
    // Three of ARP or LLDP from the switch.
    let more = [("rx/ethtool.eth1.rx_packets", 3), ("rx/link.eth1.rx.packets", 3)];
    let ledger = Ledger::from_counters(&input(), &moved(&more));
    assert_eq!((ledger.lost_at(Place::Network), ledger.unaccounted_packets), (3, None));
    assert!(!ledger.drops[0].exact, "{ledger:#?}");
    let ledger = with_numbers(&more);
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
    // The card's filter rejected two, which the device has not.
    assert_eq!(by_place(&with_numbers(&[("rx/ethtool.eth1.rx_packets", 2)])), TRUTH);
}

#[test]
fn frames_of_no_ip_that_only_the_sender_s_switch_got_are_no_loss() {
    let more = [("tx/ethtool.eth0.tx_packets", 4), ("tx/link.eth0.tx.packets", 4)];
    let ledger = Ledger::from_counters(&input(), &moved(&more));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert!(!ledger.drops[0].exact, "{ledger:#?}");
}

#[test]
fn packets_that_the_receiver_forwarded_are_not_taken_off_the_network_s_loss() {
    let counters = [
        "rx/Ip.ForwDatagrams",
        "rx/Ip.InReceives",
        "rx/IpExt.InNoECTPkts",
        "rx/link.eth1.rx.packets",
        "rx/ethtool.eth1.rx_packets",
    ];
    let more = counters.map(|counter| (counter, 40));
    let ledger = with_numbers(&more);
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert!(!ledger.drops[0].exact, "{ledger:#?}");
}

#[test]
fn many_frames_between_a_card_and_its_device_are_no_loss_of_the_network() {
    let ledger = with_numbers(&[("rx/ethtool.eth1.rx_packets", 500)]);
    assert_eq!(ledger.lost_at(Place::Network), 0, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, Some(6), "{ledger:#?}");
    let why = "the receiver's card counted 500 frames that its device has not";
    assert!(ledger.notes.iter().any(|note| note.contains(why)), "{:?}", ledger.notes);
}

#[test]
fn the_other_vlans_of_a_card_make_bounds() {
    let mut said = input();
    said.path.rx_device = Some("eth1.5".into());
    said.receiver.sequence_lost_packets = Some(10);
    let more = [("rx/link.eth1.5.rx.packets", 993), ("rx/ethtool.eth1.rx_packets", 500)];
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
}

#[test]
fn drops_of_the_sender_s_queue_are_exact_where_udp_counted_all_of_them() {
    let drops = "tx/qdisc.eth0.root.drops";
    let mut said = input();
    said.path.tx_qdisc = Some(drops.into());
    said.sender.offered_packets += 5;
    said.sender.sent_packets += 5;
    // The counter has 32 bits. 20 segments of another program.
    let more = [
        (drops, 5 - (1 << 32)),
        ("tx/Udp.SndbufErrors", 5),
        ("tx/Tcp.OutSegs", 20),
        ("tx/ethtool.eth0.tx_packets", 20),
        ("tx/link.eth0.tx.packets", 20),
    ];
    let ledger = Ledger::from_counters(&said, &moved(&more));
    let queue = ledger.drops.iter().find(|drop| drop.place == Place::Qdisc).unwrap();
    assert_eq!((queue.packets, queue.exact, queue.counter.as_str()), (5, true, drops));
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
    // UDP counted none: they may be the other program's.
    let silent: Vec<(&str, i64)> = more.into_iter().filter(|it| it.0 != more[1].0).collect();
    let ledger = Ledger::from_counters(&said, &moved(&silent));
    assert_eq!((ledger.lost_at(Place::Qdisc), ledger.unaccounted_packets), (0, None));
    // A queue that cannot be read is a gap.
    let mut gone = moved(&more);
    gone.values.remove(drops);
    gone.gaps.insert("tx/qdisc.eth0".into(), "not permitted".into());
    let ledger = Ledger::from_counters(&said, &gone);
    assert!(ledger.notes.iter().any(|note| note.starts_with(drops)), "{:?}", ledger.notes);
}
