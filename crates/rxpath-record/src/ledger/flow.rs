//! Where a gap lies: what left each stage against what reached the next.
//!
//! For a ledger that does not close, and for the wait until it can. Nothing here is a term.

use super::call::{egress_bounds, full_queue};
use super::foreign::foreign_out;
use super::fragments::Fragments;
use super::prelude::*;

/// Notes on each pair of neighbouring counters that differ.
pub(super) fn gaps(view: View<'_>, units: &Units) -> Vec<String> {
    let notes = [to_device(view, units), over_the_link(view), through_udp(view, units)];
    notes.into_iter().flatten().collect()
}

/// Datagrams that were sent and that neither a counter of the link nor one of a loss has seen: they wait in the
/// queueing discipline, in the ring of a NAPI device or in a CPU's backlog.
///
/// Never below zero; zero also if the counters cannot show it. The counters of a loss need not be stable. Where a loss has
/// bounds, it is the least that waits: more need not wait at all, and a trial would wait for them without end.
pub fn waiting_packets(input: &LedgerInput, moved: &Moved) -> u64 {
    let view = View { input, moved };
    let units = Units::of(view);
    let before_link = gap_to_device(view, &units).map_or(0, |[least, _]| least);
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

/// Datagrams of the workload that surely left the sender's host.
pub(super) fn surely_left(view: View<'_>, units: &Units) -> Option<i64> {
    let [_, hooks] = egress_bounds(view);
    left(view, units, hooks)
}

/// Datagrams that left the sender's host, if egress hooks dropped so many packets, and if all that its queue and its driver
/// dropped are of the workload.
fn left(view: View<'_>, units: &Units, hooks: i64) -> Option<i64> {
    let (Unit::Each(queue), Unit::Each(device)) = (units.qdisc, units.device) else { return None };
    view.input.path.tx_device.as_ref()?;
    // Each datagram is several packets there.
    if Fragments::read(view).is_some() {
        return None;
    }
    let sender = &view.input.sender;
    let entered = (sender.sent_packets + full_queue(sender)) as i64;
    let drops = view.qdisc().map_or(0, |(_, drops)| drops) + hooks;
    let dropped = view.tx_link("tx.dropped");
    Some(entered - drops * queue - dropped * device - sender.queued_packets as i64)
}

/// Datagrams that were sent and that the device has not, at least and at most. Packets of others that the device has are left
/// out: of a host with other traffic it is not known how many used this device.
fn gap_to_device(view: View<'_>, units: &Units) -> Option<[i64; 2]> {
    let (Unit::Each(queue), Unit::Each(device)) = (units.qdisc, units.device) else { return None };
    let [hooks_least, hooks_most] = egress_bounds(view);
    let passed = view.tx_link("tx.packets") * device;
    let others = if view.is_shared() {
        // Others may be among the drops, too.
        [0, foreign_out(view) * queue]
    } else {
        [view.foreign_out(PathSide::Tx) * device; 2]
    };
    let least = left(view, units, hooks_most)? - passed + others[0];
    let most = left(view, units, hooks_least)? - passed + others[1];
    Some([least, most])
}

fn to_device(view: View<'_>, units: &Units) -> Option<String> {
    let name = view.tx_link_name("tx.packets")?;
    let [least, most] = gap_to_device(view, units)?;
    let gap = match most {
        0 => return None,
        most if least == most => format!("{} datagrams lie", signed(least)),
        most if least > 0 || most < 0 => {
            format!("{} to {} datagrams lie", signed(least), signed(most))
        }
        most => format!("up to {} datagrams may lie", signed(most)),
    };
    let ring = if most > 0 && view.link() == Link::VethNapi {
        "; a NAPI veth counts a packet when its poll takes it, so they may still wait in its ring"
    } else {
        ""
    };
    Some(format!("{gap} between the sender and {name}{ring}"))
}

/// What is said of a difference of counters that have the packets of all programs.
fn with_others(view: View<'_>) -> &'static str {
    if view.is_shared() { "; packets of other programs are among them" } else { "" }
}

fn over_the_link(view: View<'_>) -> Option<String> {
    let (tx, rx) = (view.tx_link_name("tx.packets")?, view.rx_link_name("rx.packets")?);
    let gap = view.get(&tx) - view.get(&rx);
    let lie = || format!("{} packets lie between {tx} and {rx}{}", signed(gap), with_others(view));
    (gap != 0).then(lie)
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
    let others = with_others(view);
    (gap != 0)
        .then(|| format!("{} datagrams lie between {name} and the reader{others}", signed(gap)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{PathFacts, SenderSaid};

    const PASSED: &str = "tx/link.eth0.tx.packets";

    /// 1,010 datagrams of a sender whose hooks are not known.
    fn of_host(is_shared: bool) -> LedgerInput {
        let path = PathFacts {
            tx_device: Some("eth0".into()),
            tx_qdisc: Some("tx/qdisc.eth0.root.drops".into()),
            tx_filters: Some("tx/tc.eth0.clsact.drops".into()),
            rx_device: Some("eth1".into()),
            link: Link::Nic,
            is_shared,
            ..PathFacts::default()
        };
        let (offered_packets, sent_packets) = (1_010, 1_010);
        let sender = SenderSaid { offered_packets, sent_packets, ..SenderSaid::default() };
        LedgerInput { sender, path, ..LedgerInput::default() }
    }

    /// The counters, with as many packets at the receiver's device as left the sender's, less `lost`.
    fn counters(values: &[(&str, i64)], lost: i64) -> Moved {
        let mut values: std::collections::BTreeMap<String, i64> =
            values.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
        let passed = values.get(PASSED).copied().unwrap_or(0);
        values.insert("rx/link.eth1.rx.packets".into(), passed - lost);
        Moved { values, ..Moved::default() }
    }

    fn notes(input: &LedgerInput, moved: &Moved) -> Vec<String> {
        let view = View { input, moved };
        gaps(view, &Units::of(view))
    }

    #[test]
    fn what_may_have_died_at_a_hook_or_in_the_driver_makes_the_gap_an_interval() {
        let input = of_host(false);
        let died = [
            ("tx/Udp.SndbufErrors", 10),
            ("tx/Ip.OutDiscards", 10),
            ("tx/link.eth0.tx.dropped", 3),
        ];
        let passed = |packets: i64| counters(&[&died[..], &[(PASSED, packets)]].concat(), 0);
        // Seven at a hook and three in the driver, or ten and three.
        let note = "4 to 7 datagrams lie between the sender and tx/link.eth0.tx.packets";
        assert_eq!(notes(&input, &passed(993)), [note]);
        assert_eq!(waiting_packets(&input, &passed(993)), 4);
        let note = "up to 2 datagrams may lie between the sender and tx/link.eth0.tx.packets";
        assert_eq!(notes(&input, &passed(998)), [note]);
        assert_eq!(waiting_packets(&input, &passed(998)), 0, "nothing surely waits");
        assert_eq!(notes(&input, &passed(1_000)), Vec::<String>::new());
        // More than were sent.
        let note = "-5 to -2 datagrams lie between the sender and tx/link.eth0.tx.packets";
        assert_eq!(notes(&input, &passed(1_002)), [note]);
    }

    #[test]
    fn packets_of_others_that_may_have_used_the_device_make_the_gap_an_interval() {
        let input = of_host(true);
        let passed = |packets| counters(&[("tx/Tcp.OutSegs", 20), (PASSED, packets)], 0);
        let note = "10 to 30 datagrams lie between the sender and tx/link.eth0.tx.packets";
        assert_eq!(notes(&input, &passed(1_000)), [note]);
        let note = "up to 10 datagrams may lie between the sender and tx/link.eth0.tx.packets";
        assert_eq!(notes(&input, &passed(1_020)), [note]);
        assert_eq!(notes(&input, &passed(1_030)), Vec::<String>::new());
    }

    #[test]
    fn a_difference_of_counters_of_all_programs_says_so() {
        let moved = counters(&[(PASSED, 1_010)], 6);
        let note = "6 packets lie between tx/link.eth0.tx.packets and rx/link.eth1.rx.packets";
        assert_eq!(notes(&of_host(false), &moved), [note]);
        let others = format!("{note}; packets of other programs are among them");
        assert_eq!(notes(&of_host(true), &moved), [others]);
    }
}
