//! Random losses at random places, with counters made by the kernel's rules: the ledger must find them all.
//!
//! The rules below are written from the kernel's side (what a drop there increments), not from the ledger's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // clippy excepts #[test] functions only

use std::collections::BTreeMap;

use proptest::prelude::*;
use rxpath_record::counters::Moved;
use rxpath_record::ledger::{
    Bypass, Ledger, LedgerInput, Link, PathFacts, Place, ReceiverSaid, SenderSaid,
};

/// Aggregates that are lost at each place; where a plain socket drops, single datagrams.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent facts of one trial
struct Trial {
    segments: i64,
    v6: bool,
    napi: bool,
    gro: bool,
    large: bool,
    delivered: i64,
    refused: i64,
    qdisc: i64,
    ring: i64,
    backlog: i64,
    ingress: i64,
    header: i64,
    reverse: i64,
    input: i64,
    no_port: i64,
    checksum: i64,
    rcvbuf: i64,
    memory: i64,
    uncounted: i64,
    queued: i64,
    icmp: i64,
    /// Read from AF_XDP sockets.
    bypassed: i64,
    /// Dropped by them.
    no_frame: i64,
}

prop_compose! {
    fn trial()(
        segments in prop_oneof![Just(1i64), 2i64..64],
        flags in any::<[bool; 4]>(),
        path in prop::array::uniform8(prop_oneof![Just(0i64), 1i64..5000]),
        end in prop::array::uniform8(prop_oneof![Just(0i64), 1i64..5000]),
        icmp in 0i64..9,
        xdp in prop::array::uniform2(prop_oneof![Just(0i64), 1i64..5000]),
    ) -> Trial {
        let [v6, napi, gro, large] = flags;
        let [refused, qdisc, ring, backlog, ingress, header, reverse, input] = path;
        let [delivered, no_port, checksum, rcvbuf, memory, uncounted, queued, _] = end;
        // Aggregates do not get to XDP programs, which run before GRO and switch GSO off.
        let [bypassed, no_frame] = if segments == 1 { xdp } else { [0, 0] };
        Trial {
            segments, v6, napi, large, bypassed, no_frame,
            gro,
            refused, qdisc, backlog, ingress, header, input, no_port,
            // Without NAPI there is no ring; IPv6 has no reverse path filter of its own.
            ring: if napi { ring } else { 0 },
            reverse: if v6 { 0 } else { reverse },
            // Aggregates are never checksummed in software: GSO sets CHECKSUM_PARTIAL.
            checksum: if segments == 1 { checksum } else { 0 },
            // Aggregates come whole, and are taken apart at a plain socket.
            delivered: delivered * segments, queued: queued * segments,
            rcvbuf: rcvbuf * segments, memory: memory * segments, uncounted: uncounted * segments,
            icmp,
        }
    }
}

/// Counters while packets pass: `add` is one kernel counter going up.
struct Kernel(BTreeMap<String, i64>);

impl Kernel {
    fn add(&mut self, name: &str, by: i64) {
        *self.0.entry(name.into()).or_default() += by;
    }

    fn all(&mut self, names: &[&str], by: i64) {
        for name in names {
            self.add(name, by);
        }
    }
}

impl Trial {
    /// Packets that reach the socket layer, in the unit in which IP hands them over.
    fn at_sockets(&self) -> i64 {
        (self.delivered + self.queued + self.rcvbuf + self.memory + self.uncounted) / self.segments
            + self.checksum
    }

    fn names(&self) -> [&'static str; 4] {
        if self.v6 { ["Ip6", "Ip6", "Udp6", "Icmp6"] } else { ["Ip", "IpExt", "Udp", "Icmp"] }
    }

    fn counters(&self) -> Moved {
        let [ip, ext, udp, icmp] = self.names();
        let rx = |group: &str, counter: &str| format!("rx/{group}.{counter}");
        let tx = |group: &str, counter: &str| format!("tx/{group}.{counter}");
        let mut k = Kernel(BTreeMap::new());

        // ip_rcv: InReceives for all, the ECN counters by segment, then the refusals.
        let delivers = self.at_sockets() + self.no_port;
        let receives = delivers + self.header + self.reverse + self.input;
        k.add(&rx(ip, "InReceives"), receives + self.icmp);
        k.add(&rx(ext, "InNoECTPkts"), receives * self.segments + self.icmp);
        k.add(&rx(ip, "InDelivers"), delivers + self.icmp);
        k.add(&rx(icmp, "InMsgs"), self.icmp);
        k.add(&rx(ip, "InHdrErrors"), self.header);
        k.add("rx/TcpExt.IPReversePathFilter", self.reverse);
        k.add("rx/nft.inet.t.in.1.packets", self.input);

        // The device: without NAPI a backlog drop comes back to the sender's device.
        let at_core = receives + self.ingress + self.icmp + self.bypassed + self.no_frame;
        let polled = if self.napi { at_core + self.backlog } else { at_core };
        k.add("rx/nft.netdev.t.ing.1.packets", self.ingress);
        k.add("rx/link.v1.rx.packets", polled);
        k.add("tx/link.v0.tx.packets", polled);
        k.all(&["rx/link.v1.rx.dropped", "machine/softnet.cpu1.dropped"], self.backlog);
        k.add("rx/link.v1.rx.dropped", self.no_frame);
        if self.napi {
            k.add("rx/ethtool.v1.rx_queue_0_xdp_packets", polled);
            k.add("rx/ethtool.v1.rx_queue_0_xdp_redirect", self.bypassed);
        }
        let behind_call = self.ring + if self.napi { 0 } else { self.backlog };
        k.add("tx/link.v0.tx.dropped", behind_call);
        k.add("tx/qdisc.v0.tbf.drops", self.qdisc);
        k.add(&tx(udp, "SndbufErrors"), behind_call + self.qdisc);
        let refused = self.refused;
        k.add(&tx(ip, "OutDiscards"), behind_call + self.qdisc + refused);
        k.add(&tx(icmp, "OutMsgs"), self.icmp);

        // UDP: aggregates at a UDP_GRO socket, datagrams at a plain one.
        let of = |datagrams: i64| if self.gro { datagrams / self.segments } else { datagrams };
        k.add(&rx(udp, "NoPorts"), self.no_port);
        k.add(&rx(udp, "RcvbufErrors"), of(self.rcvbuf));
        k.add(&rx(udp, "MemErrors"), of(self.memory));
        k.add(&rx(udp, "InCsumErrors"), self.checksum);
        k.add(&rx(udp, "InErrors"), of(self.rcvbuf) + of(self.memory) + self.checksum);
        k.0.retain(|_, by| *by != 0);
        Moved { values: k.0, gaps: BTreeMap::new() }
    }

    fn offered(&self) -> i64 {
        let behind = self.at_sockets()
            + self.no_port
            + self.header
            + self.reverse
            + self.input
            + self.ingress
            + self.backlog
            + self.ring
            + self.qdisc
            + self.refused
            + self.bypassed
            + self.no_frame;
        behind * self.segments
    }

    fn input(&self) -> LedgerInput {
        let of = |datagrams: i64| if self.gro { datagrams / self.segments } else { datagrams };
        let late = if self.large { self.checksum } else { 0 };
        let drops = of(self.rcvbuf) + of(self.memory) + of(self.uncounted) + late;
        let refused = (self.refused * self.segments) as u64;
        LedgerInput {
            sender: SenderSaid {
                offered_packets: self.offered() as u64,
                sent_packets: self.offered() as u64 - refused,
                send_errors: BTreeMap::from([("EPERM".into(), refused)]),
                segments_per_send: self.segments as u32,
                ..SenderSaid::default()
            },
            receiver: ReceiverSaid {
                delivered_packets: (self.delivered + self.bypassed) as u64,
                in_flight_packets: self.queued as u64,
                socket_drops: Some(vec![drops as u64, 0]),
                gro: self.gro,
                payload_bytes: Some(if self.large { 500 } else { 32 }),
                bypass: Some(Bypass {
                    taken_packets: (self.bypassed + self.no_frame) as u64,
                    program_drops_packets: 0,
                    socket_drops_packets: self.no_frame as u64,
                }),
                ..ReceiverSaid::default()
            },
            path: PathFacts {
                tx_device: Some("v0".into()),
                tx_qdisc: None,
                rx_device: Some("v1".into()),
                v6: self.v6,
                link: if self.napi { Link::VethNapi } else { Link::VethPlain },
                input_rules: Some(vec!["rx/nft.inet.t.in.1.packets".into()]),
                ingress_rules: Some(vec!["rx/nft.netdev.t.ing.1.packets".into()]),
                egress_rules: Some(Vec::new()),
                output_rules: Some(Vec::new()),
                ..PathFacts::default()
            },
            reasoned: None,
        }
    }

    fn lost(&self) -> BTreeMap<Place, u64> {
        let each = [
            (Place::SendCall, self.refused * self.segments),
            (Place::Qdisc, self.qdisc * self.segments),
            (Place::Ring, self.ring * self.segments),
            (Place::Backlog, self.backlog * self.segments),
            (Place::IngressHook, self.ingress * self.segments),
            (Place::XdpSocket, self.no_frame),
            (Place::Ip, self.header * self.segments),
            (Place::ReversePath, self.reverse * self.segments),
            (Place::Netfilter, self.input * self.segments),
            (Place::NoListener, self.no_port * self.segments),
            (Place::Checksum, self.checksum),
            (Place::SocketBuffer, self.rcvbuf),
            (Place::UdpMemory, self.memory),
            (Place::UdpMemoryUncounted, self.uncounted),
        ];
        each.into_iter().filter(|(_, n)| *n > 0).map(|(place, n)| (place, n as u64)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_loss_is_found_where_it_was(trial in trial()) {
        let ledger = Ledger::from_counters(&trial.input(), &trial.counters());
        let found: BTreeMap<Place, u64> =
            ledger.drops.iter().map(|drop| (drop.place, drop.packets)).collect();
        prop_assert_eq!(found, trial.lost());
        prop_assert_eq!(ledger.unaccounted_packets, Some(0), "{:#?}", ledger);
        prop_assert_eq!(ledger.foreign_packets as i64, trial.icmp);
        prop_assert_eq!(&ledger.notes, &Vec::<String>::new());
    }

    #[test]
    fn a_driver_that_contradicts_the_program_is_noticed(trial in trial(), off in 1i64..9) {
        let trial = Trial { napi: true, bypassed: trial.bypassed + 1, segments: 1, ..trial };
        let mut moved = trial.counters();
        *moved.values.entry("rx/ethtool.v1.rx_queue_0_xdp_redirect".into()).or_default() += off;
        let ledger = Ledger::from_counters(&trial.input(), &moved);
        prop_assert!(ledger.notes.iter().any(|note| note.contains("_xdp_redirect")), "{:#?}", ledger);
    }

    #[test]
    fn no_counters_make_it_panic_or_miscount(
        values in prop::collection::btree_map("(rx|tx)/(Udp|Ip|IpExt|link\\.v)\\.(NoPorts|InErrors|InReceives|InDelivers|InNoECTPkts|RcvbufErrors|rx\\.packets|tx\\.dropped|rx\\.dropped)", -1_000_000i64..1_000_000, 0..12),
        offered in 0u64..1_000_000, delivered in 0u64..1_000_000, segments in 0u32..100,
    ) {
        let mut input = LedgerInput::default();
        input.sender.offered_packets = offered;
        input.sender.sent_packets = offered;
        input.sender.segments_per_send = segments;
        input.receiver.delivered_packets = delivered;
        input.path.tx_device = Some("v".into());
        input.path.rx_device = Some("v".into());
        let ledger = Ledger::from_counters(&input, &Moved { values, gaps: BTreeMap::new() });
        let sum = ledger.lost_packets() as i64 + ledger.in_flight_packets as i64;
        if let Some(left) = ledger.unaccounted_packets {
            prop_assert_eq!(left, offered as i64 - delivered as i64 - sum, "what is shown adds up");
        }
    }
}
