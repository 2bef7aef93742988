//! Losses between the receiver's device and UDP: ingress hooks, IP, reverse path, netfilter.
//!
//! None of the hooks has a counter in the kernel's tables. Their loss is the difference between the counter
//! before and the counter behind them, and is marked as derived. Two different counters stand at the border
//! between both differences (the ECN counters end the first, `InReceives` begins the second), so that a wrong
//! one can't cancel itself out.

use super::foreign::{foreign_at_ip, narrow};
use super::fragments::{self, Fragments};
use super::prelude::*;

/// What IP refuses by name. `InReceives` counts first (`ip_rcv_core`, `ip6_rcv_core`).
const REFUSED_V4: [&str; 3] = ["InHdrErrors", "InAddrErrors", "InDiscards"];
const REFUSED_V4_EXT: [&str; 2] = ["InNoRoutes", "InTruncatedPkts"];
const REFUSED_V6: [&str; 6] = [
    "InHdrErrors",
    "InAddrErrors",
    "InDiscards",
    "InNoRoutes",
    "InTruncatedPkts",
    "InTooBigErrors",
];

pub(super) fn terms(view: View<'_>, units: &Units) -> Vec<Term> {
    let mut terms: Vec<Term> = ingress_hook(view, units).into_iter().collect();
    terms.extend(refused(view).into_iter().map(|name| {
        let packets = view.get(&name);
        Term::owned(Place::Ip, name, packets, units.ip)
    }));
    if !view.input.path.v6 {
        terms.push(reverse_path(view, units));
    }
    terms.extend(
        view.reasoned(Place::Routing)
            .map(|it| Term::owned(it.place, it.counter.clone(), it.packets as i64, units.ip)),
    );
    terms.extend(netfilter(view, units));
    terms
}

/// Datagrams that the device received and IP did not see; `None` when the device or its unit is not known.
pub(super) fn lost_before_ip(view: View<'_>, units: &Units) -> Option<i64> {
    view.input.path.rx_device.as_ref()?;
    let Unit::Each(unit) = units.device else { return None };
    let foreign = view.foreign_at_ip(PathSide::Rx);
    let device = view.rx_link("rx.packets")
        - view.taken_in_xdp()
        - foreign
        - view.foreign_family(PathSide::Rx);
    let mut at_ip = view.segments_at_ip() - foreign;
    if let Unit::Each(of_ip) = units.ip {
        // The earliest header errors are found before the ECN field is looked at.
        let headers = view.ip(PathSide::Rx, "InHdrErrors").max(0);
        let packets = view.ip(PathSide::Rx, "InReceives") - foreign;
        at_ip += (packets * of_ip - at_ip).clamp(0, headers * of_ip);
    }
    Some(device * unit - at_ip)
}

/// Datagrams that may have been lost between a network card's device and IP, where no term has them, at most: hooks without a
/// known rule, and generic XDP. Frames of no IP are among them. `None` if the counters cannot show it.
pub(super) fn unseen(view: View<'_>, units: &Units) -> Option<i64> {
    let ends = [view.rx_link_name("rx.packets")?, view.ip_name(PathSide::Rx, "InReceives")];
    if !ends.iter().all(|end| view.knows(end)) {
        return None;
    }
    let lost = lost_before_ip(view, units)? - view.backlog_behind_device();
    Some((lost + over_other_devices(view)).max(0))
}

/// Packets of others that came to IP over other devices of a shared host, at most. IP counts all devices, so as many packets of
/// the measured one may be missing there.
fn over_other_devices(view: View<'_>) -> i64 {
    if !view.is_shared() {
        return 0;
    }
    let others = foreign_at_ip(view) + view.foreign_family(PathSide::Rx);
    let source = format!("{}/{}", PathSide::Rx, name::OTHER_DEVICES);
    // A device that came or went in between is a gap of its own.
    if view.moved.gaps.keys().any(|gap| gap.starts_with(&source)) {
        return others;
    }
    let received: i64 = view.moved.like(&source, ".rx.packets").map(|(_, by)| by.max(0)).sum();
    if received == 0 {
        return 0;
    }
    // A device may count an aggregate once, of which IP counts the segments.
    let merged = view.segments_at_ip() - view.ip(PathSide::Rx, "InReceives");
    others.min(received + merged.max(0))
}

/// What an ingress hook took: only where a rule is there, or where rules are not known.
///
/// Without a rule, more packets at the device than at IP are other protocols' (ARP has no counter), not losses.
/// Unknown rules are derived on a veth only: IP counts all devices of a namespace, and a veth's has no other.
fn ingress_hook(view: View<'_>, units: &Units) -> Option<Term> {
    let device = view.rx_link_name("rx.packets")?;
    let rules = view.input.path.ingress_rules.as_ref();
    let alone = matches!(view.link(), Link::VethPlain | Link::VethNapi);
    let possible = rules.map_or(alone, |rules| !rules.is_empty());
    if !possible || !view.knows(&device) {
        return None;
    }
    let counted = rules.map(|rules| rules.iter().map(|rule| view.get(rule)).sum::<i64>());
    let mut term = ingress_in_datagrams(view, units, counted).unwrap_or_else(|| {
        let receives = view.ip_name(PathSide::Rx, "InReceives");
        let lost = view.get(&device)
            - view.taken_in_xdp()
            - view.foreign_family(PathSide::Rx)
            - view.get(&receives)
            - view.backlog_behind_device();
        let formula = format!("{device} - {receives}");
        Term::derived(Place::IngressHook, formula, lost, units.device, counted)
    });
    if rules.is_none() && view.input.path.has_other_frames {
        may_be_other_frames(view, &mut term);
    }
    for rule in rules.into_iter().flatten() {
        // One rule has to account for the whole loss; of several, only their sum.
        let agrees = rules.is_some_and(|rules| rules.len() > 1) || !term.contradicted();
        let moved = view.get(rule);
        term.check(rule, moved, if agrees { moved } else { term.datagrams });
    }
    Some(term)
}

/// Takes off a loss what may be ARP and other frames of no IP: few, because nobody else uses the link.
fn may_be_other_frames(view: View<'_>, term: &mut Term) {
    let lost = term.credited();
    let others = lost.min(narrow(view));
    if others == 0 || !term.exact {
        return;
    }
    (term.datagrams, term.most, term.exact, term.is_narrow) =
        (lost - others, Some(lost), false, true);
}

/// The loss by the segments that IP counted; `None` where the device's packets have no known size.
fn ingress_in_datagrams(view: View<'_>, units: &Units, counted: Option<i64>) -> Option<Term> {
    let Unit::Each(unit) = units.device else { return None };
    let behind = match (view.backlog_behind_device(), units.ip) {
        (0, _) => 0,
        (backlog, Unit::Each(of_ip)) => backlog * of_ip,
        (_, Unit::Mixed { .. }) => return None,
    };
    let lost = lost_before_ip(view, units)? - behind;
    let device = view.rx_link_name("rx.packets")?;
    let formula = format!("{device} - {} (in datagrams)", view.segments_name());
    let mut term = Term::derived(Place::IngressHook, formula, lost, Unit::Each(1), None);
    term.witness = counted.map(|packets| packets * unit);
    Some(term)
}

fn refused(view: View<'_>) -> Vec<String> {
    if view.input.path.v6 {
        return REFUSED_V6.iter().map(|c| view.ip_name(PathSide::Rx, c)).collect();
    }
    let plain = REFUSED_V4.iter().map(|c| view.ip_name(PathSide::Rx, c));
    plain.chain(REFUSED_V4_EXT.iter().map(|c| name::snmp(PathSide::Rx, "IpExt", c))).collect()
}

fn reverse_path(view: View<'_>, units: &Units) -> Term {
    let name = name::snmp(PathSide::Rx, "TcpExt", "IPReversePathFilter");
    let packets = view.get(&name);
    let mut term = Term::owned(Place::ReversePath, name, packets, units.ip);
    check_reason(view, &mut term, "IP_RPFILTER", packets);
    term
}

/// What came to IP and went nowhere, and how that is known.
fn vanished(view: View<'_>) -> Option<(i64, String)> {
    let ends = ["InReceives", "InDelivers"].map(|c| view.ip_name(PathSide::Rx, c));
    if !ends.iter().all(|end| view.knows(end)) {
        return None;
    }
    let mut formula = ends.join(" - ");
    let mut packets = view.ip(PathSide::Rx, "InReceives") - view.ip(PathSide::Rx, "InDelivers");
    let mut named = refused(view);
    if !view.input.path.v6 {
        named.push(name::snmp(PathSide::Rx, "TcpExt", "IPReversePathFilter"));
    }
    // Not losses: other protocols and forwarded packets leave IP by another door.
    named.extend(
        ["InUnknownProtos", "OutForwDatagrams", "ForwDatagrams"]
            .map(|c| view.ip_name(PathSide::Rx, c)),
    );
    for counter in named {
        packets -= view.get(&counter);
        if view.get(&counter) != 0 {
            formula.push_str(" - ");
            formula.push_str(&counter);
        }
    }
    packets -= view.unheard_multicast(PathSide::Rx);
    let refused: u64 = view.reasoned(Place::Routing).map(|it| it.packets).sum();
    if refused != 0 {
        packets -= refused as i64;
        formula.push_str(" - what routing refused");
    }
    Some((packets, formula))
}

/// Netfilter's losses: one term, or two where fragments are put together between its hooks.
fn netfilter(view: View<'_>, units: &Units) -> Vec<Term> {
    let Some((mut packets, mut formula)) = vanished(view) else { return Vec::new() };
    let fragments = Fragments::read(view);
    if fragments.is_some_and(|fragments| fragments.joined_unseen(view)) {
        return Vec::new();
    }
    if let Some(all) = Fragments::of_all(view) {
        packets -= all.came - all.made;
        formula.push_str(" - (fragments that became part of a datagram)");
    }
    let foreign = view.foreign_delivered(PathSide::Rx);
    match fragments::behind_reassembly(view, packets, foreign) {
        None => {
            let mut term = filtered(view, formula, (packets, packets), units.ip);
            term.of_pieces = fragments.is_some();
            vec![term]
        }
        Some([before, 0]) => {
            let mut term = filtered(view, formula, (before, before), Unit::Each(1));
            term.of_pieces = true;
            vec![term]
        }
        Some([before, behind]) => {
            let datagrams =
                ["ReasmOKs", "InDelivers"].map(|c| view.ip_name(PathSide::Rx, c)).join(" - ");
            let mut terms = vec![filtered(view, datagrams, (behind, packets), Unit::Each(1))];
            if before != 0 {
                let mut term = filtered(view, formula, (before, packets), Unit::Each(1));
                term.of_pieces = true;
                terms.push(term);
            }
            terms
        }
    }
}

/// A loss of netfilter next to the counters of its rules, which have to say `all` together.
fn filtered(view: View<'_>, formula: String, (packets, all): (i64, i64), unit: Unit) -> Term {
    let rules = view.input.path.input_rules.as_ref();
    let counted: Option<i64> = rules.map(|rules| rules.iter().map(|rule| view.get(rule)).sum());
    // Rules do not say which of two terms they counted in.
    let witness = counted.map(|counted| if counted == all { packets } else { counted });
    let mut term = Term::derived(Place::Netfilter, formula, packets, unit, witness);
    for rule in rules.into_iter().flatten() {
        let sum = counted.unwrap_or(0);
        let expected = if sum == all { view.get(rule) } else { all };
        term.check(rule, view.get(rule), expected);
    }
    check_reason(view, &mut term, "NETFILTER_DROP", all);
    term
}

/// Shows the count of a drop reason, when a probe made one.
pub(super) fn check_reason(view: View<'_>, term: &mut Term, reason: &str, expected: i64) {
    let name = name::drop_reason(reason);
    if view.get(&name) != 0 {
        term.check(&name, view.get(&name), expected);
    }
}
