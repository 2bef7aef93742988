//! The ends of the sum if foreign programs send or read aggregates. The kernel's counters of their sockets count one
//! for several datagrams; a ledger made of them would close and be wrong.
//!
//! The ECN counters of IP at the receiver show the wire: they add `gso_segs`. They count the datagrams that arrived. If
//! no packet was lost before them, they also count the offered datagrams.

use super::prelude::*;

/// Datagrams of one aggregate at most (`UDP_MAX_SEGMENTS`, include/linux/udp.h, since 6.9; 64 before).
const MOST: u64 = 128;

/// The input with both ends in datagrams, and what of them is not exact.
pub(super) fn in_datagrams(input: &LedgerInput, moved: &Moved) -> (LedgerInput, Vec<Inexact>) {
    let mut input = input.clone();
    let mut inexact = Vec::new();
    let view = View { input: &input, moved };
    if let Some(sent) = Sent::read(view) {
        inexact.extend(sent.inexact());
        input.sender.offered_packets = sent.arrived + sent.lost[0];
        input.sender.sent_packets = input.sender.offered_packets;
        input.sender.segments_per_send = MOST as u32;
        input.sender.short_batches = true;
    }
    let view = View { input: &input, moved };
    if reads_aggregates(view) {
        let (delivered, bounds) = read_whole(view);
        inexact.extend(bounds);
        input.receiver.gro = true;
        input.receiver.delivered_packets = delivered;
    }
    (input, inexact)
}

/// Datagrams of the workload that IP saw at the receiver.
///
/// Of TCP, which other programs' control connections use, IP counted segments: as many as were sent.
fn arrived(view: View<'_>) -> i64 {
    let of = |side, counter| view.get(&name::snmp(side, "Tcp", counter));
    let packets = of(PathSide::Rx, "InSegs");
    let segments = (of(PathSide::Tx, "OutSegs") + of(PathSide::Tx, "RetransSegs")).max(packets);
    view.segments_at_ip() - view.foreign_at_ip(PathSide::Rx) + packets - segments
}

/// What a foreign sender's aggregates were on the wire.
struct Sent {
    /// Datagrams that arrived.
    arrived: u64,
    /// Packets lost before they could be counted as datagrams, at least and at most.
    lost: [u64; 2],
    /// No other packets can have been lost before.
    has_no_wire: bool,
    /// Why nothing more is known.
    why: Option<&'static str>,
}

impl Sent {
    /// `None` where every send was one datagram, or where the sender itself tells.
    fn read(view: View<'_>) -> Option<Self> {
        let sender = &view.input.sender;
        if !sender.by_kernel || sender.raw || super::fragments::Fragments::read(view).is_some() {
            return None;
        }
        let arrived = arrived(view);
        if !(is_whole(view, arrived) || is_cut(view, arrived)) {
            return None;
        }
        let lost = lost_on_the_way(view);
        Some(Self {
            arrived: arrived.max(0).unsigned_abs(),
            lost: lost.map(|packets| packets.max(0).unsigned_abs()),
            has_no_wire: view.link() != Link::Nic,
            why: doubt(view, lost),
        })
    }

    fn inexact(&self) -> Option<Inexact> {
        let why = self.why?;
        let [least, most] = self.lost;
        Some(Inexact {
            figure: Figure::Offered,
            least_packets: self.arrived + least,
            most_packets: (self.has_no_wire && most > 0).then(|| self.arrived + most * MOST),
            why: format!(
                "the sender is a foreign program that sent aggregates: {} datagrams arrived, and {why}",
                grouped(self.arrived)
            ),
        })
    }
}

/// Whether packets of several datagrams crossed the link.
fn is_whole(view: View<'_>, arrived: i64) -> bool {
    let at_ip = view.ip(PathSide::Rx, "InReceives") - view.foreign_at_ip(PathSide::Rx);
    if view.link() == Link::Loopback || view.input.path.rx_device.is_none() {
        return arrived > at_ip;
    }
    // What a rule of the receiver duplicated comes over its loopback device.
    let again = view.get(&name::link(PathSide::Rx, "lo", "rx.packets"));
    let foreign = view.foreign_at_ip(PathSide::Rx) + view.foreign_family(PathSide::Rx);
    arrived > view.rx_link("rx.packets") + again - foreign
}

/// Whether the sender's stack cut aggregates in front of its device: more packets left than sends were made.
fn is_cut(view: View<'_>, arrived: i64) -> bool {
    if view.input.path.tx_device.is_none() || view.link() == Link::Loopback {
        return false;
    }
    let of = |counter| view.udp(PathSide::Tx, counter);
    let sends = of("OutDatagrams") + of("SndbufErrors");
    let queue = view.qdisc().map_or(0, |(_, drops)| drops);
    let again = view.get(&name::snmp(PathSide::Tx, "Tcp", "RetransSegs"));
    let packets = queue + view.tx_link("tx.packets") + view.tx_link("tx.dropped")
        - view.foreign_out(PathSide::Tx)
        - again;
    // Single frames of others, an ARP request for example, are no aggregates.
    packets > sends && (arrived > sends || packets > sends + STRAYS + sends / 50)
}

/// Frames that nobody counts, at most.
const STRAYS: i64 = 16;

/// Packets that were lost where no counter knows how many datagrams they were, at least and at most.
fn lost_on_the_way(view: View<'_>) -> [i64; 2] {
    let queue = view.qdisc().map_or(0, |(_, drops)| drops);
    let behind = view.backlog_behind_device();
    let rules = view.input.path.ingress_rules.iter().flatten();
    let hook: i64 = rules.map(|rule| view.get(rule)).sum();
    let counted =
        queue + view.tx_link("tx.dropped") + behind + hook + view.ip(PathSide::Rx, "InHdrErrors");
    let [least, most] = super::call::egress_bounds(view).map(|at_hooks| counted + at_hooks);
    // All of them may be of other programs.
    [if view.is_shared() { 0 } else { least }, most]
}

/// Why what arrived may not be all that was sent.
fn doubt(view: View<'_>, [least, most]: [i64; 2]) -> Option<&'static str> {
    if least != 0 {
        return Some("packets were lost in front of the counters that know datagrams");
    }
    if most != 0 {
        return Some("packets may have been lost in front of the counters that know datagrams");
    }
    if view.link() == Link::Loopback {
        return Some("other programs' packets are among them");
    }
    if view.udp(PathSide::Tx, "SndbufErrors") != 0 {
        return Some("sends were refused that no counter of a queue shows");
    }
    let [tx, rx] = [view.tx_link("tx.packets"), view.rx_link("rx.packets")];
    if tx != rx {
        return Some("the devices of both sides differ");
    }
    // A hook that nothing counts takes packets between the device and IP; GRO makes fewer of them there.
    let merges = matches!(view.link(), Link::VethNapi | Link::Nic);
    let at_ip = view.ip(PathSide::Rx, "InReceives") + view.foreign_family(PathSide::Rx);
    let hooked = if merges { !super::sending::no_ingress_rules(view) } else { at_ip != rx };
    hooked.then_some("a hook in front of IP may have taken packets")
}

/// Whether a foreign receiver's counters count aggregates: UDP was handed as many packets as its counters have, and these
/// were fewer than the datagrams.
fn reads_aggregates(view: View<'_>) -> bool {
    let receiver = &view.input.receiver;
    if !receiver.by_kernel || super::fragments::Fragments::read(view).is_some() {
        return false;
    }
    let of = |counter| view.udp(PathSide::Rx, counter);
    let handed = view.ip(PathSide::Rx, "InDelivers") - view.foreign_delivered(PathSide::Rx);
    let counted = of("InDatagrams") + of("InErrors") + of("NoPorts");
    let at_ip = view.ip(PathSide::Rx, "InReceives") - view.foreign_at_ip(PathSide::Rx);
    of("InDatagrams") > 0 && arrived(view) > at_ip && counted <= handed
}

/// Datagrams that were read as aggregates.
fn read_whole(view: View<'_>) -> (u64, Option<Inexact>) {
    let read = view.udp(PathSide::Rx, "InDatagrams").max(0);
    let (least, exact) = Units::of(view).ip.least(read);
    if exact {
        return (least.max(0).unsigned_abs(), None);
    }
    let at_ip = view.ip(PathSide::Rx, "InReceives") - view.foreign_at_ip(PathSide::Rx);
    let arrived = arrived(view);
    if read == at_ip {
        return (arrived.max(0).unsigned_abs(), None);
    }
    let most = arrived - (at_ip - read);
    let bounds = Inexact {
        figure: Figure::Delivered,
        least_packets: read.unsigned_abs(),
        most_packets: Some(most.max(read).unsigned_abs()),
        why: format!(
            "the receiver is a foreign program that reads aggregates (UDP_GRO): {} of {} were read, which were \
             {} datagrams together",
            signed(read),
            signed(at_ip),
            signed(arrived)
        ),
    };
    (read.unsigned_abs(), Some(bounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Ledger, PathFacts, SenderSaid};

    #[test]
    fn aggregates_that_a_hook_may_have_dropped_are_no_sure_part_of_what_was_offered() {
        let sender = SenderSaid {
            offered_packets: 100,
            sent_packets: 100,
            by_kernel: true,
            ..SenderSaid::default()
        };
        let path = PathFacts {
            tx_device: Some("eth0".into()),
            tx_qdisc: Some("tx/qdisc.eth0.root.drops".into()),
            tx_filters: Some("tx/tc.eth0.clsact.drops".into()),
            rx_device: Some("eth1".into()),
            link: Link::Nic,
            ..PathFacts::default()
        };
        let mut input = LedgerInput { sender, path, ..LedgerInput::default() };
        // 87 aggregates of ten arrived. The driver dropped three, and a hook seven or ten.
        let values = [
            ("tx/Udp.OutDatagrams", 90),
            ("tx/Udp.SndbufErrors", 10),
            ("tx/Ip.OutDiscards", 10),
            ("tx/link.eth0.tx.packets", 87),
            ("tx/link.eth0.tx.dropped", 3),
            ("rx/link.eth1.rx.packets", 87),
            ("rx/Ip.InReceives", 87),
            ("rx/IpExt.InNoECTPkts", 870),
        ];
        let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
        let moved = Moved { values, ..Moved::default() };
        let (whole, inexact) = in_datagrams(&input, &moved);
        assert_eq!(whole.sender.offered_packets, 880, "{inexact:?}");
        // The network may have lost more.
        assert_eq!((inexact[0].least_packets, inexact[0].most_packets), (880, None));
        // All that was lost, and all that arrived, may be of other programs.
        input.path.is_shared = true;
        let ledger = Ledger::from_counters(&input, &moved);
        let [offered] = ledger.inexact.as_slice() else { panic!("{ledger:#?}") };
        assert_eq!((ledger.offered_packets, offered.least_packets), (870, 0), "{ledger:#?}");
        assert_eq!(offered.most_packets, None, "{ledger:#?}");
        let why = "packets may have been lost in front of the counters that know datagrams; its host's counters have the \
                   datagrams of all programs";
        assert!(offered.why.ends_with(why), "{offered}");
    }
}
