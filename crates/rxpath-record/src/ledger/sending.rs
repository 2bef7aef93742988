//! Losses on the sender's side of the link: the call, egress hooks, the queueing discipline, ring and backlog.
//!
//! A packet that dies in a queueing discipline, in an egress hook, in a veth's ring or, without NAPI, in the
//! receiver's backlog, makes the sender's call return `ENOBUFS` inside the kernel. UDP turns that into
//! success and counts `SndbufErrors` (`net/ipv4/udp.c`, `udp_send_skb`; with `IP_RECVERR` the caller sees the
//! error). So `SndbufErrors` owns nothing: it is the cross-check of all four.

use super::arriving::{check_reason, lost_before_ip};
use super::call::{FULL_QUEUE, REFUSED, beyond_udp, egress_bounds};
use super::foreign::{foreign_datagrams_out, foreign_out, narrow};
use super::prelude::*;
use super::shared;
use super::view::of_32_bits;

pub(super) fn terms(view: View<'_>, units: &Units) -> Vec<Term> {
    let mut terms = vec![send_call(view, units)];
    terms.extend(egress_hook(view, units));
    terms.push(qdisc(view, units));
    terms.extend(sending_device(view, units));
    terms.push(ring(view, units));
    terms.push(backlog(view, units));
    terms
}

fn send_call(view: View<'_>, units: &Units) -> Term {
    let sender = &view.input.sender;
    let refused = sender.send_errors.iter().filter(|(errno, _)| *errno != FULL_QUEUE);
    let refused: Vec<_> = refused.filter(|(_, datagrams)| **datagrams > 0).collect();
    let sum: u64 = refused.iter().map(|(_, datagrams)| **datagrams).sum();
    let errnos: Vec<&str> = refused.iter().map(|(errno, _)| errno.as_str()).collect();
    let counter = format!("send call: {}", errnos.join(", "));
    let mut term = Term::owned(Place::SendCall, counter, sum as i64, Unit::Each(1));
    // Only then: OutDiscards also moves with full queues and with ECONNREFUSED.
    let alone = errnos == [REFUSED] && view.udp(PathSide::Tx, "SndbufErrors") == 0 && !sender.raw;
    if let (true, Unit::Each(unit)) = (alone, units.qdisc) {
        let name = view.ip_name(PathSide::Tx, "OutDiscards");
        // Each attempt is counted. Behind the first packet of a batch sendmmsg(2) gives no error (net/socket.c
        // `__sys_sendmmsg`): the packet is sent again and may pass.
        let attempts = view.get(&name);
        term.check(&name, attempts, attempts.max(sum as i64 / unit));
    }
    term
}

fn egress_hook(view: View<'_>, units: &Units) -> Option<Term> {
    if let Some(filters) = &view.input.path.tx_filters {
        return Some(hooks_of_host(view, units, filters));
    }
    let rules = view.input.path.egress_rules.as_ref().filter(|rules| !rules.is_empty())?;
    let counted: i64 = rules.iter().map(|rule| view.get(rule)).sum();
    let formula = format!(
        "{} - qdisc drops - {}",
        view.udp_name(PathSide::Tx, "SndbufErrors"),
        view.tx_link_name("tx.dropped").unwrap_or_else(|| "tx.dropped".into())
    );
    // Without filters of a host both bounds are one.
    let [_, packets] = egress_bounds(view);
    let mut term = Term::derived(Place::EgressHook, formula, packets, units.qdisc, Some(counted));
    for rule in rules {
        term.check(rule, view.get(rule), packets);
    }
    Some(term)
}

/// Filters of tc, programs of tcx and netfilter's egress hook are one place: the call sees no difference between them.
fn hooks_of_host(view: View<'_>, units: &Units, filters: &str) -> Term {
    let [least, most] = egress_bounds(view);
    if view.input.sender.raw {
        return Term::derived(Place::EgressHook, filters.into(), least, units.qdisc, None);
    }
    let device = view.tx_link_name("tx.dropped").filter(|_| view.link() != Link::Nic);
    let formula = format!(
        "the lesser of {} and {} - qdisc drops{}",
        view.udp_name(PathSide::Tx, "SndbufErrors"),
        view.ip_name(PathSide::Tx, "OutDiscards"),
        device.map_or_else(String::new, |name| format!(" - {name}"))
    );
    let mut term = Term::derived(Place::EgressHook, formula, least, units.qdisc, None);
    if most > least {
        (term.most, term.exact) = (units.qdisc.most(most), false);
        term.is_narrow = most - least <= narrow(view);
        term.bound = (!term.is_narrow).then(|| {
            format!(
                "{}: between {} and {} packets, because the driver, a rule in OUTPUT or the queue may have \
                 dropped some of them",
                term.counter,
                signed(least),
                signed(most)
            )
        });
    }
    // It counts both directions, and nothing of tcx and netfilter.
    let filtered = of_32_bits(view.get(filters));
    if least > 0 && filtered >= least {
        term.check(filters, filtered, filtered);
    }
    term
}

fn qdisc(view: View<'_>, units: &Units) -> Term {
    let (root, drops) = view.qdisc().unwrap_or(("tx/qdisc", 0));
    let mut term = Term::owned(Place::Qdisc, root.into(), drops, units.qdisc);
    for (other, moved) in view.qdiscs().filter(|(name, _)| *name != root) {
        term.check(other, moved, drops);
    }
    // A discipline that took aggregates apart drops segments while the call as a whole succeeds.
    let whole = units.qdisc == units.device
        && units.qdisc == Unit::Each(i64::from(view.input.sender.segments_per_send.max(1)));
    if drops > 0 && whole {
        check_sender(view, &mut term);
    }
    // A host's queue takes the packets of all its programs. UDP counts the drops of those that it handed over. What else was
    // dropped may be of others, or of ours that the queue had taken before.
    let [hooks, _] = egress_bounds(view);
    // Between hosts, what hooks dropped is what UDP counted beyond the queue's drops.
    let is_counted_twice = hooks > 0 && view.input.path.tx_filters.is_some();
    let all_udp = !is_counted_twice && view.udp(PathSide::Tx, "SndbufErrors") == drops + hooks;
    let others = if view.counts_all_senders() {
        term.credited()
    } else if all_udp {
        foreign_datagrams_out(view) * shared::each(units.qdisc)
    } else {
        foreign_out(view) * shared::each(units.qdisc)
    };
    shared::may_be_of_others(view, &mut term, others);
    term
}

/// What a network card's driver dropped. Of a veth it is the receiver's ring or backlog.
fn sending_device(view: View<'_>, units: &Units) -> Option<Term> {
    let name = view.tx_link_name("tx.dropped").filter(|_| view.link() == Link::Nic)?;
    let dropped = view.get(&name);
    Some(Term::owned(Place::SendingDevice, name, dropped, units.device))
}

/// The ring of a NAPI device, or what a plain veth refused in addition to a full backlog.
///
/// **Source** `drivers/net/veth.c`, `veth_xmit`: a failed `veth_forward_skb` counts `dropped` on the sender's
/// device, be it `ptr_ring` being full (NAPI) or `__dev_forward_skb` and the backlog refusing (no NAPI).
fn ring(view: View<'_>, units: &Units) -> Term {
    let name = view.tx_link_name("tx.dropped").unwrap_or_else(|| "tx/link.tx.dropped".into());
    let dropped = view.tx_link("tx.dropped");
    let mut term = match view.link() {
        Link::VethNapi => Term::owned(Place::Ring, name, dropped, units.device),
        Link::VethPlain | Link::Veth => {
            // No NAPI, no ring: the difference has to be nothing.
            let (backlog, refused) = view.backlog();
            let rest = dropped - refused;
            Term::derived(Place::Ring, format!("{name} - {backlog}"), rest, units.device, Some(0))
        }
        Link::Loopback => Term::derived(Place::Ring, name, dropped, units.device, Some(0)),
        Link::Nic => {
            let device = view.input.path.rx_device.as_deref().unwrap_or_default();
            let (name, missed) = view.moved.ring(PathSide::Rx, device, &view.input.path.ring);
            // The card counts frames.
            Term::owned(Place::Ring, name, missed, Unit::Each(1))
        }
    };
    if term.datagrams > 0 && view.link() == Link::VethNapi {
        check_sender(view, &mut term);
    }
    term
}

/// The RPS backlog.
///
/// With NAPI, GRO comes first, so what is dropped here may be merged datagrams. When their size is not known
/// and no ingress hook lies between, the segments that IP counted tell how many datagrams were lost.
fn backlog(view: View<'_>, units: &Units) -> Term {
    let (name, packets) = view.backlog();
    let behind_gro = matches!(view.link(), Link::VethNapi | Link::Nic);
    let unit = if behind_gro { units.ip } else { units.device };
    let between = lost_before_ip(view, units);
    let mut term = match (unit, between) {
        (Unit::Mixed { .. }, Some(lost)) if packets > 0 && no_ingress_rules(view) => {
            let formula = format!(
                "{} - {} (in datagrams)",
                view.rx_link_name("rx.packets").unwrap_or_default(),
                view.segments_name()
            );
            let mut term = Term::derived(Place::Backlog, formula, lost, Unit::Each(1), None);
            term.check(&name, packets, packets);
            term
        }
        _ => Term::owned(Place::Backlog, name, packets, unit),
    };
    if packets > 0 {
        let softnet = view.moved.like("machine/softnet.", ".dropped").map(|(_, by)| by).sum();
        term.check("machine/softnet.*.dropped", softnet, packets);
        check_reason(view, &mut term, "CPU_BACKLOG", packets);
        if !behind_gro && view.link() != Link::Loopback {
            if let Some(device) = view.tx_link_name("tx.dropped") {
                term.check(&device, view.get(&device), packets);
            }
            check_sender(view, &mut term);
        }
    }
    term
}

pub(super) fn no_ingress_rules(view: View<'_>) -> bool {
    view.input.path.ingress_rules.as_ref().is_some_and(Vec::is_empty)
}

/// `SndbufErrors` is the sum of all that died under the call, whichever place it was.
fn check_sender(view: View<'_>, term: &mut Term) {
    if view.input.sender.raw {
        return;
    }
    let name = view.udp_name(PathSide::Tx, "SndbufErrors");
    let queue = view.qdisc().map_or(0, |(_, drops)| drops);
    let [hook_least, hook_most] = egress_bounds(view);
    let dropped = view.tx_link("tx.dropped");
    let moved = view.get(&name);
    // Drivers of cards differ in whether the call sees what they drop.
    let least = if view.link() == Link::Nic { 0 } else { dropped };
    // UDP does not count what the queue dropped of other protocols.
    let surely = (queue - beyond_udp(view)).max(0) + hook_least + least.min(dropped);
    let most = queue + hook_most + dropped.max(least);
    term.check(&name, moved, moved.clamp(surely.min(most), most));
}
