//! Losses of a frame that only the kernel's reasons tell: filters in front of IP, netfilter, routing, filters of sockets.
//!
//! Only drops of this network namespace, whose rates the stages have. The tracepoint is sampled where drops are many: its
//! rates are those of its newest sample.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_bpf::drops::SkbDrop;
use rxpath_core::number::si;
use rxpath_core::{PathSide, SortFew};
use rxpath_host::read::identity::network_namespace;
use rxpath_record::evidence::{AnyProtocol, WindowEvidence};
use rxpath_record::ledger::{DropReason, Place};

use super::{Seen, Window};
use crate::live::reasoned::{self, CameIn, NETFILTER_DROP, losses, place};
use crate::live::{RECEIVED, UDP_REASONS, XDP_DROPS};

/// The counters and the reasons are not of the same moments: below this share more or less is none.
pub(super) const SAMPLED: f64 = 0.8;

/// Place, reason and packets per second.
pub(super) type Lost = Vec<(Place, String, f64)>;
/// The places that have no counter at all here: their losses are those of the kernel's reasons.
pub(super) const PLACES: [Place; 5] = [
    Place::IngressHook,
    Place::Netfilter,
    Place::ReasonOnly,
    Place::IpsecPolicy,
    Place::SocketFilter,
];

/// Whether the kernel's reasons are known.
pub(super) fn watched(window: &Window<'_>) -> bool {
    window.seen.is_ok_and(|seen| !seen.gaps.contains_key("drops by reason"))
}

/// Devices of this namespace with drops of which nothing is known; `None` where the kernel's reasons are not watched.
pub(super) fn nameless(seen: &Seen) -> Option<BTreeSet<String>> {
    if seen.gaps.contains_key("drops by reason") {
        return None;
    }
    let rows = of_this_namespace(seen).filter(|drop| drop.packets > 0).map(|drop| {
        let device = drop.dev.as_deref().unwrap_or_default();
        [drop.reason.as_str(), drop.place.as_str(), device]
    });
    Some(reasoned::nameless(rows))
}

/// The drops of this namespace.
fn of_this_namespace(seen: &Seen) -> impl Iterator<Item = &SkbDrop> {
    let own = network_namespace().ok();
    let drops = seen.drops.iter().map(|(drop, _)| drop);
    drops.filter(move |drop| own == Some(u64::from(drop.netns)))
}

/// The same, and how many a second.
fn here<'a>(window: &'a Window<'_>) -> Vec<(&'a SkbDrop, f64)> {
    let Ok(seen) = window.seen else { return Vec::new() };
    let here = of_this_namespace(seen);
    here.map(|drop| (drop, drop.packets as f64 / seen.drops_counted_s.max(1e-3))).collect()
}

/// The same by what the kernel said of them.
fn rows(window: &Window<'_>) -> Vec<(DropReason, f64)> {
    let of = |(drop, pps): (&SkbDrop, f64)| {
        let row = DropReason {
            side: PathSide::Machine.to_string(),
            reason: drop.reason.clone(),
            place: drop.place.clone(),
            device: drop.dev.clone().unwrap_or_default(),
            port: drop.port,
            packets: (pps * window.window_s).round() as u64,
        };
        (row, pps)
    };
    here(window).into_iter().map(of).collect()
}

/// Rows of those that have a place, with the sum of each.
fn at(place: impl Fn(&DropReason) -> Option<Place>, window: &Window<'_>) -> Lost {
    let mut sums: BTreeMap<(Place, String), f64> = BTreeMap::new();
    for (row, pps) in rows(window) {
        if let Some(place) = place(&row) {
            *sums.entry((place, row.reason)).or_default() += pps;
        }
    }
    let sums = sums.into_iter().filter(|(_, pps)| *pps > 0.0);
    sums.map(|((place, reason), pps)| (place, reason, pps)).collect()
}

/// Where a filter in front of IP, routing or anything without a counter dropped it.
fn place_at_ip(row: &DropReason) -> Option<Place> {
    let in_front = row.reason == NETFILTER_DROP && !row.device.is_empty();
    if in_front { Some(Place::Netfilter) } else { place(row).filter(|at| *at != Place::Ring) }
}

/// Where a socket's datagram or segment was refused, which no counter of this name has.
fn place_at_sockets(row: &DropReason) -> Option<Place> {
    UDP_REASONS.iter().find(|(reason, _)| *reason == row.reason).map(|(_, place)| *place)
}

/// What the rings of veths were too full for: the other end counts it.
pub(super) fn at_rings(window: &Window<'_>) -> f64 {
    let lost = at(|row| place(row).filter(|at| *at == Place::Ring), window);
    lost.into_iter().map(|(_, _, pps)| pps).sum()
}

/// What was lost between the device and the protocols behind IP. What XDP dropped is where a driver counts it, if it does.
pub(super) fn at_ip(window: &Window<'_>, evidence: &WindowEvidence) -> Lost {
    let is_counted = |row: &DropReason| is_counted_by_driver(row, &evidence.any_protocol);
    at(|row| if is_counted(row) { None } else { place_at_ip(row) }, window)
}

/// Whether the counters of a driver have it. What [`claims`] says of the same reason has another name.
fn is_counted_by_driver(row: &DropReason, counted: &[AnyProtocol]) -> bool {
    row.reason == "XDP" && counted.iter().any(|loss| loss.drop.counter.ends_with(XDP_DROPS))
}

/// What was refused of UDP's sockets, which UDP counts among its errors too.
pub(super) fn refused_of_udp(window: &Window<'_>) -> f64 {
    let is_refused = |drop: &SkbDrop| {
        drop.transport.as_deref() == Some("udp")
            && UDP_REASONS.iter().any(|(reason, _)| *reason == drop.reason)
    };
    here(window).into_iter().filter(|(drop, _)| is_refused(drop)).map(|(_, pps)| pps).sum()
}

/// What was lost at sockets.
pub(super) fn at_sockets(window: &Window<'_>) -> Lost {
    at(place_at_sockets, window)
}

/// In words, the most first.
pub(super) fn note(lost: &Lost) -> String {
    let mut lost: Vec<_> = lost.iter().collect();
    lost.sort_few_by(|a, b| b.2.total_cmp(&a.2));
    let words: Vec<String> =
        lost.iter().map(|(_, reason, pps)| format!("{reason} {}/s", si(*pps))).collect();
    words.join(", ")
}

/// The same for the verdict, in addition to its counters.
pub(super) fn claims(window: &Window<'_>, evidence: &WindowEvidence) -> Vec<AnyProtocol> {
    let rows: Vec<DropReason> = rows(window).into_iter().map(|(row, _)| row).collect();
    let by_filters = |loss: &&AnyProtocol| loss.drop.place == Place::Netfilter;
    let filtered: u64 =
        evidence.any_protocol.iter().filter(by_filters).map(|loss| loss.drop.packets).sum();
    let reasoned: u64 =
        rows.iter().filter(|row| row.reason == NETFILTER_DROP).map(|row| row.packets).sum();
    // As good as all of it has a counter behind IP: the rest is the sample's.
    let all = filtered as f64 >= SAMPLED * reasoned as f64;
    let received = window.rates.per_s(&RECEIVED).into_value().unwrap_or(0.0);
    let packets = |pps: f64| (pps * window.window_s).round() as u64;
    let came_in = CameIn { devices: packets(window.links.received_pps), ip: packets(received) };
    losses(&rows, came_in, if all { u64::MAX } else { filtered }, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_counter_of_the_driver_has_what_xdp_dropped() {
        let row = DropReason {
            side: PathSide::Machine.to_string(),
            reason: "XDP".into(),
            place: "do_xdp_generic".into(),
            device: "eth0".into(),
            port: 0,
            packets: 9,
        };
        let claimed = losses(std::slice::from_ref(&row), CameIn { devices: 100, ip: 100 }, 0, &[]);
        assert!(!claimed.is_empty() && !is_counted_by_driver(&row, &claimed), "{claimed:?}");
        let counter = format!("ethtool -S eth0, {XDP_DROPS}");
        let drop = rxpath_record::ledger::Drop::counted(Place::IngressHook, counter, 9);
        assert!(is_counted_by_driver(&row, &[AnyProtocol { drop, of_packets: 109 }]));
    }

    #[test]
    fn each_reason_has_one_place_and_what_a_counter_has_none() {
        let row = |reason: &str, device: &str| DropReason {
            side: PathSide::Machine.to_string(),
            reason: reason.into(),
            place: "veth_xmit+0x1".into(),
            device: device.into(),
            port: 0,
            packets: 1,
        };
        for (reason, device, at_ip, at_sockets) in [
            ("XDP", "eth0", Some(Place::IngressHook), None),
            (NETFILTER_DROP, "eth0", Some(Place::Netfilter), None),
            // This host's own packets.
            (NETFILTER_DROP, "", None, None),
            ("IP_INVALID_SOURCE", "eth0", Some(Place::Routing), None),
            ("SOCKET_FILTER", "eth0", None, Some(Place::SocketFilter)),
            ("XFRM_POLICY", "eth0", None, Some(Place::IpsecPolicy)),
            ("SOCKET_RCVBUFF", "eth0", None, None),
            ("UNHANDLED_PROTO", "eth0", None, None),
            // At its ring.
            ("NOT_SPECIFIED", "eth0", None, None),
        ] {
            let row = row(reason, device);
            assert_eq!(
                (place_at_ip(&row), place_at_sockets(&row)),
                (at_ip, at_sockets),
                "{reason}"
            );
        }
    }
}
