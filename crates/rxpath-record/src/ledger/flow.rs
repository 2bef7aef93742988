//! Where a gap lies: what left each stage against what reached the next.
//!
//! For a ledger that does not close, and for the wait until it can. Nothing here is a term.

use super::fragments::Fragments;
use super::prelude::*;

/// Notes on each pair of neighbouring counters that differ.
pub(super) fn gaps(view: View<'_>, units: &Units) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(to_device(view, units));
    notes.extend(over_the_link(view));
    notes.extend(through_udp(view, units));
    notes
}

/// Datagrams that were sent and that neither a counter of the link nor one of a loss has seen: they wait in the
/// queueing discipline, in the ring of a NAPI device or in a CPU's backlog.
///
/// Never below zero; zero also if the counters cannot show it. The counters of a loss need not be stable.
pub fn waiting_packets(input: &LedgerInput, moved: &Moved) -> u64 {
    let view = View { input, moved };
    let units = Units::of(view);
    let before_link = gap_to_device(view, &units).unwrap_or(0);
    let behind = gap_to_ip(view, &units).unwrap_or(0);
    (before_link.max(0) + behind.max(0)).unsigned_abs()
}

/// Datagrams between the link and IP: in a backlog, unless an ingress hook that nothing counts took them.
fn gap_to_ip(view: View<'_>, units: &Units) -> Option<i64> {
    let rules = view.input.path.ingress_rules.as_ref()?;
    let hook: i64 = rules.iter().map(|rule| view.get(rule)).sum();
    let backlog = view.backlog_behind_device();
    let (Unit::Each(device), lost) = (units.device, super::arriving::lost_before_ip(view, units)?)
    else {
        return None;
    };
    match (backlog, units.ip) {
        (0, _) => Some(lost - hook * device),
        (_, Unit::Each(ip)) => Some(lost - hook * device - backlog * ip),
        (_, Unit::Mixed { .. }) => None,
    }
}

/// Datagrams that were sent and that the device has not, less the packets of others that it has.
pub(super) fn gap_to_device(view: View<'_>, units: &Units) -> Option<i64> {
    let (Unit::Each(queue), Unit::Each(device)) = (units.qdisc, units.device) else { return None };
    view.input.path.tx_device.as_ref()?;
    // Each datagram is several packets there.
    if Fragments::read(view).is_some() {
        return None;
    }
    let sender = &view.input.sender;
    let entered = (sender.sent_packets + super::call::full_queue(sender)) as i64;
    let packets =
        view.tx_link("tx.packets") + view.tx_link("tx.dropped") - view.foreign_out(PathSide::Tx);
    let drops = view.qdisc().map_or(0, |(_, drops)| drops) + super::call::egress_packets(view);
    Some(entered - drops * queue - packets * device - sender.queued_packets as i64)
}

fn to_device(view: View<'_>, units: &Units) -> Option<String> {
    let name = view.tx_link_name("tx.packets")?;
    let gap = gap_to_device(view, units)?;
    if gap == 0 {
        return None;
    }
    let ring = if gap > 0 && view.link() == Link::VethNapi {
        "; a NAPI veth counts a packet when its poll takes it, so they may still wait in its ring"
    } else {
        ""
    };
    Some(format!("{gap} datagrams lie between the sender and {name}{ring}"))
}

fn over_the_link(view: View<'_>) -> Option<String> {
    let (tx, rx) = (view.tx_link_name("tx.packets")?, view.rx_link_name("rx.packets")?);
    let gap = view.get(&tx) - view.get(&rx);
    (gap != 0).then(|| format!("{gap} packets lie between {tx} and {rx}"))
}

fn through_udp(view: View<'_>, units: &Units) -> Option<String> {
    let Unit::Each(unit) = units.ip else { return None };
    let name = view.ip_name(PathSide::Rx, "InDelivers");
    let entered = (view.get(&name) - view.foreign_at_ip(PathSide::Rx)
        + view.ip(PathSide::Rx, "InUnknownProtos")
        + view.unheard_multicast(PathSide::Rx)
        - view.udp(PathSide::Rx, "NoPorts"))
        * unit;
    let of_errors = if view.input.receiver.gro { unit } else { 1 };
    let left = view.input.receiver.delivered_packets as i64
        + view.input.receiver.in_flight_packets as i64
        + view.udp(PathSide::Rx, "InErrors") * of_errors
        + view.input.receiver.bypass.map_or(0, |bypass| bypass.socket_drops_packets as i64)
        - view.taken_in_xdp();
    let gap = entered - left;
    (gap != 0).then(|| format!("{gap} datagrams lie between {name} and the reader"))
}
