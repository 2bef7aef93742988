//! Made-up hosts with other traffic, of which all is known: bounds must contain the truth.

use proptest::prelude::*;
use rxpath_record::counters::Moved;
use rxpath_record::ledger::{Balance, Drop, Ledger, LedgerInput, Place};

use super::shared::{QDISC, drop_at, shared_input};

/// What the workload lost, and what others did, on two hosts.
#[derive(Clone, Debug)]
struct World {
    delivered: i64,
    /// In the sender's queueing discipline, its card's driver, and the network.
    sending: [i64; 3],
    /// In the ring, the backlog, IP and the socket.
    receiving: [i64; 4],
    /// Lost between device and IP, where nothing counts.
    uncounted: i64,
    /// At the end of the stream, without a later number.
    tail: i64,
    /// Of others: TCP, refused by IP, read, dropped at sockets, at closed ports.
    others: [i64; 5],
    others_in_qdisc: i64,
    others_in_ring: i64,
    others_in_backlog: i64,
    /// Segments, datagrams, and datagrams of three fragments that others sent elsewhere.
    others_out: [i64; 3],
    /// Frames of ARP in each direction.
    arp: i64,
    /// Of the other IP version.
    other_family: i64,
    /// Calls of the workload that found the send buffer full, and were repeated.
    full: i64,
    /// Segments that others received over another device.
    elsewhere: i64,
    /// At hooks of the sender's egress: of the workload, of others.
    hooks: [i64; 2],
    /// With a wrong checksum: of the workload, of others.
    damaged: [i64; 2],
    /// The workload's are dropped at its sockets, not before them.
    damaged_at_sockets: bool,
}

impl World {
    fn lost(&self) -> i64 {
        let places = self.sending.iter().chain(&self.receiving);
        places.sum::<i64>() + self.hooks[0] + self.damaged[0] + self.uncounted
    }

    fn offered(&self) -> i64 {
        self.delivered + self.lost()
    }

    fn input(&self) -> LedgerInput {
        let mut said = shared_input();
        said.path.tx_qdisc = Some(QDISC.into());
        said.path.tx_filters = Some("tx/tc.eth0.clsact.drops".into());
        said.path.mtu_bytes = Some(1500);
        said.sender.offered_packets = self.offered() as u64;
        said.sender.sent_packets = self.offered() as u64;
        said.receiver.delivered_packets = self.delivered as u64;
        let damaged = if self.damaged_at_sockets { self.damaged[0] } else { 0 };
        said.receiver.socket_drops = Some(vec![(self.receiving[3] + damaged) as u64]);
        // So long that the reader verifies the checksum.
        said.receiver.payload_bytes = Some(173);
        said
    }

    fn moved(&self) -> Moved {
        let values = self.sent().into_iter().chain(self.came());
        let values = values.map(|(name, by)| (name.to_owned(), by)).collect();
        Moved { values, ..Moved::default() }
    }

    fn sent(&self) -> [(&str, i64); 10] {
        let [qdisc, device, _] = self.sending;
        let [segments, datagrams, cut] = self.others_out;
        let handed = self.offered() - qdisc - self.hooks[0];
        let died = qdisc + self.others_in_qdisc + self.hooks.iter().sum::<i64>();
        let frames = handed - device + segments + datagrams + 3 * cut + self.arp;
        [
            (QDISC, qdisc + self.others_in_qdisc),
            // What died below the call is in SndbufErrors and OutDiscards alone.
            ("tx/Udp.OutDatagrams", handed + datagrams + cut),
            ("tx/Udp.SndbufErrors", died + self.full),
            ("tx/Ip.OutDiscards", died),
            ("tx/Ip.FragOKs", cut),
            ("tx/Ip.FragCreates", 3 * cut),
            ("tx/Tcp.OutSegs", segments),
            ("tx/link.eth0.tx.packets", frames),
            ("tx/link.eth0.tx.dropped", device),
            ("tx/ethtool.eth0.tx_packets", frames),
        ]
    }

    fn came(&self) -> [(&str, i64); 17] {
        let [ring, backlog, refused, socket] = self.receiving;
        let [tcp, others_refused, read, dropped, closed] = self.others;
        let damaged: i64 = self.damaged.iter().sum();
        let others: i64 = self.others.iter().sum();
        let over_device = self.delivered + refused + socket + damaged + others;
        let at_ip = over_device + self.elsewhere;
        let backlog = backlog + self.others_in_backlog;
        let at_device = over_device + backlog + self.uncounted + self.arp + self.other_family;
        [
            ("rx/ethtool.eth1.rx_packets", at_device),
            ("rx/ethtool.eth1.rx_missed_errors", ring + self.others_in_ring),
            ("rx/link.eth1.rx.packets", at_device),
            ("rx/link.eth1.rx.dropped", backlog),
            ("machine/softnet.cpu0.dropped", backlog),
            ("rx/Ip6.InReceives", self.other_family),
            ("rx/Ip.InReceives", at_ip),
            ("rx/IpExt.InNoECTPkts", at_ip),
            ("rx/Ip.InAddrErrors", refused + others_refused),
            ("rx/Ip.InDelivers", at_ip - refused - others_refused),
            ("rx/Tcp.InSegs", tcp + self.elsewhere),
            ("rx/other-devices.eno1.rx.packets", self.elsewhere),
            ("rx/Udp.InDatagrams", self.delivered + read),
            ("rx/Udp.InErrors", socket + dropped + damaged),
            ("rx/Udp.InCsumErrors", damaged),
            ("rx/Udp.RcvbufErrors", socket + dropped),
            ("rx/Udp.NoPorts", closed),
        ]
    }

    fn truth(&self) -> [(Place, i64); 11] {
        let [qdisc, device, network] = self.sending;
        let [ring, backlog, refused, socket] = self.receiving;
        [
            (Place::EgressHook, self.hooks[0]),
            (Place::Qdisc, qdisc),
            (Place::SendingDevice, device),
            (Place::Network, network),
            (Place::Ring, ring),
            (Place::Backlog, backlog),
            (Place::Ip, refused),
            (Place::SocketBuffer, socket),
            (Place::Checksum, self.damaged[0]),
            (Place::NoListener, 0),
            (Place::Netfilter, 0),
        ]
    }
}

fn world() -> impl Strategy<Value = World> {
    let count = || prop_oneof![2 => Just(0i64), 3 => 0i64..2_000];
    let ours = (
        1i64..100_000,
        prop::array::uniform3(count()),
        prop::array::uniform4(count()),
        count(),
        prop_oneof![Just(0.0), 0.0f64..=1.0],
    );
    let others = (
        prop::array::uniform5(count()),
        prop::array::uniform2(0.0f64..=1.0),
        prop::array::uniform3(count()),
        prop::array::uniform5(count()),
        prop::array::uniform2(count()),
        (prop::array::uniform2(count()), any::<bool>()),
    );
    (ours, others).prop_map(|(ours, (others, shares, others_out, more, hooks, damaged))| {
        let (delivered, sending, receiving, uncounted, tail) = ours;
        let [others_in_qdisc, arp, other_family, full, elsewhere] = more;
        // The assumption: ring and backlog lost no more of others than they passed.
        let passed = others.iter().sum::<i64>() as f64;
        let [others_in_ring, others_in_backlog] = shares.map(|share| (passed * share) as i64);
        let world = World {
            delivered,
            sending,
            receiving,
            uncounted,
            tail: 0,
            others,
            others_in_qdisc,
            others_in_ring,
            others_in_backlog,
            others_out,
            arp,
            other_family,
            full,
            elsewhere,
            hooks,
            damaged: damaged.0,
            damaged_at_sockets: damaged.1,
        };
        World { tail: (world.lost() as f64 * tail) as i64, ..world }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_truth_is_inside_the_bounds_of_each_place(world in world(), numbered: bool) {
        let mut said = world.input();
        let missed = (world.lost() - world.tail) as u64;
        said.receiver.sequence_lost_packets = numbered.then_some(missed);
        let ledger = Ledger::from_counters(&said, &world.moved());
        for (place, lost) in world.truth() {
            let lost = lost as u64;
            let bounds = drop_at(&ledger, place).map(Drop::range);
            let inside = bounds.map_or(lost == 0, |it| {
                it.least_packets <= lost && it.most_packets.is_none_or(|most| lost <= most)
            });
            prop_assert!(inside, "{place:?} {lost}: {world:?} {ledger:#?}");
        }
        // Up to a ten-thousandth is no difference to a number.
        let few = 10i64.max(world.offered() / 10_000);
        let holds = match (ledger.unaccounted_packets, ledger.unaccounted_bounds) {
            (Some(left), _) => left >= 0 && (left - world.uncounted).abs() <= few,
            (None, Some(rest)) => {
                (rest.least_packets..=rest.most_packets).contains(&world.uncounted)
            }
            (None, None) => false,
        };
        prop_assert!(holds, "{world:?} {ledger:#?}");
        let is_accounted = matches!(ledger.balance(), Balance::Closed | Balance::Within(_));
        prop_assert!(is_accounted || world.uncounted > 0, "{world:?} {ledger:#?}");
    }
}
