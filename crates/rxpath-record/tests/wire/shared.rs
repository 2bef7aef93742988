//! Hosts that have other traffic: what surely is the workload's loss, and what may be.

use rxpath_record::counters::Moved;
use rxpath_record::ledger::{
    Balance, Drop, Figure, Inexact, Ledger, LedgerInput, PacketBounds, Place, ReceiverSaid,
    WireFacts,
};

use super::{TRUTH, by_place, input, moved};

pub const QDISC: &str = "tx/qdisc.eth0.root.drops";

pub fn read_600_of_1000() -> ReceiverSaid {
    ReceiverSaid {
        delivered_packets: 600,
        socket_drops: Some(vec![0]),
        payload_bytes: Some(18),
        sequence_lost_packets: Some(400),
        ..ReceiverSaid::default()
    }
}

pub fn shared_input() -> LedgerInput {
    let mut said = input();
    said.path.is_shared = true;
    said
}

pub fn drop_at(ledger: &Ledger, place: Place) -> Option<&Drop> {
    ledger.drops.iter().find(|drop| drop.place == place)
}

fn between(least_packets: u64, most: u64) -> PacketBounds {
    PacketBounds { least_packets, most_packets: Some(most) }
}

#[test]
fn a_ring_that_lost_frames_of_others_too_lost_between_two_numbers_of_the_workload() {
    // 50 segments of others came, and the ring lost 300 frames: of whom?
    let more = [
        ("rx/ethtool.eth1.rx_missed_errors", 299),
        ("tx/ethtool.eth0.tx_packets", 299),
        ("tx/link.eth0.tx.packets", 299),
        ("tx/Udp.OutDatagrams", 299),
        ("rx/Tcp.InSegs", 50),
        ("rx/ethtool.eth1.rx_packets", 50),
        ("rx/link.eth1.rx.packets", 50),
        ("rx/Ip.InReceives", 50),
        ("rx/Ip.InDelivers", 50),
        ("rx/IpExt.InNoECTPkts", 50),
    ];
    let mut said = shared_input();
    said.sender.offered_packets += 299;
    said.sender.sent_packets += 299;
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(
        drop_at(&ledger, Place::Ring).unwrap().bounds,
        Some(between(250, 300)),
        "{ledger:#?}"
    );
    assert_eq!(
        drop_at(&ledger, Place::Network).unwrap().bounds,
        Some(between(0, 56)),
        "{ledger:#?}"
    );
    assert_eq!((ledger.unaccounted_packets, ledger.balance()), (None, Balance::Within(56)));
    assert_eq!(ledger.foreign_packets, 50, "{ledger:#?}");
    // What is missing in all narrows both.
    said.receiver.sequence_lost_packets = Some(309);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!((ledger.lost_at(Place::Ring), ledger.lost_at(Place::Network)), (300, 6));
    assert_eq!(
        drop_at(&ledger, Place::Network).unwrap().bounds,
        Some(between(6, 56)),
        "{ledger:#?}"
    );
    // Only what is missing in all shows 50 of them.
    assert_eq!(ledger.balance(), Balance::Within(50), "{ledger:#?}");
    // A namespace of its own has no others.
    said.path.is_shared = false;
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert!(drop_at(&ledger, Place::Ring).unwrap().exact, "{ledger:#?}");
}

#[test]
fn what_sockets_of_other_programs_dropped_is_not_the_workload_s_loss() {
    let counters = [
        "rx/Udp.InErrors",
        "rx/Udp.RcvbufErrors",
        "rx/Ip.InReceives",
        "rx/Ip.InDelivers",
        "rx/IpExt.InNoECTPkts",
        "rx/link.eth1.rx.packets",
        "rx/ethtool.eth1.rx_packets",
    ];
    let mut said = shared_input();
    said.receiver.sequence_lost_packets = Some(10);
    let ledger = Ledger::from_counters(&said, &moved(&counters.map(|counter| (counter, 40))));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert_eq!((ledger.unaccounted_packets, ledger.notes.len()), (Some(0), 0), "{ledger:#?}");
    let socket = drop_at(&ledger, Place::SocketBuffer).unwrap();
    let counter = "SO_MEMINFO drops of the workload, within rx/Udp.RcvbufErrors";
    assert_eq!((socket.exact, socket.counter.as_str()), (true, counter));
}

#[test]
fn packets_of_others_that_a_firewall_dropped_need_not_be_the_workload_s() {
    let counters = [
        "rx/Ip.InReceives",
        "rx/IpExt.InNoECTPkts",
        "rx/link.eth1.rx.packets",
        "rx/ethtool.eth1.rx_packets",
    ];
    let mut said = shared_input();
    said.path.input_rules = None;
    let more = counters.map(|counter| (counter, 60));
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(
        drop_at(&ledger, Place::Netfilter).unwrap().bounds,
        Some(between(0, 60)),
        "{ledger:#?}"
    );
    assert!(matches!(ledger.balance(), Balance::Within(_)), "{ledger:#?}");
    said.receiver.sequence_lost_packets = Some(10);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(
        drop_at(&ledger, Place::Netfilter).unwrap().bounds,
        Some(between(0, 7)),
        "{ledger:#?}"
    );
    assert_eq!(ledger.balance(), Balance::Closed, "{ledger:#?}");
}

#[test]
fn a_wire_that_nobody_counts_leaves_the_ring_its_bounds_and_the_rest_unaccounted() {
    let mut said = shared_input();
    said.path.wire = WireFacts::Unknown("virtio_net".into());
    said.receiver.sequence_lost_packets = Some(10);
    let counters =
        ["rx/Tcp.InSegs", "rx/Ip.InReceives", "rx/Ip.InDelivers", "rx/IpExt.InNoECTPkts"];
    let ledger = Ledger::from_counters(&said, &moved(&counters.map(|counter| (counter, 20))));
    assert_eq!(drop_at(&ledger, Place::Ring).unwrap().bounds, Some(between(0, 1)), "{ledger:#?}");
    assert_eq!((ledger.unaccounted_packets, ledger.balance()), (None, Balance::Missing(6)));
}

#[test]
fn what_others_lost_in_the_sender_s_queue_is_not_surely_the_workload_s() {
    // We sent 1,000, of which 200 died. Another program sent 300, of which 100 died. UDP counts them in SndbufErrors alone.
    let mut said = shared_input();
    said.path.tx_qdisc = Some(QDISC.into());
    said.receiver.delivered_packets = 790;
    said.receiver.sequence_lost_packets = Some(210);
    let less = ["rx/link.eth1.rx.packets", "rx/Ip.InReceives", "rx/Ip.InDelivers"];
    let less = less.into_iter().chain(["rx/IpExt.InNoECTPkts", "rx/Udp.InDatagrams"]);
    let mut more: Vec<(&str, i64)> = less.map(|counter| (counter, -200)).collect();
    more.extend([(QDISC, 300), ("tx/Udp.SndbufErrors", 300), ("rx/ethtool.eth1.rx_packets", -200)]);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    let bounds = drop_at(&ledger, Place::Qdisc).unwrap().range();
    assert!(bounds.least_packets <= 200 && bounds.most_packets >= Some(200), "{ledger:#?}");
    assert!(!matches!(ledger.balance(), Balance::Excess(_)), "{ledger:#?}");
}

#[test]
fn fragments_of_other_programs_are_not_the_workload_s() {
    // Others sent 20 datagrams elsewhere, in 60 fragments.
    let more = [
        ("tx/Ip.FragOKs", 20),
        ("tx/Ip.FragCreates", 60),
        ("tx/Udp.OutDatagrams", 20),
        ("tx/ethtool.eth0.tx_packets", 60),
        ("tx/link.eth0.tx.packets", 60),
    ];
    let mut said = shared_input();
    said.path.mtu_bytes = Some(1500);
    said.receiver.sequence_lost_packets = Some(10);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert_eq!(ledger.balance(), Balance::Closed, "{ledger:#?}");
    // Of a workload that is cut too, nothing is derived.
    said.receiver.payload_bytes = Some(4_000);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert!(drop_at(&ledger, Place::Network).is_none(), "{ledger:#?}");
}

/// Offered 1,000, delivered 600: a tc filter dropped 100, the ring 300. 50 segments of others came over the device.
fn lost_between_device_and_ip(elsewhere: i64) -> (LedgerInput, Moved) {
    let mut said = shared_input();
    said.receiver = read_600_of_1000();
    let values = [
        ("tx/Udp.OutDatagrams", 1_000),
        ("tx/link.eth0.tx.packets", 1_000),
        ("tx/ethtool.eth0.tx_packets", 1_000),
        ("rx/ethtool.eth1.rx_packets", 750),
        ("rx/ethtool.eth1.rx_missed_errors", 300),
        ("rx/link.eth1.rx.packets", 750),
        ("rx/other-devices.eno1.rx.packets", elsewhere),
        ("rx/Ip.InReceives", 650 + elsewhere),
        ("rx/Ip.InDelivers", 650 + elsewhere),
        ("rx/IpExt.InNoECTPkts", 650 + elsewhere),
        ("rx/Tcp.InSegs", 50 + elsewhere),
        ("rx/Udp.InDatagrams", 600),
    ];
    let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
    (said, Moved { values, ..Moved::default() })
}

fn is_left_between_device_and_ip(said: &LedgerInput, moved: &Moved) {
    let ledger = Ledger::from_counters(said, moved);
    let least = |place| drop_at(&ledger, place).map_or(0, |drop| drop.range().least_packets);
    assert_eq!(least(Place::Network), 0, "{ledger:#?}");
    assert!(least(Place::Ring) <= 300, "{ledger:#?}");
    assert!(matches!(ledger.balance(), Balance::Within(100..)), "{ledger:#?}");
}

#[test]
fn a_loss_between_device_and_ip_is_not_put_on_other_places() {
    let (said, moved) = lost_between_device_and_ip(0);
    is_left_between_device_and_ip(&said, &moved);
}

#[test]
fn packets_over_other_devices_do_not_hide_a_loss_between_device_and_ip() {
    // As many as the filter dropped.
    let (said, mut moved) = lost_between_device_and_ip(100);
    is_left_between_device_and_ip(&said, &moved);
    // A device that was removed took its count with it.
    let counter = "rx/other-devices.eno1.rx.packets";
    moved.values.remove(counter);
    moved.gaps.insert(counter.into(), "not there after the trial".into());
    is_left_between_device_and_ip(&said, &moved);
}

/// 400 datagrams of the workload are missing, and nothing but that tells how many of them the ring lost.
#[test]
fn what_only_sequence_numbers_show_closes_a_ledger_within_bounds() {
    let others = ["rx/Tcp.InSegs", "rx/Ip.InReceives", "rx/Ip.InDelivers", "rx/IpExt.InNoECTPkts"];
    let others =
        others.into_iter().chain(["rx/link.eth1.rx.packets", "rx/ethtool.eth1.rx_packets"]);
    let mut more: Vec<(&str, i64)> = others.map(|counter| (counter, 400)).collect();
    let sent = ["tx/Udp.OutDatagrams", "tx/link.eth0.tx.packets", "tx/ethtool.eth0.tx_packets"];
    more.extend(sent.map(|counter| (counter, 390)));
    more.push(("rx/ethtool.eth1.rx_missed_errors", 390));
    let mut said = shared_input();
    said.sender.offered_packets += 390;
    said.sender.sent_packets += 390;
    said.receiver.sequence_lost_packets = Some(400);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(ledger.lost_packets(), 400, "{ledger:#?}");
    assert_eq!(ledger.unaccounted_packets, None, "{ledger:#?}");
    let Balance::Within(most) = ledger.balance() else { panic!("{ledger:#?}") };
    assert!(most >= 380, "{ledger:#?}");
    assert!(ledger.notes.iter().any(|note| note.contains("the ledger closes within them")));
}

#[test]
fn without_the_drops_of_its_sockets_a_receiver_s_losses_are_bounds() {
    let counters = [
        "rx/Tcp.InSegs",
        "rx/Ip.InReceives",
        "rx/Ip.InDelivers",
        "rx/IpExt.InNoECTPkts",
        "rx/link.eth1.rx.packets",
        "rx/ethtool.eth1.rx_packets",
    ];
    let counters = counters.into_iter().chain(["rx/Udp.InErrors", "rx/Udp.RcvbufErrors"]);
    let more: Vec<(&str, i64)> = counters.map(|counter| (counter, 40)).collect();
    let mut said = shared_input();
    let of = |said: &LedgerInput| {
        let ledger = Ledger::from_counters(said, &moved(&more));
        drop_at(&ledger, Place::SocketBuffer).map(Drop::range)
    };
    // 43 drops in all, of which three are the workload's.
    assert_eq!(of(&said), Some(between(3, 3)));
    said.receiver.drops_are_sampled = true;
    assert_eq!(of(&said), Some(between(3, 43)), "it may have dropped more since");
    said.receiver.socket_drops = None;
    assert_eq!(of(&said), Some(between(0, 43)));
}

#[test]
fn what_a_foreign_program_sent_from_a_host_of_others_is_known_within_bounds_only() {
    let mut said = shared_input();
    said.sender.by_kernel = true;
    let ledger = Ledger::from_counters(&said, &moved(&[]));
    assert_eq!(ledger.balance(), Balance::Unknown, "{ledger:#?}");
    let network = drop_at(&ledger, Place::Network).unwrap().range();
    assert_eq!(network, between(0, 6), "they may have gone elsewhere");
    let offered = &ledger.inexact[0];
    assert_eq!((offered.least_packets, offered.most_packets), (990, Some(1_000)));
    assert_eq!(ledger.bound_word(offered.figure), "at most ", "{ledger:#?}");
    said.path.is_shared = false;
    let ledger = Ledger::from_counters(&said, &moved(&[]));
    assert_eq!(by_place(&ledger), TRUTH, "alone on its host: {ledger:#?}");
}

#[test]
fn an_end_whose_bounds_are_equal_is_exact() {
    // Nothing was lost, and all that UDP counted at the sender was read.
    let arrived = ["rx/link.eth1.rx.packets", "rx/ethtool.eth1.rx_packets", "rx/Ip.InReceives"];
    let arrived = arrived.into_iter().chain(["rx/Ip.InDelivers", "rx/IpExt.InNoECTPkts"]);
    let arrived = arrived.chain(["rx/Udp.InErrors", "rx/Udp.RcvbufErrors"]);
    let sent = ["tx/Udp.OutDatagrams", "tx/link.eth0.tx.packets", "tx/ethtool.eth0.tx_packets"];
    let mut more: Vec<(&str, i64)> = arrived.map(|counter| (counter, -3)).collect();
    more.extend(sent.map(|counter| (counter, -10)));
    more.push(("rx/ethtool.eth1.rx_missed_errors", -1));
    let mut said = shared_input();
    said.sender.by_kernel = true;
    (said.sender.offered_packets, said.sender.sent_packets) = (990, 990);
    said.receiver.socket_drops = Some(vec![0]);
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!((ledger.inexact.len(), ledger.balance()), (0, Balance::Closed), "{ledger:#?}");
    let of = |most_packets| Inexact {
        figure: Figure::Offered,
        least_packets: 990,
        most_packets,
        why: "UDP counted them".into(),
    };
    assert_eq!(of(Some(990)).to_string(), "offered is 990: UDP counted them");
    let bounds = "offered is known within bounds only: at least 990, at most 991: UDP counted them";
    assert_eq!(of(Some(991)).to_string(), bounds);
}

#[test]
fn a_share_of_a_loss_is_a_number_only_where_the_loss_is_one() {
    assert_eq!(between(50, 50).share_ratio(50, 1_000), Some(0.05));
    assert_eq!(between(45, 50).share_ratio(50, 1_000), Some(0.05), "narrow");
    assert_eq!(between(3, 50).share_ratio(50, 1_000), None);
    let least = PacketBounds { least_packets: 50, most_packets: None };
    assert_eq!(least.share_ratio(50, 1_000), None);
    assert_eq!(between(0, 0).share_ratio(0, 0), None);
}

#[test]
fn a_place_that_only_may_have_lost_is_shown_by_its_upper_bound() {
    assert_eq!(between(0, 4_000).around(0, 10_000), "up to 4,000");
    assert_eq!(between(0, 4_000).around(70, 10_000), "70 (between 0 and 4,000)");
    assert_eq!(between(0, 10).around(0, 10_000), "0", "narrow");
}

#[test]
fn calls_that_found_the_send_buffer_full_are_no_packets_of_others() {
    let mut said = shared_input();
    said.path.tx_qdisc = Some(QDISC.into());
    let full = ("tx/Udp.SndbufErrors", 400);
    let ledger = Ledger::from_counters(&said, &moved(&[full]));
    assert_eq!(by_place(&ledger), TRUTH, "{ledger:#?}");
    assert_eq!((ledger.foreign_packets, ledger.balance()), (0, Balance::Closed), "{ledger:#?}");
    // 30 died in the queue. They may be of others: as many as the workload sent left the host.
    let others = [full, (QDISC, 30)];
    let ledger = Ledger::from_counters(&said, &moved(&others));
    assert_eq!(drop_at(&ledger, Place::Qdisc).map(Drop::range), Some(between(0, 30)));
    assert_eq!(ledger.foreign_packets, 30, "{ledger:#?}");
    // Where the queue cannot be read, all errors may be datagrams of others.
    let mut unread = moved(&[full]);
    unread.gaps.insert("tx/qdisc.eth0".into(), "not permitted".into());
    assert_eq!(Ledger::from_counters(&said, &unread).foreign_packets, 400);
}

#[test]
fn what_the_host_of_a_foreign_receiver_lost_may_be_of_others() {
    // Other programs read 500 datagrams, which UDP counts as those of the workload. The ring lost 20, the backlog 30.
    let counters = [
        "rx/Udp.InDatagrams",
        "rx/Ip.InReceives",
        "rx/Ip.InDelivers",
        "rx/IpExt.InNoECTPkts",
        "rx/link.eth1.rx.packets",
        "rx/ethtool.eth1.rx_packets",
    ];
    let mut more = counters.map(|counter| (counter, 500)).to_vec();
    more.extend([
        ("rx/ethtool.eth1.rx_missed_errors", 19),
        ("rx/link.eth1.rx.packets", 30),
        ("rx/ethtool.eth1.rx_packets", 30),
        ("rx/link.eth1.rx.dropped", 30),
        ("machine/softnet.cpu0.dropped", 30),
    ]);
    let mut said = shared_input();
    said.receiver.by_kernel = true;
    said.receiver.delivered_packets = 1_490;
    for socket_drops in [Some(vec![3]), None] {
        said.receiver.socket_drops = socket_drops;
        let ledger = Ledger::from_counters(&said, &moved(&more));
        let range = |place| drop_at(&ledger, place).map(Drop::range);
        assert_eq!(range(Place::Ring), Some(between(0, 20)), "{ledger:#?}");
        assert_eq!(range(Place::Backlog), Some(between(0, 30)), "{ledger:#?}");
        // 1,000 were sent, 1,543 arrived: all that were sent may be lost.
        let network = range(Place::Network).unwrap();
        assert_eq!(network.least_packets, 0, "{ledger:#?}");
        assert!(network.most_packets >= Some(990), "{ledger:#?}");
        assert_eq!(ledger.balance(), Balance::Unknown, "{ledger:#?}");
    }
    // Alone on its host, the counters are its own.
    said.path.is_shared = false;
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert!(drop_at(&ledger, Place::Ring).unwrap().exact, "{ledger:#?}");
}

#[test]
fn what_the_host_of_a_foreign_sender_dropped_may_be_of_others() {
    let mut said = shared_input();
    said.path.tx_qdisc = Some(QDISC.into());
    said.sender.by_kernel = true;
    (said.sender.offered_packets, said.sender.sent_packets) = (1_040, 1_040);
    let more = [(QDISC, 40), ("tx/Udp.SndbufErrors", 40), ("tx/link.eth0.tx.dropped", 25)];
    let ledger = Ledger::from_counters(&said, &moved(&more));
    let range = |ledger: &Ledger, place| drop_at(ledger, place).map(Drop::range);
    assert_eq!(range(&ledger, Place::Qdisc), Some(between(0, 40)), "{ledger:#?}");
    assert_eq!(range(&ledger, Place::SendingDevice), Some(between(0, 25)), "{ledger:#?}");
    said.path.is_shared = false;
    let ledger = Ledger::from_counters(&said, &moved(&more));
    assert_eq!(range(&ledger, Place::Qdisc), Some(between(40, 40)), "{ledger:#?}");
}

#[test]
fn a_loss_of_aggregates_keeps_the_note_that_their_size_is_unknown() {
    let mut said = shared_input();
    said.path.tx_qdisc = Some(QDISC.into());
    said.sender.segments_per_send = 2;
    said.sender.short_batches = true;
    let ledger = Ledger::from_counters(&said, &moved(&[(QDISC, 5), ("tx/Tcp.OutSegs", 20)]));
    assert_eq!(drop_at(&ledger, Place::Qdisc).map(Drop::range), Some(between(0, 10)));
    let note = "counts aggregates of unknown size: at least 0 and at most 10 datagrams";
    assert!(ledger.notes.iter().any(|it| it.contains(note)), "{:?}", ledger.notes);
}
