//! Hosts that have other traffic: what surely is the workload's loss, and what may be.

use proptest::prelude::*;
use rxpath_record::counters::Moved;
use rxpath_record::ledger::{Balance, Drop, Ledger, LedgerInput, PacketBounds, Place};

use super::{TRUTH, by_place, input, moved};

fn shared_input() -> LedgerInput {
    let mut said = input();
    said.path.is_shared = true;
    said
}

fn drop_at(ledger: &Ledger, place: Place) -> Option<&Drop> {
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
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:#?}");
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
    said.path.wire = rxpath_record::ledger::WireFacts::Unknown("virtio_net".into());
    said.receiver.sequence_lost_packets = Some(10);
    let counters =
        ["rx/Tcp.InSegs", "rx/Ip.InReceives", "rx/Ip.InDelivers", "rx/IpExt.InNoECTPkts"];
    let ledger = Ledger::from_counters(&said, &moved(&counters.map(|counter| (counter, 20))));
    assert_eq!(drop_at(&ledger, Place::Ring).unwrap().bounds, Some(between(0, 1)), "{ledger:#?}");
    assert_eq!((ledger.unaccounted_packets, ledger.balance()), (None, Balance::Missing(6)));
}

/// What the workload lost, and what others did, on two hosts.
#[derive(Clone, Debug)]
struct World {
    delivered: i64,
    network: i64,
    ring: i64,
    refused: i64,
    socket: i64,
    /// Of others: TCP, refused by IP, read, dropped at sockets, at closed ports.
    others: [i64; 5],
    others_in_ring: i64,
    others_out: i64,
}

impl World {
    fn offered(&self) -> i64 {
        self.delivered + self.network + self.ring + self.refused + self.socket
    }

    fn input(&self) -> LedgerInput {
        let mut said = shared_input();
        said.sender.offered_packets = self.offered() as u64;
        said.sender.sent_packets = self.offered() as u64;
        said.receiver.delivered_packets = self.delivered as u64;
        said.receiver.socket_drops = Some(vec![self.socket as u64]);
        said
    }

    fn moved(&self) -> Moved {
        let [tcp, refused, read, dropped, closed] = self.others;
        let came = self.delivered + self.refused + self.socket + self.others.iter().sum::<i64>();
        let sent = self.offered() + self.others_out;
        let values = [
            ("tx/Udp.OutDatagrams", self.offered()),
            ("tx/Tcp.OutSegs", self.others_out),
            ("tx/link.eth0.tx.packets", sent),
            ("tx/ethtool.eth0.tx_packets", sent),
            ("rx/ethtool.eth1.rx_packets", came),
            ("rx/ethtool.eth1.rx_missed_errors", self.ring + self.others_in_ring),
            ("rx/link.eth1.rx.packets", came),
            ("rx/Ip.InReceives", came),
            ("rx/IpExt.InNoECTPkts", came),
            ("rx/Ip.InAddrErrors", self.refused + refused),
            ("rx/Ip.InDelivers", came - self.refused - refused),
            ("rx/Tcp.InSegs", tcp),
            ("rx/Udp.InDatagrams", self.delivered + read),
            ("rx/Udp.InErrors", self.socket + dropped),
            ("rx/Udp.RcvbufErrors", self.socket + dropped),
            ("rx/Udp.NoPorts", closed),
        ];
        let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
        Moved { values, ..Moved::default() }
    }

    fn truth(&self) -> [(Place, i64); 6] {
        [
            (Place::Network, self.network),
            (Place::Ring, self.ring),
            (Place::Ip, self.refused),
            (Place::SocketBuffer, self.socket),
            (Place::NoListener, 0),
            (Place::Netfilter, 0),
        ]
    }
}

fn world() -> impl Strategy<Value = World> {
    let count = || prop_oneof![2 => Just(0i64), 3 => 0i64..2_000];
    let ours = (1i64..100_000, count(), count(), count(), count());
    let others = (prop::array::uniform5(count()), 0.0f64..=1.0, count());
    (ours, others).prop_map(|(ours, (others, share, others_out))| {
        let (delivered, network, ring, refused, socket) = ours;
        // The assumption: the ring lost no more of others than it passed.
        let others_in_ring = (others.iter().sum::<i64>() as f64 * share) as i64;
        World { delivered, network, ring, refused, socket, others, others_in_ring, others_out }
    })
}

proptest! {
    #[test]
    fn the_truth_is_inside_the_bounds_of_each_place(world in world(), numbered: bool) {
        let mut said = world.input();
        let lost = (world.offered() - world.delivered) as u64;
        said.receiver.sequence_lost_packets = numbered.then_some(lost);
        let ledger = Ledger::from_counters(&said, &world.moved());
        for (place, lost) in world.truth() {
            let lost = lost as u64;
            let bounds = drop_at(&ledger, place).map(Drop::range);
            let inside = bounds.map_or(lost == 0, |it| {
                it.least_packets <= lost && it.most_packets.is_none_or(|most| lost <= most)
            });
            prop_assert!(inside, "{place:?} {lost}: {ledger:#?}");
        }
        if numbered {
            prop_assert_eq!(ledger.balance(), Balance::Closed, "{:#?}", ledger);
        } else {
            let is_accounted = matches!(ledger.balance(), Balance::Closed | Balance::Within(_));
            prop_assert!(is_accounted, "{ledger:#?}");
        }
    }
}
