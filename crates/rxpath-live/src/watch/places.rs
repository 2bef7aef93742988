//! Packets that a window lost, each at one place: the stages add these up.
//!
//! A place is there where this host counts its losses, and 0 is a count. The reasons of the kernel are read by BPF, so places
//! that only they know are missing without it.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::Place;
use rxpath_record::watch::{LossRow, PathStage};

use super::counters::Rates;
use super::{Window, reasoned};
use crate::live::{PLACES, UDP_ERRORS, UDP_NAMED};

/// Packets per second by place.
pub(super) type Losses = BTreeMap<Place, f64>;

/// Of TCP's counters those of which none counts another's drops once more. `ListenOverflows` is part of `ListenDrops`;
/// `RcvPruned` moves with `TCPRcvQDrop`, `OfoPruned` with `TCPOFODrop` (net/ipv4/tcp_input.c `tcp_prune_queue`,
/// `tcp_data_queue`). Each with what it is about, in a word or two, and its place.
pub(super) const TCP_LOST: [(&str, &str, Place); 6] = [
    ("TcpExt.ListenDrops", "listen queue full", Place::ListenQueue),
    ("TcpExt.TCPBacklogDrop", "TCP socket backlog full", Place::SocketBacklog),
    ("TcpExt.TCPRcvQDrop", "TCP receive queue full", Place::TcpReceiveQueue),
    ("TcpExt.TCPOFODrop", "TCP out-of-order queue full", Place::TcpOutOfOrder),
    ("TcpExt.TCPZeroWindowDrop", "TCP beyond a zero window", Place::TcpReceiveQueue),
    (TCP_ERRORS, "bad TCP segments", Place::TcpOther),
];
const TCP_ERRORS: &str = "Tcp.InErrs";
/// A part of these (net/ipv4/tcp_ipv4.c `tcp_v4_rcv`, `csum_error`).
const TCP_CHECKSUM: &str = "Tcp.InCsumErrors";
/// The counters of one line are not read at one moment: a rest of less than this part is none.
const SKEW: f64 = 1e-3;

/// What was lost at each place that this host counts.
pub(super) fn losses(window: &Window<'_>, evidence: &WindowEvidence) -> Losses {
    let mut losses = counted(&window.rates);
    let links = window.links;
    if links.gap.is_none() {
        losses.insert(Place::Ring, links.ring_pps + reasoned::at_rings(window));
        losses.insert(Place::Network, links.damaged_pps);
    }
    if let Some(dropped) = window.softnet_per_s("dropped").into_value() {
        losses.insert(Place::Backlog, dropped);
    }
    if reasoned::watched(window) {
        add_reasons(&mut losses, reasoned::at_ip(window, evidence));
        add_reasons(&mut losses, reasoned::at_sockets(window));
        take_refused(&mut losses, reasoned::refused_of_udp(window));
    }
    losses
}

/// What the counters of IP, UDP and TCP lost.
fn counted(rates: &Rates<'_>) -> Losses {
    let mut losses = Losses::new();
    let mut add = |place: Place, names: &[&str]| {
        if let Some(pps) = rates.per_s(names).into_value() {
            *losses.entry(place).or_default() += pps;
        }
    };
    for (place, names) in PLACES {
        add(place, names);
    }
    for (name, _, place) in TCP_LOST {
        add(place, &[name]);
    }
    add(Place::UdpOther, &UDP_ERRORS);
    let places = PLACES.iter().filter(|(place, _)| UDP_NAMED.contains(place));
    let names: Vec<&str> = places.flat_map(|(_, names)| names.iter().copied()).collect();
    take(&mut losses, Place::UdpOther, rates.per_s(&names).into_value().unwrap_or(0.0));
    if let Some(damaged) = rates.per_s(&[TCP_CHECKSUM]).into_value() {
        take(&mut losses, Place::TcpOther, damaged);
        *losses.entry(Place::Checksum).or_default() += damaged;
    }
    losses
}

/// A part of what a counter has lies at a place of its own.
fn take(losses: &mut Losses, from: Place, part: f64) {
    if let Some(whole) = losses.get_mut(&from) {
        let rest = *whole - part;
        *whole = if rest < SKEW * *whole { 0.0 } else { rest };
    }
}

/// What only the kernel's reasons tell.
fn add_reasons(losses: &mut Losses, lost: reasoned::Lost) {
    for place in reasoned::PLACES {
        losses.entry(place).or_default();
    }
    for (place, _, pps) in lost {
        *losses.entry(place).or_default() += pps;
    }
}

/// What filters and policies refused of UDP's sockets has a place of its own, and is among its other errors, too.
fn take_refused(losses: &mut Losses, refused: f64) {
    if let Some(others) = losses.get_mut(&Place::UdpOther) {
        // The reasons may be of a sample: nearly all is all.
        let all = refused >= reasoned::SAMPLED * *others;
        *others = if all { 0.0 } else { *others - refused };
    }
}

/// What a stage lost: the sum of its places; a gap where none of them is counted.
pub(super) fn lost_in(losses: &Losses, stage: PathStage) -> Fact<f64> {
    let own = losses.iter().filter(|(place, _)| PathStage::at(**place) == Some(stage));
    let own: Vec<f64> = own.map(|(_, pps)| *pps).collect();
    if own.is_empty() {
        return Fact::absent("this kernel does not count it");
    }
    Fact::ok(own.iter().sum())
}

/// In the order of the path.
pub(super) fn rows(losses: &Losses) -> Vec<LossRow> {
    let row = |place: &Place| Some(LossRow { place: *place, packets_pps: *losses.get(place)? });
    LossRow::PLACES.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use rxpath_core::PathSide;
    use rxpath_record::counters::Snapshot;

    use super::*;

    /// Losses of a second in which these counters moved so far.
    fn after(moved: &[(&str, u64)]) -> Losses {
        let of = |factor: u64| Snapshot {
            values: moved
                .iter()
                .map(|(name, by)| (format!("{}/{name}", PathSide::Machine), by * factor))
                .collect(),
            ..Snapshot::default()
        };
        counted(&Rates { before: &of(1), now: &of(2), window_s: 1.0 })
    }

    /// The kernel counts such a drop in both (net/ipv4/tcp_input.c `tcp_prune_queue` behind `tcp_data_queue`).
    #[test]
    fn a_drop_that_two_counters_have_is_lost_once() {
        let losses = after(&[
            ("TcpExt.TCPRcvQDrop", 5),
            ("TcpExt.RcvPruned", 5),
            ("TcpExt.TCPOFODrop", 5),
            ("TcpExt.OfoPruned", 5),
        ]);
        assert_eq!(lost_in(&losses, PathStage::Socket), Fact::ok(10.0));
    }

    #[test]
    fn each_loss_lies_at_one_place_and_the_sum_is_that_of_the_stage() {
        let losses = after(&[
            ("Udp.InErrors", 10),
            ("Udp.RcvbufErrors", 4),
            ("Udp.InCsumErrors", 1),
            ("Udp.NoPorts", 7),
            ("Tcp.InErrs", 5),
            ("Tcp.InCsumErrors", 2),
            ("IpExt.InNoRoutes", 3),
            ("Ip.ReasmFails", 0),
        ]);
        for (place, right) in [
            (Place::SocketBuffer, Some(4.0)),
            (Place::Checksum, Some(3.0)),
            (Place::UdpOther, Some(5.0)),
            (Place::NoListener, Some(7.0)),
            (Place::TcpOther, Some(3.0)),
            (Place::Routing, Some(3.0)),
            (Place::Fragments, Some(0.0)),
            // Not counted here: not 0.
            (Place::ListenQueue, None),
            (Place::UdpMemory, None),
        ] {
            assert_eq!(losses.get(&place).copied(), right, "{place:?}");
        }
        assert_eq!(lost_in(&losses, PathStage::Socket), Fact::ok(22.0));
        assert_eq!(lost_in(&losses, PathStage::Ip), Fact::ok(3.0));
        assert!(lost_in(&losses, PathStage::Backlog).gap().is_some());
        let sum: f64 = rows(&losses).iter().map(|row| row.packets_pps).sum();
        assert!((sum - 25.0).abs() < 1e-9, "each place has a row: {losses:?}");
    }

    #[test]
    fn what_a_filter_of_a_socket_dropped_is_no_other_error_of_udp() {
        let by_filter = |pps: f64| {
            let mut losses = after(&[("Udp.InErrors", 100)]);
            // Of TCP's sockets 40 a second more.
            let all = vec![(Place::SocketFilter, "SOCKET_FILTER".into(), pps + 40.0)];
            add_reasons(&mut losses, all);
            take_refused(&mut losses, pps);
            assert_eq!(losses.get(&Place::Netfilter), Some(&0.0), "it is watched");
            (losses[&Place::SocketFilter], losses[&Place::UdpOther])
        };
        assert_eq!(by_filter(0.0), (40.0, 100.0));
        assert_eq!(by_filter(30.0), (70.0, 70.0));
        // Of a sample.
        assert_eq!(by_filter(95.0), (135.0, 0.0));
    }
}
