//! The ledger of TCP: every segment of both directions, from the sending TCP to the receiving one.
//!
//! Two families of counters count segments exactly, whatever GSO and GRO did with them on the path: TCP's own at the
//! sender (`OutSegs`, `RetransSegs`, which add the segments of an aggregate) and the ECN counters of IP at the receiver
//! (which do the same). All counters between them count buffers. So the segments lost on the link are the difference of
//! two exact values, and the queues' counters must account for it: each of their drops is at least one segment and at
//! most one full aggregate. A difference that no queue's counter covers is unaccounted.
//!
//! Behind IP, TCP counts buffers again. What it refuses is a loss; what it takes and has no use for (a copy of data
//! that it has, a bare acknowledgement) is delivered: TCP consumed it.
//!
//! On hosts that others use, all of these count the segments of all programs. The workload's own sockets say how many
//! are surely its own. Then both ends of the sum, the losses and the remainder are intervals.

mod notes;
mod others;

use self::notes::{bounds, gaps};
use self::others::{Others, ends};
pub use self::others::{OwnSegments, SocketSegments};
use super::input::PathFacts;
use super::prelude::*;
use super::view::of_32_bits;
use super::{Ledger, LedgerUnit};

/// The input of a TCP trial's ledger, in addition to the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentInput {
    /// Facts about the way from the load to the server; the way back is taken as bare.
    pub path: PathFacts,
    /// MTU of the link: it bounds how many segments one buffer can hold.
    pub mtu_bytes: u32,
    /// Nothing listens: every reset is a segment that found nobody.
    pub nobody_listens: bool,
    /// What the workload's own sockets say; `None` if none of them was read.
    pub own: Option<OwnSegments>,
}

/// Largest payload of a GSO buffer (`GSO_LEGACY_MAX_SIZE`, include/linux/netdevice.h).
const GSO_MAX_BYTES: i64 = 65_536;
/// IPv6 and TCP headers with timestamps: the least that a segment's payload lacks of the MTU.
const HEADERS_BYTES: i64 = 72;

/// TCP's own refusals, each by its owning counter (net/ipv4/tcp_input.c, tcp_ipv4.c; `LINUX_MIB_*`).
const REFUSED: [(Place, &str, &str); 12] = [
    (Place::Checksum, "Tcp", "InCsumErrors"),
    // Overflows of the accept queue are part of it.
    (Place::ListenQueue, "TcpExt", "ListenDrops"),
    (Place::SocketBacklog, "TcpExt", "TCPBacklogDrop"),
    (Place::TcpReceiveQueue, "TcpExt", "TCPRcvQDrop"),
    (Place::TcpReceiveQueue, "TcpExt", "TCPZeroWindowDrop"),
    (Place::TcpOutOfOrder, "TcpExt", "TCPOFODrop"),
    (Place::TcpSequence, "TcpExt", "PAWSActive"),
    (Place::TcpSequence, "TcpExt", "PAWSEstab"),
    (Place::TcpSequence, "TcpExt", "TSEcrRejected"),
    (Place::TcpOther, "TcpExt", "TCPMinTTLDrop"),
    (Place::TcpOther, "TcpExt", "PFMemallocDrop"),
    (Place::TcpOther, "TcpExt", "TCPDeferAcceptDrop"),
];

/// Counters that move with a refusal and own nothing.
const WITH: [(&str, &str); 5] = [
    ("ListenDrops", "ListenOverflows"),
    ("ListenDrops", "TCPReqQFullDrop"),
    ("TCPRcvQDrop", "RcvPruned"),
    ("TCPOFODrop", "OfoPruned"),
    ("TCPBacklogDrop", "TCPBacklogCoalesce"),
];

/// Segments from the load's side to the server's: sent by TCP, and seen by IP at the other end.
pub fn segments_between(input: &SegmentInput, moved: &Moved) -> [i64; 2] {
    let way = Way { input, moved, from: PathSide::Tx, to: PathSide::Rx };
    [way.sent(), way.arrived()]
}

impl Ledger {
    /// Where every TCP segment of a trial went, both directions together.
    ///
    /// `moved` spans the whole trial, between two readings of stable counters. **Unit** segments.
    pub fn of_segments(input: &SegmentInput, moved: &Moved) -> Self {
        let mut ledger = Self { unit: LedgerUnit::Segment, ..Self::default() };
        let mut terms = Vec::new();
        let (mut offered, mut reached) = (0, 0);
        let mut others = None;
        for way in ways(input, moved) {
            offered += way.sent();
            let of_others = Others::of(&way);
            let link = Others::bound(of_others, &way, way.link(&mut ledger.notes, of_others));
            let behind_ip = Others::bound(of_others, &way, way.behind_ip());
            let vanished = way.between_ip_and_tcp();
            reached += way.arrived() - sum(&behind_ip) - vanished;
            others = Others::with(others, of_others);
            terms.extend(link);
            terms.extend(behind_ip);
            if !way.may_be_of_other_family(vanished) {
                let side = way.to;
                ledger.notes.push(format!(
                    "{} packets lie between {side}/Ip.InDelivers and Tcp.InSegs",
                    signed(vanished)
                ));
            }
            ledger.foreign_packets += way.foreign().max(0).unsigned_abs();
        }
        ledger.notes.extend(gaps(input, moved));
        ledger.notes.extend(bounds(&terms));
        ledger.notes.extend(super::wire::counted_there(moved));
        ledger.offered_packets = offered.max(0).unsigned_abs();
        ledger.sent_packets = ledger.offered_packets;
        ledger.delivered_packets = reached.max(0).unsigned_abs();
        ledger.unaccounted_packets = Some(offered - reached - sum(&terms));
        if let Some(others) = others {
            others.leave_open(&mut ledger, input.own, &terms);
        }
        ledger.drops = terms.into_iter().filter_map(Term::into_drop).collect();
        ledger.drops.sort_few_by_key(|drop| drop.place);
        ledger
    }
}

/// The segments that arrived at the server's host: what its own counters, from its device to its TCP, say of them.
pub(super) fn arrived(input: &SegmentInput, moved: &Moved) -> Ledger {
    let way = Way { input, moved, from: PathSide::Tx, to: PathSide::Rx };
    let own = format!("{}/", way.to);
    let unit = Unit::Mixed { most: Some(way.most()) };
    let counted = way.link_drops().into_iter().filter(|(_, counter, _)| counter.starts_with(&own));
    let before_ip = counted.map(|(place, counter, n)| Term::owned(place, counter, n, unit));
    let others = Others::of(&way);
    let before_ip = Others::bound(others, &way, before_ip.collect());
    let behind_ip = Others::bound(others, &way, way.behind_ip());
    let vanished = way.between_ip_and_tcp();
    let vanished = if way.may_be_of_other_family(vanished) { 0 } else { vanished };
    let offered = (way.arrived() + sum(&before_ip)).max(0).unsigned_abs();
    let reached = way.arrived() - sum(&behind_ip) - vanished;
    let terms: Vec<Term> = before_ip.into_iter().chain(behind_ip).collect();
    let mut ledger = Ledger {
        unit: LedgerUnit::Segment,
        offered_packets: offered,
        sent_packets: offered,
        delivered_packets: reached.max(0).unsigned_abs(),
        foreign_packets: way.foreign().max(0).unsigned_abs(),
        unaccounted_packets: Some(vanished),
        notes: bounds(&terms),
        ..Ledger::default()
    };
    if Others::are_many(others) {
        ledger.unaccounted_packets = None;
        let read = input.own.unwrap_or_default().rx.received_packets;
        ledger.inexact = ends(&ledger, [read; 2], &terms);
    }
    ledger.drops = terms.into_iter().filter_map(Term::into_drop).collect();
    ledger
}

fn sum(terms: &[Term]) -> i64 {
    terms.iter().map(Term::credited).sum()
}

/// Both directions; one on loopback, where both sides' counters are the same.
fn ways<'a>(input: &'a SegmentInput, moved: &'a Moved) -> impl Iterator<Item = Way<'a>> {
    let way = move |from, to| Way { input, moved, from, to };
    let back = (input.path.link != Link::Loopback).then(|| way(PathSide::Rx, PathSide::Tx));
    std::iter::once(way(PathSide::Tx, PathSide::Rx)).chain(back)
}

/// One direction.
struct Way<'a> {
    input: &'a SegmentInput,
    moved: &'a Moved,
    from: PathSide,
    to: PathSide,
}

impl Way<'_> {
    fn get(&self, side: PathSide, group: &str, counter: &str) -> i64 {
        self.moved.get(&name::snmp(side, group, counter))
    }

    fn forward(&self) -> bool {
        self.from == PathSide::Tx
    }

    /// Segments that TCP handed to IP.
    ///
    /// **Source** `__tcp_transmit_skb` counts new segments in `OutSegs`, `__tcp_retransmit_skb` the others in
    /// `RetransSegs`. A repeated SYN-ACK is in both (`tcp_make_synack`, `tcp_rtx_synack`).
    fn sent(&self) -> i64 {
        let of = |counter| self.get(self.from, "Tcp", counter);
        let listens_only = of("ActiveOpens") == 0;
        let twice = self.get(self.from, "TcpExt", "TCPSynRetrans");
        of("OutSegs") + of("RetransSegs") - if listens_only { twice } else { 0 }
    }

    /// Segments that IP saw at the other end, by the ECN counters less what was not TCP's.
    fn arrived(&self) -> i64 {
        let group = self.input.path.groups().1;
        let all: i64 = name::ECN.iter().map(|counter| self.get(self.to, group, counter)).sum();
        all - self.not_tcp()
    }

    /// Packets of other protocols that IP of this family handed on.
    fn not_tcp(&self) -> i64 {
        let v6 = self.input.path.v6;
        let (icmp, udp) = if v6 { ("Icmp6", "Udp6") } else { ("Icmp", "Udp") };
        let datagrams = ["InDatagrams", "NoPorts", "InErrors"];
        self.get(self.to, icmp, "InMsgs")
            + datagrams.iter().map(|counter| self.get(self.to, udp, counter)).sum::<i64>()
            + self.get(self.to, self.input.path.groups().0, "InUnknownProtos")
    }

    /// Packets that IP of the other family received. TCP counts those of both.
    fn other_family(&self) -> i64 {
        let other = if self.input.path.v6 { "Ip" } else { "Ip6" };
        self.get(self.to, other, "InReceives")
    }

    fn foreign(&self) -> i64 {
        self.not_tcp() + self.other_family()
    }

    fn device(&self, side: PathSide) -> Option<&str> {
        let path = &self.input.path;
        if side == PathSide::Tx { path.tx_device.as_deref() } else { path.rx_device.as_deref() }
    }

    fn link_counter(&self, side: PathSide, counter: &str) -> (String, i64) {
        let name = name::link(side, self.device(side).unwrap_or_default(), counter);
        let moved = self.moved.get(&name);
        (name, moved)
    }

    /// Buffers that counters of the link saw die, by place.
    fn link_drops(&self) -> Vec<(Place, String, i64)> {
        let mut found = Vec::new();
        if let Some(device) = self.device(self.from) {
            let prefix = format!("{}/qdisc.{device}.", self.from);
            // A parent counts its children's drops too: the largest is the whole.
            let all = self.moved.like(&prefix, "drops");
            let root = all.map(|(name, by)| (name, of_32_bits(by))).max_by_key(|(_, by)| *by);
            found.extend(root.map(|(name, drops)| (Place::Qdisc, name.to_owned(), drops)));
        }
        let path = &self.input.path;
        let rules = |rules: &Option<Vec<String>>| rules.clone().unwrap_or_default();
        let own = format!("{}/", self.from);
        let output = rules(&path.output_rules).into_iter().filter(|rule| rule.starts_with(&own));
        found.extend(output.map(|rule| self.rule(Place::Output, rule)));
        let (egress, ingress) = if self.forward() {
            (rules(&path.egress_rules), rules(&path.ingress_rules))
        } else {
            (Vec::new(), Vec::new())
        };
        // No term without a rule's counter: TCP counts a segment before its call fails (`__tcp_transmit_skb`), IP no drop
        // (`__ip_queue_xmit`). `TCPRetransFail` has retransmissions alone, and those that OUTPUT and queues refused. Cards show
        // what did not leave, not where it died, and tun and tap count buffers.
        found.extend(egress.into_iter().map(|rule| self.rule(Place::EgressHook, rule)));
        let (tx_name, refused) = self.link_counter(self.from, "tx.dropped");
        let (rx_name, backlog) = self.link_counter(self.to, "rx.dropped");
        let ring = match path.link {
            Link::VethNapi if self.forward() => refused,
            Link::Nic => 0,
            Link::Loopback => refused,
            // Without NAPI there is no ring, and a full backlog is counted at both ends (`veth_xmit`).
            _ => refused - backlog,
        };
        found.push((Place::Ring, tx_name, ring));
        if path.link == Link::Nic {
            found.extend(self.cards());
        }
        found.push((Place::Backlog, rx_name, backlog));
        found.extend(ingress.into_iter().map(|rule| self.rule(Place::IngressHook, rule)));
        found.extend(self.hook_of_a_program());
        // The earliest header errors are found before the ECN field is looked at.
        let headers = name::snmp(self.to, path.groups().0, "InHdrErrors");
        let errors = self.moved.get(&headers);
        found.push((Place::Ip, headers, errors));
        found.retain(|(.., buffers)| *buffers != 0);
        found
    }

    /// What network cards and the wire between them lost.
    fn cards(&self) -> Vec<(Place, String, i64)> {
        let path = &self.input.path;
        let (dropped, by_driver) = self.link_counter(self.from, "tx.dropped");
        let mut found = vec![(Place::SendingDevice, dropped, by_driver)];
        let way = match &path.wire {
            WireFacts::Counted(wire) if self.forward() => Some(&wire.forward),
            WireFacts::Counted(wire) => Some(&wire.backward),
            WireFacts::NoCards | WireFacts::Unknown(_) => None,
        };
        if let Some((way, (least, _))) = way.and_then(|way| Some((way, way.lost(self.moved)?))) {
            found.push((Place::Network, way.formula(), least.max(0)));
        }
        // The table of the driver is that of the receiver's card.
        let owners: &[String] = if self.forward() { &path.ring } else { &[] };
        let device = self.device(self.to).unwrap_or_default();
        let (name, missed) = self.moved.ring(self.to, device, owners);
        found.push((Place::Ring, name, missed));
        found
    }

    /// What a hook of which no counter is known took in front of IP, in buffers.
    ///
    /// Only without NAPI: GRO makes fewer buffers of those that the device counted.
    fn hook_of_a_program(&self) -> Option<(Place, String, i64)> {
        let path = &self.input.path;
        if !self.hooked() || path.link != Link::VethPlain {
            return None;
        }
        let (device, packets) = self.link_counter(self.to, "rx.packets");
        let of = |group: &str| self.get(self.to, group, "InReceives");
        let taken = packets - of("Ip") - of("Ip6");
        Some((Place::IngressHook, format!("{device} - {}/Ip.InReceives", self.to), taken.max(0)))
    }

    /// Whether a hook of which no counter is known hangs in front of the receiving IP.
    fn hooked(&self) -> bool {
        let path = &self.input.path;
        self.forward() && path.ingress_rules.is_none() && path.link != Link::Loopback
    }

    fn rule(&self, place: Place, rule: String) -> (Place, String, i64) {
        let moved = self.moved.get(&rule);
        (place, rule, moved)
    }

    /// Segments that one buffer holds at most.
    fn most(&self) -> i64 {
        let payload = (i64::from(self.input.mtu_bytes) - HEADERS_BYTES).max(1);
        GSO_MAX_BYTES / payload + 1
    }

    /// What died between the sending TCP and the other end's IP.
    fn link(&self, notes: &mut Vec<String>, others: Option<Others>) -> Vec<Term> {
        let lost = self.sent() - self.arrived();
        let drops = self.link_drops();
        if Others::are_many(others) {
            // The difference has segments that went elsewhere or came from there.
            let each = |(place, name, n): (Place, String, i64)| {
                let is_frame = matches!(place, Place::Network | Place::Ring);
                let mixed = Unit::Mixed { most: Some(self.most()) };
                let unit = if is_frame { Unit::Each(1) } else { mixed };
                Term::owned(place, name, n, unit)
            };
            return drops.into_iter().map(each).collect();
        }
        let buffers: i64 = drops.iter().map(|(.., n)| *n).sum();
        let covered = (buffers..=buffers * self.most()).contains(&lost);
        let is_explained = Others::explain(others, lost - buffers);
        if drops.is_empty() && lost > 0 && self.hooked() && !is_explained {
            let formula = format!("segments sent - segments at IP ({} to {})", self.from, self.to);
            return vec![Term::derived(Place::IngressHook, formula, lost, Unit::Each(1), None)];
        }
        if is_explained || !covered {
            let each = |(place, name, n)| Term::owned(place, name, n, Unit::Each(1));
            return drops.into_iter().map(each).collect();
        }
        if let [(place, counter, n)] = drops.as_slice() {
            let formula = format!("segments sent - segments at IP ({} to {})", self.from, self.to);
            let mut term = Term::derived(*place, formula, lost, Unit::Each(1), None);
            term.check(counter, *n, *n);
            return vec![term];
        }
        let (segments, of_buffers) = (signed(lost), signed(buffers));
        notes.push(format!(
            "{segments} segments in {of_buffers} buffers were dropped at several places from {} to {}: each place's share is \
             a bound, their sum is exact",
            self.from, self.to
        ));
        let largest = drops.iter().map(|(.., n)| *n).max();
        let mut rest = lost - buffers;
        let share = |(place, name, n): (Place, String, i64)| {
            let unit = Unit::Mixed { most: Some(self.most()) };
            let mut term = Term::owned(place, name, n, unit);
            if Some(n) == largest {
                term.datagrams += std::mem::take(&mut rest);
            }
            term
        };
        drops.into_iter().map(share).collect()
    }

    /// How many segments a buffer is behind IP.
    fn unit(&self) -> Unit {
        let path = &self.input.path;
        let receives = self.get(self.to, path.groups().0, "InReceives")
            - self.get(self.to, path.groups().0, "InHdrErrors");
        if receives - self.not_tcp() == self.arrived() {
            Unit::Each(1)
        } else {
            Unit::Mixed { most: Some(self.most()) }
        }
    }

    /// What netfilter, IP and TCP refused.
    fn behind_ip(&self) -> Vec<Term> {
        let unit = self.unit();
        let ip = self.input.path.groups().0;
        let mut terms = Vec::new();
        let mut named = self.get(self.to, ip, "InHdrErrors");
        for (place, group, counter) in [
            (Place::Ip, ip, "InAddrErrors"),
            (Place::Ip, ip, "InDiscards"),
            (Place::ReversePath, "TcpExt", "IPReversePathFilter"),
        ] {
            let name = name::snmp(self.to, group, counter);
            named += self.moved.get(&name);
            let packets = self.moved.get(&name);
            terms.push(Term::owned(place, name, packets, unit));
        }
        let ends = ["InReceives", "InDelivers"].map(|counter| self.get(self.to, ip, counter));
        let filtered = ends[0] - ends[1] - named;
        let rules = self.input.path.input_rules.as_ref().filter(|_| self.forward());
        let counted = rules.map(|rules| rules.iter().map(|rule| self.moved.get(rule)).sum());
        let formula = format!("{}/{ip}.InReceives - {ip}.InDelivers - the IP terms", self.to);
        terms.push(Term::derived(Place::Netfilter, formula, filtered, unit, counted));
        terms.extend(self.refused_by_tcp(unit));
        terms
    }

    fn refused_by_tcp(&self, unit: Unit) -> Vec<Term> {
        let mut terms = Vec::new();
        for (place, group, counter) in REFUSED {
            let packets = self.get(self.to, group, counter);
            let mut term = Term::owned(place, name::snmp(self.to, group, counter), packets, unit);
            for (_, with) in WITH.iter().filter(|(owner, _)| *owner == counter) {
                let moved = self.get(self.to, "TcpExt", with);
                if moved != 0 {
                    term.check(name::snmp(self.to, "TcpExt", with), moved, moved);
                }
            }
            terms.push(term);
        }
        if self.input.nobody_listens && self.forward() {
            let resets = name::snmp(self.to, "Tcp", "OutRsts");
            let packets = self.moved.get(&resets);
            terms.push(Term::derived(Place::NoListener, resets, packets, unit, None));
        }
        terms
    }

    /// Buffers that IP handed to TCP and that TCP did not count.
    fn between_ip_and_tcp(&self) -> i64 {
        let handed = self.get(self.to, self.input.path.groups().0, "InDelivers") - self.not_tcp();
        handed - self.get(self.to, "Tcp", "InSegs")
    }

    /// Whether these are none, or as many more in TCP's counter as the other family may have handed to it.
    fn may_be_of_other_family(&self, vanished: i64) -> bool {
        (-self.other_family()..=0).contains(&vanished)
    }
}
