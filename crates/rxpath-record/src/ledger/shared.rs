//! What of a host's losses is the workload's, where the host has other traffic.
//!
//! The counters of cards, queues, IP and UDP count the packets of all programs. A loss there is an interval: less what may be
//! of others at least, all of it at most. What others sent and received is known by the counters of the protocols. The
//! workload's sockets count for themselves.
//!
//! A packet that the ring or the backlog lost is in no protocol's counter. Others are taken to have lost no more there than
//! they received, or where the loss is a multiple of what passed, the same multiple of that.

use super::foreign::{foreign_datagrams_out, foreign_out, foreign_received, narrow};
use super::prelude::*;
use super::udp;

/// Makes intervals of the losses in counters that other traffic may have moved.
pub(super) fn bound(view: View<'_>, units: &Units, terms: &mut [Term]) {
    if !view.is_shared() {
        return;
    }
    let received = foreign_received(view, units);
    for term in terms {
        let lost = term.credited();
        let others = match term.place {
            Place::EgressHook | Place::SendingDevice if view.counts_all_senders() => lost,
            Place::EgressHook if view.input.sender.raw => foreign_out(view) * each(units.qdisc),
            // UDP counts these losses, and nothing of other protocols.
            Place::EgressHook => foreign_datagrams_out(view) * each(units.qdisc),
            Place::SendingDevice => foreign_out(view) * each(units.device),
            Place::Ring => others_in_ring(view, units),
            Place::Backlog => {
                received * each(units.ip) * times(lost, view.ip(PathSide::Rx, "InReceives"))
            }
            // Whose packets these are has no trace elsewhere.
            Place::Ip
            | Place::ReversePath
            | Place::Routing
            | Place::Fragments
            | Place::Netfilter
            | Place::NoListener
                if received > 0 =>
            {
                lost
            }
            Place::Checksum if received > 0 => lost - udp::damaged_at_sockets(view),
            // Only the drops of the workload's own sockets tell.
            Place::SocketBuffer | Place::UdpMemory | Place::UdpOther
                if received > 0 && view.input.receiver.socket_drops.is_none() =>
            {
                lost
            }
            _ => 0,
        };
        may_be_of_others(view, term, others);
    }
}

/// Frames of others that the receiver's ring lost, at most.
pub(super) fn others_in_ring(view: View<'_>, units: &Units) -> i64 {
    let device = view.input.path.rx_device.as_deref().unwrap_or_default();
    let (_, lost) = view.moved.ring(PathSide::Rx, device, &view.input.path.ring);
    others_among(view, units, lost, view.rx_link("rx.packets"))
}

/// Packets of others that the receiver's backlog dropped, at most.
pub(super) fn others_in_backlog(view: View<'_>, units: &Units) -> i64 {
    let (_, lost) = view.backlog();
    others_among(view, units, lost, view.ip(PathSide::Rx, "InReceives"))
}

fn others_among(view: View<'_>, units: &Units, lost: i64, passed: i64) -> i64 {
    if !view.is_shared() {
        return 0;
    }
    let others = foreign_received(view, units) * times(lost, passed);
    others.clamp(0, lost.max(0))
}

/// Takes what may be of others off the least of a loss.
pub(super) fn may_be_of_others(view: View<'_>, term: &mut Term, others: i64) {
    if view.link() == Link::Nic {
        take_off(term, others, narrow(view));
    }
}

/// The same. Up to `few` make no difference to a number.
pub(super) fn take_off(term: &mut Term, others: i64, few: i64) {
    let lost = term.credited();
    let others = others.clamp(0, lost);
    if others == 0 {
        return;
    }
    term.datagrams = lost - others;
    if !term.exact {
        // It has bounds already, and its own note on them.
        return;
    }
    (term.exact, term.most) = (false, Some(lost));
    term.is_narrow = others <= few;
    term.bound = (!term.is_narrow).then(|| {
        format!(
            "{}: of the packets dropped ({}), {} may be of other programs",
            term.counter,
            signed(lost),
            signed(others)
        )
    });
}

/// Datagrams of one packet, at least.
pub(super) fn each(unit: Unit) -> i64 {
    match unit {
        Unit::Each(n) => n,
        Unit::Mixed { .. } => 1,
    }
}

/// How many times what passed was lost, at least once.
pub(super) fn times(lost: i64, passed: i64) -> i64 {
    (lost / passed.max(1)).saturating_add(1).min(1 << 20)
}
