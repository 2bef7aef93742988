//! Losses of a frame that only the kernel's reasons tell: filters in front of IP, netfilter, routing, filters of sockets.
//!
//! Only drops of this network namespace, whose rates the stages have. The tracepoint is sampled where drops are many: its
//! rates are those of its newest sample.

use std::collections::BTreeMap;

use rxpath_core::Side;
use rxpath_core::number::si;
use rxpath_host::identity::network_namespace;
use rxpath_record::evidence::{AnyProtocol, Evidence};
use rxpath_record::ledger::{DropReason, Place};

use super::Window;
use crate::live::reasoned::{NETFILTER_DROP, losses, place};
use crate::live::{RECEIVED, UDP_REASONS};

/// The counters and the reasons are not of the same moments: below this share more or less is none.
pub(super) const SAMPLED: f64 = 0.8;

/// Place, reason and packets per second.
pub(super) type Lost = Vec<(Place, String, f64)>;
/// The places that have no counter at all here: the kernel's reasons tell what they lost.
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

/// This namespace's drops by what the kernel said of them.
fn rows(window: &Window<'_>) -> Vec<(DropReason, f64)> {
    let Ok(seen) = window.seen else { return Vec::new() };
    let Ok(own) = network_namespace() else { return Vec::new() };
    let here = seen.drops.iter().filter(|(drop, _)| u64::from(drop.netns) == own);
    let of = |(drop, _): &(rxpath_bpf::drops::Drop, u64)| {
        let pps = drop.packets as f64 / seen.drops_counted_s.max(1e-3);
        let row = DropReason {
            side: Side::Machine.to_string(),
            reason: drop.reason.clone(),
            place: drop.place.clone(),
            device: drop.dev.clone().unwrap_or_default(),
            port: drop.port,
            packets: (pps * window.window_s).round() as u64,
        };
        (row, pps)
    };
    here.map(of).collect()
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
    if in_front { Some(Place::Netfilter) } else { place(row) }
}

/// Where a socket's datagram or segment was refused and no counter of the stage moved.
fn place_at_sockets(row: &DropReason) -> Option<Place> {
    UDP_REASONS.iter().find(|(reason, _)| *reason == row.reason).map(|(_, place)| *place)
}

/// What was lost between the device and the protocols behind IP. What XDP dropped is where a driver counts it, if it does.
pub(super) fn at_ip(window: &Window<'_>, evidence: &Evidence) -> Lost {
    let counted = |row: &DropReason| {
        row.reason == "XDP"
            && evidence.any_protocol.iter().any(|loss| loss.drop.counter.contains("XDP"))
    };
    at(|row| if counted(row) { None } else { place_at_ip(row) }, window)
}

/// What was lost at sockets.
pub(super) fn at_sockets(window: &Window<'_>) -> Lost {
    at(place_at_sockets, window)
}

/// In words, the most first.
pub(super) fn note(lost: &Lost) -> String {
    let mut lost: Vec<_> = lost.iter().collect();
    lost.sort_by(|a, b| b.2.total_cmp(&a.2));
    let words: Vec<String> =
        lost.iter().map(|(_, reason, pps)| format!("{reason} {}/s", si(*pps))).collect();
    words.join(", ")
}

/// The same for the verdict, in addition to its counters.
pub(super) fn claims(window: &Window<'_>, evidence: &Evidence) -> Vec<AnyProtocol> {
    let rows: Vec<DropReason> = rows(window).into_iter().map(|(row, _)| row).collect();
    let by_filters = |loss: &&AnyProtocol| loss.drop.place == Place::Netfilter;
    let filtered: u64 =
        evidence.any_protocol.iter().filter(by_filters).map(|loss| loss.drop.packets).sum();
    let reasoned: u64 =
        rows.iter().filter(|row| row.reason == NETFILTER_DROP).map(|row| row.packets).sum();
    // As good as all of it has a counter behind IP: the rest is the sample's.
    let all = filtered as f64 >= SAMPLED * reasoned as f64;
    let received = window.rates.per_s(&RECEIVED).into_value().unwrap_or(0.0);
    let received = (received * window.window_s).round() as u64;
    losses(&rows, received, if all { u64::MAX } else { filtered }, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_one_place_and_what_a_counter_has_none() {
        let row = |reason: &str, device: &str| DropReason {
            side: Side::Machine.to_string(),
            reason: reason.into(),
            place: String::new(),
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
