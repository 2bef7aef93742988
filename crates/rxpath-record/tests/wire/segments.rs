//! Segments on hosts that have other TCP traffic: what surely is the workload's, and what may be.

use proptest::prelude::*;
use rxpath_record::counters::Moved;
use rxpath_record::ledger::{
    Balance, Drop, Figure, Ledger, OwnSegments, PacketBounds, Place, SegmentInput, SocketSegments,
    WireFacts,
};

use super::input;
use super::shared::{QDISC, drop_at};

const RING: &str = "rx/ethtool.eth1.rx_missed_errors";
const BACKLOG: &str = "rx/TcpExt.TCPBacklogDrop";

/// Segments from the sender to the receiver, of the workload and of others.
#[derive(Clone, Copy, Debug)]
struct World {
    /// Sent, and of them lost in the queue, in the ring and at the socket's backlog.
    own: [i64; 4],
    /// Of others: sent elsewhere, lost in the queue, arrived from elsewhere, lost in the ring and at backlogs.
    others: [i64; 5],
    /// Sent and received by the workload's sockets after they were read.
    unread: [i64; 2],
    /// Datagrams of others to elsewhere: handed to UDP, and of them lost in the queue.
    udp: [i64; 2],
    /// Segments of others over the other IP family: sent elsewhere, arrived from elsewhere.
    other_family: [i64; 2],
}

impl World {
    /// 1,000 segments of which 4 died in the queue, 6 in the ring and 2 at the backlog; others sent 300 and got 200.
    const BUSY: Self = Self {
        own: [1_000, 4, 6, 2],
        others: [300, 3, 200, 0, 23],
        unread: [0; 2],
        udp: [0; 2],
        other_family: [0; 2],
    };

    fn arrived(&self) -> i64 {
        self.own[0] - self.own[1] - self.own[2]
    }

    fn input(&self) -> SegmentInput {
        let mut path = input().path;
        path.is_shared = true;
        path.tx_qdisc = Some(QDISC.into());
        path.wire = WireFacts::Unknown("it does not count them".into());
        let sent = SocketSegments {
            sent_packets: (self.own[0] - self.unread[0]).max(0) as u64,
            received_packets: 0,
        };
        let received = SocketSegments {
            sent_packets: 0,
            received_packets: (self.arrived() - self.unread[1]).max(0) as u64,
        };
        let own = Some(OwnSegments { tx: sent, rx: received });
        SegmentInput { path, mtu_bytes: 1_500, own, ..SegmentInput::default() }
    }

    fn moved(&self) -> Moved {
        let [out, in_queue, came, in_ring, at_backlog] = self.others;
        let arrived = self.arrived() + came;
        let values = [
            ("tx/Tcp.OutSegs", self.own[0] + out + self.other_family[0]),
            ("tx/Tcp.ActiveOpens", 1),
            ("tx/Udp.OutDatagrams", self.udp[0] - self.udp[1]),
            ("tx/Udp.SndbufErrors", self.udp[1]),
            (QDISC, self.own[1] + in_queue + self.udp[1]),
            (RING, self.own[2] + in_ring),
            ("rx/IpExt.InNoECTPkts", arrived),
            ("rx/Ip.InReceives", arrived),
            ("rx/Ip.InDelivers", arrived),
            ("rx/Ip6.InReceives", self.other_family[1]),
            ("rx/Tcp.InSegs", arrived + self.other_family[1]),
            (BACKLOG, self.own[3] + at_backlog),
        ];
        let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
        Moved { values, ..Moved::default() }
    }

    fn ledger(&self) -> Ledger {
        Ledger::of_segments(&self.input(), &self.moved())
    }
}

fn bounds(ledger: &Ledger, place: Place) -> Option<PacketBounds> {
    drop_at(ledger, place).map(Drop::range)
}

fn between(least_packets: u64, most: u64) -> PacketBounds {
    PacketBounds { least_packets, most_packets: Some(most) }
}

#[test]
fn losses_in_counters_of_all_programs_are_intervals() {
    let ledger = World::BUSY.ledger();
    // A buffer in the queue holds up to 46 segments.
    assert_eq!(bounds(&ledger, Place::Qdisc), Some(between(0, 7 * 46)), "{ledger:#?}");
    assert_eq!(bounds(&ledger, Place::Ring), Some(between(0, 6)), "{ledger:#?}");
    assert_eq!(bounds(&ledger, Place::SocketBacklog), Some(between(0, 25)), "{ledger:#?}");
    assert!(matches!(ledger.balance(), Balance::Within(_)), "{ledger:#?}");
    let note = "rx/TcpExt.TCPBacklogDrop: of the packets dropped (25), 25 may be of other programs";
    assert!(ledger.notes.iter().any(|it| it == note), "{:?}", ledger.notes);
}

#[test]
fn a_card_that_was_not_read_is_named() {
    let mut moved = World::BUSY.moved();
    moved.values.remove(RING);
    moved.gaps.insert("rx/ethtool.eth1".into(), "its driver was reset".into());
    let ledger = Ledger::of_segments(&World::BUSY.input(), &moved);
    let note =
        format!("{RING} cannot be read (its driver was reset): its losses cannot be accounted for");
    assert!(ledger.notes.contains(&note), "{:?}", ledger.notes);
}

#[test]
fn what_the_workload_s_sockets_sent_and_received_is_surely_its_own() {
    let ledger = World::BUSY.ledger();
    let end = |figure| {
        let end = ledger.inexact.iter().find(|it| it.figure == figure).unwrap();
        (end.least_packets, end.most_packets)
    };
    assert_eq!(end(Figure::Offered), (1_000, Some(1_300)));
    // Up to 25 of what came to its sockets were refused there.
    assert_eq!(end(Figure::Delivered), (965, Some(1_190)));
    assert_eq!(ledger.bound_word(Figure::Offered), "at most ", "{ledger:#?}");
}

#[test]
fn a_ring_that_lost_more_than_others_can_have_lost_lost_the_workload_s() {
    let mut world = World::BUSY;
    world.own = [2_000, 4, 600, 2];
    let ledger = world.ledger();
    assert_eq!(bounds(&ledger, Place::Ring), Some(between(400, 600)), "{ledger:#?}");
    // Without its sockets nothing is surely of the workload.
    let input = SegmentInput { own: None, ..world.input() };
    let ledger = Ledger::of_segments(&input, &world.moved());
    assert_eq!(bounds(&ledger, Place::Ring), Some(between(0, 600)), "{ledger:#?}");
    assert_eq!(ledger.inexact[0].least_packets, 0, "{ledger:#?}");
}

#[test]
fn hosts_without_others_and_namespaces_of_their_own_have_exact_ledgers() {
    let alone = World { others: [0; 5], ..World::BUSY };
    let ledger = alone.ledger();
    assert_eq!((ledger.unaccounted_packets, ledger.inexact.len()), (Some(0), 0), "{ledger:#?}");
    assert_eq!(ledger.lost_packets(), 12, "{ledger:#?}");
    assert!(ledger.drops.iter().all(|drop| drop.exact), "{ledger:#?}");
    let mut input = World::BUSY.input();
    input.path.is_shared = false;
    let ledger = Ledger::of_segments(&input, &World::BUSY.moved());
    assert!(ledger.inexact.is_empty() && ledger.unaccounted_packets.is_some(), "{ledger:#?}");
}

#[test]
fn few_segments_of_others_leave_the_losses_exact_and_only_the_remainder_within_bounds() {
    let few = World { others: [7, 0, 2, 0, 0], ..World::BUSY };
    let ledger = few.ledger();
    assert!(ledger.drops.iter().all(|drop| drop.exact), "{ledger:#?}");
    assert_eq!((ledger.lost_packets(), ledger.inexact.len()), (12, 0), "{ledger:#?}");
    // 5 of the difference of both ends are of others, and no loss.
    assert_eq!(ledger.balance(), Balance::Within(7), "{ledger:#?}");
}

#[test]
fn datagrams_of_others_that_died_under_their_calls_are_no_segments_of_the_workload() {
    let world = World { udp: [5_000, 5_000], ..World::BUSY };
    let ledger = world.ledger();
    assert_eq!(bounds(&ledger, Place::Qdisc), Some(between(0, 5_007 * 46)), "{ledger:#?}");
}

#[test]
fn segments_of_the_other_ip_family_are_neither_sent_by_nobody_nor_lost_before_tcp() {
    let world = World { other_family: [0, 200_000], ..World::BUSY };
    let ledger = world.ledger();
    assert!(matches!(ledger.balance(), Balance::Within(_)), "{ledger:#?}");
    let told =
        |ledger: &Ledger| ledger.notes.iter().any(|note| note.contains("packets lie between"));
    assert!(!told(&ledger), "{:?}", ledger.notes);
    // What that family did not receive either is a contradiction.
    let mut moved = world.moved();
    moved.values.insert("rx/Ip6.InReceives".into(), 199_999);
    assert!(told(&Ledger::of_segments(&world.input(), &moved)));
}

fn world() -> impl Strategy<Value = World> {
    let of = |all: i64, share: f64| (all as f64 * share) as i64;
    let amounts = (1_000i64..50_000, 100i64..20_000, 0i64..20_000, 0i64..20_000);
    let other_family = prop::array::uniform2(0i64..20_000);
    let shares = prop::array::uniform9(0.0f64..=1.0);
    (amounts, other_family, shares).prop_map(
        move |((sent, out, came, udp), other_family, shares)| {
            let [queue, ring, backlog, in_queue, in_ring, at_backlog, late, later, of_udp] = shares;
            let in_own_queue = of(sent / 2, queue);
            let in_own_ring = of(sent / 2, ring);
            let arrived = sent - in_own_queue - in_own_ring;
            World {
                own: [sent, in_own_queue, in_own_ring, of(arrived, backlog)],
                others: [out, of(out, in_queue), came, of(came, in_ring), of(came, at_backlog)],
                unread: [of(sent, late), of(arrived, later)],
                udp: [udp, of(udp, of_udp)],
                other_family,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_truth_is_inside_the_bounds_of_segments(world in world()) {
        let ledger = world.ledger();
        let [sent, queue, ring, backlog] = world.own;
        for (place, lost) in
            [(Place::Qdisc, queue), (Place::Ring, ring), (Place::SocketBacklog, backlog)]
        {
            let lost = lost as u64;
            let inside = bounds(&ledger, place).map_or(lost == 0, |it| {
                it.least_packets <= lost && it.most_packets.is_none_or(|most| lost <= most)
            });
            prop_assert!(inside, "{place:?} {lost}: {world:?} {ledger:#?}");
        }
        for (figure, shown, truth) in [
            (Figure::Offered, ledger.offered_packets, sent),
            (Figure::Delivered, ledger.delivered_packets, world.arrived() - backlog),
        ] {
            let truth = truth as u64;
            let end = ledger.inexact.iter().find(|end| end.figure == figure);
            let inside = end.map_or(shown == truth, |end| {
                end.least_packets <= truth && end.most_packets.is_none_or(|most| truth <= most)
            });
            prop_assert!(inside, "{figure:?} {truth}: {world:?} {ledger:#?}");
        }
        // All that the workload lost has a place.
        prop_assert!(matches!(ledger.balance(), Balance::Within(_)), "{world:?} {ledger:#?}");
    }
}
