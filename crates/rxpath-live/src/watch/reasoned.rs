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
use crate::live::RECEIVED;
use crate::live::reasoned::{NETFILTER_DROP, losses, reason_only};

/// Reasons for which a socket's datagrams and segments are refused and no counter of the stage moves.
const AT_SOCKETS: [&str; 2] = ["SOCKET_FILTER", "XFRM_POLICY"];
/// The counters and the reasons are not of the same moments: below this share more or less is none.
const SAMPLED: f64 = 0.8;

/// Reason and packets per second.
pub(super) type Lost = Vec<(String, f64)>;

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

fn by_reason(rows: impl Iterator<Item = (DropReason, f64)>) -> Lost {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (row, pps) in rows {
        *sums.entry(row.reason).or_default() += pps;
    }
    sums.into_iter().filter(|(_, pps)| *pps > 0.0).collect()
}

/// What was lost between the device and the protocols behind IP. What XDP dropped is where a driver counts it, if it does.
pub(super) fn at_ip(window: &Window<'_>, evidence: &Evidence) -> Lost {
    let counted = |row: &DropReason| {
        row.reason == "XDP"
            && evidence.any_protocol.iter().any(|loss| loss.drop.counter.contains("XDP"))
    };
    by_reason(rows(window).into_iter().filter(|(row, _)| {
        !counted(row)
            && (reason_only(row) || (row.reason == NETFILTER_DROP && !row.device.is_empty()))
    }))
}

/// What was lost at sockets.
pub(super) fn at_sockets(window: &Window<'_>) -> Lost {
    by_reason(rows(window).into_iter().filter(|(row, _)| AT_SOCKETS.contains(&row.reason.as_str())))
}

/// In words, the most first.
pub(super) fn note(lost: &Lost) -> String {
    let mut lost: Vec<_> = lost.iter().collect();
    lost.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> =
        lost.iter().map(|(reason, pps)| format!("{reason} {}/s", si(*pps))).collect();
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
