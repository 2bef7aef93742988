//! What was lost between two network cards: the frames that one put on the wire less those that the other took from it.
//!
//! Cards count frames in hardware, behind segmentation and before GRO: a frame is a datagram, unless IP made fragments.
//! They count everybody's. What else their hosts sent and received is known by the counters of the protocols and by the
//! difference of device and IP, so the loss is an interval. Where a card does not count frames, the loss is not known and
//! no remainder stands for it.

use super::cards::{OneWay, sum};
use super::foreign::{
    behind_card, beyond_device, beyond_ip, foreign_by_protocol, foreign_out, narrow,
};
use super::fragments::Fragments;
use super::prelude::*;
use super::{flow, shared};

/// The loss of a trial's datagrams, where the cards tell it.
pub(super) fn network(view: View<'_>, units: &Units) -> Option<Term> {
    let WireFacts::Counted(wire) = &view.input.path.wire else { return None };
    // A frame is a piece of a datagram there.
    if Fragments::read(view).is_some() {
        return None;
    }
    let way = &wire.forward;
    if behind_card(view, way).is_some() {
        return None;
    }
    let (least, most) = way.lost(view.moved)?;
    // What only one of the two cards counted: sent to others, received from others.
    let sent_to_others = foreign_out(view).max(beyond_workload(view, units, way));
    let counted = least;
    // How many of its host's datagrams a foreign program sent is not known: all may have gone elsewhere.
    let least = if view.counts_all_senders() { 0 } else { (least - sent_to_others).max(0) };
    // The receiving card counts those of others that its ring and the backlog lost, too.
    let lost_of_others =
        shared::others_in_ring(view, units) + shared::others_in_backlog(view, units);
    let received = foreign_in(view, units, way).map(|frames| frames + lost_of_others);
    let most = received.map(|frames| (most + frames).max(least));
    let mut term = Term::derived(Place::Network, way.formula(), least, Unit::Each(1), None);
    // Frames of others may hide more, which no counter shows.
    (term.most, term.counted) = (most, counted.max(0));
    term.exact = most == Some(least);
    term.is_narrow = most.is_some_and(|most| most - least <= narrow(view));
    term.bound = match most {
        _ if term.is_narrow => None,
        Some(most) => Some(format!(
            "between {} and {} datagrams were lost between the network cards: they count other traffic too",
            signed(least),
            signed(most)
        )),
        None => Some(format!(
            "at least {} datagrams were lost between the network cards: how many frames of others the receiver's \
             card took is not known",
            signed(least)
        )),
    };
    for counter in way.damaged.iter().filter(|counter| view.get(counter) != 0) {
        term.check(counter, view.get(counter), view.get(counter));
    }
    Some(term)
}

/// What the network's own counters show, and which of them are not known. A switch counts everybody's frames: no check of a term.
pub(super) fn counted_there(moved: &Moved) -> Vec<String> {
    let changed = moved.like(name::OF_NETWORK, "");
    let changed: Vec<String> = changed.map(|(counter, by)| format!("{counter} by {by}")).collect();
    let changed = (!changed.is_empty())
        .then(|| format!("the network's own counters changed: {}", changed.join(", ")));
    let gaps = moved.gaps.iter().filter(|(counter, _)| counter.starts_with(name::OF_NETWORK));
    let unknown = gaps.map(|(counter, why)| match counter.as_str() {
        name::OF_NETWORK => format!("the network's own counters are not known: {why}"),
        counter => format!("{counter} is not known: {why}"),
    });
    changed.into_iter().chain(unknown).collect()
}

/// Enters the ends of the sum that UDP counted for a foreign program on a host that others use: their datagrams are among them.
/// An end that has bounds already keeps its upper one.
pub(super) fn ends_of_all(view: View<'_>, inexact: &mut Vec<Inexact>) {
    let (sender, receiver) = (&view.input.sender, &view.input.receiver);
    let read = if receiver.by_kernel { 0 } else { receiver.delivered_packets };
    let (sent, all_read) = (sender.offered_packets, receiver.delivered_packets);
    let ends = [
        (view.counts_all_senders(), Figure::Offered, "sender", [read.min(sent), sent]),
        (view.counts_all_receivers(), Figure::Delivered, "receiver", [0, all_read]),
    ];
    for (_, figure, program, [least, most]) in ends.into_iter().filter(|(is_of_all, ..)| *is_of_all)
    {
        if let Some(known) = inexact.iter_mut().find(|end| end.figure == figure) {
            known.least_packets = known.least_packets.min(least);
            known.why += "; its host's counters have the datagrams of all programs";
            continue;
        }
        let why = format!(
            "the {program} is a foreign program, and its host's counters have the datagrams of all programs"
        );
        inexact.push(Inexact { figure, least_packets: least, most_packets: Some(most), why });
    }
}

/// Frames that the sending card put on the wire and that are not the workload's: no protocol's counter has those of no IP.
fn beyond_workload(view: View<'_>, units: &Units, way: &OneWay) -> i64 {
    if units.qdisc != Unit::Each(1) || units.device != Unit::Each(1) {
        return 0;
    }
    let Some(ours) = flow::surely_left(view, units) else { return 0 };
    (sum(&way.sent, view.moved) - ours).max(0)
}

/// Frames that the receiver's host received in addition to the workload, at most; `None` where a counter for it was not read.
///
/// Frames of no IP (ARP, LLDP, spanning tree) have no counter: they are among what the device took and IP has not of the
/// workload. IP counts all devices of the host, so that what the protocols had of others is taken off first.
fn foreign_in(view: View<'_>, units: &Units, way: &OneWay) -> Option<i64> {
    let frames = beyond_ip(view, units)?.max(foreign_by_protocol(view));
    Some(frames + beyond_device(view, way).max(0))
}

/// Why nothing is known of the network, where the cards do not show what it lost.
pub(super) fn unknown(view: View<'_>) -> Option<String> {
    let why = match &view.input.path.wire {
        WireFacts::NoCards => return None,
        WireFacts::Unknown(why) => why.clone(),
        WireFacts::Counted(wire) => match wire.forward.fell(view.moved) {
            Some(counter) => format!("{counter} is less than before the trial"),
            None => format!(
                "the receiver's card counted {} frames that its device has not and that no counter of losses has",
                signed(behind_card(view, &wire.forward)?)
            ),
        },
    };
    Some(format!("what the network lost is not known: {why}{}", limited(view.moved)))
}

/// Packets above the limits of a cloud, by the counters of its cards (ena): they waited or were dropped, which nobody tells.
///
/// **Source** Linux 6.12, drivers/net/ethernet/amazon/ena/ena_admin_defs.h `ena_admin_eni_stats`.
fn limited(moved: &Moved) -> String {
    let sides = ["tx/ethtool.", "rx/ethtool."].into_iter();
    let all = sides.flat_map(|side| moved.like(side, "_allowance_exceeded"));
    let all: Vec<String> =
        all.filter(|(_, by)| *by > 0).map(|(counter, by)| format!("{counter} by {by}")).collect();
    if all.is_empty() {
        return String::new();
    }
    format!("; the cloud held packets back or dropped them above its limits: {}", all.join(", "))
}
