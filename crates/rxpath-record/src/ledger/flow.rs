//! Where a gap lies: what left each stage against what reached the next.
//!
//! Only for a ledger that does not close. Nothing here is a term.

use rxpath_core::Side;

use super::input::Link;
use super::units::{Unit, Units};
use super::view::View;

/// Notes on each pair of neighbouring counters that differ.
pub(super) fn gaps(view: View<'_>, units: &Units) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(to_device(view, units));
    notes.extend(over_the_link(view));
    notes.extend(through_udp(view, units));
    notes
}

fn to_device(view: View<'_>, units: &Units) -> Option<String> {
    let (Unit::Each(queue), Unit::Each(device)) = (units.qdisc, units.device) else { return None };
    let name = view.tx_link_name("tx.packets")?;
    let sender = &view.input.sender;
    let entered = (sender.sent_packets + super::sending::full_queue(sender)) as i64;
    let packets =
        view.tx_link("tx.packets") + view.tx_link("tx.dropped") - view.foreign_out(Side::Tx);
    let drops = view.qdisc().map_or(0, |(_, drops)| drops) + super::sending::egress_packets(view);
    let gap = entered - drops * queue - packets * device - sender.queued_packets as i64;
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
    let name = view.ip_name(Side::Rx, "InDelivers");
    let entered = (view.get(&name) - view.foreign_at_ip(Side::Rx)
        + view.ip(Side::Rx, "InUnknownProtos")
        - view.udp(Side::Rx, "NoPorts"))
        * unit;
    let of_errors = if view.input.receiver.gro { unit } else { 1 };
    let left = view.input.receiver.delivered_packets as i64
        + view.input.receiver.in_flight_packets as i64
        + view.udp(Side::Rx, "InErrors") * of_errors;
    let gap = entered - left;
    (gap != 0).then(|| format!("{gap} datagrams lie between {name} and the reader"))
}
