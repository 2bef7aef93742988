//! What was lost between two network cards: the frames that one put on the wire less those that the other took from it.
//!
//! Cards count frames in hardware, behind segmentation and before GRO: a frame is a datagram, unless IP made fragments.
//! They count everybody's. What else their hosts sent and received is known by the counters of the protocols and by the
//! difference of device and IP, so the loss is an interval. Where a card does not count frames, the loss is not known and
//! no remainder stands for it.

use super::fragments::Fragments;
use super::prelude::*;
use super::{arriving, flow, sending, shared};

/// Which counters (names in `Moved`) count the frames between two network cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WireFacts {
    /// There are no two cards: a veth pair, loopback.
    #[default]
    NoCards,
    /// They do not say, for this reason.
    Unknown(String),
    /// These.
    Counted(Box<WireCounters>),
}

/// Counters of frames at both ends of a wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// From the sender to the receiver.
    pub forward: OneWay,
    /// The way back.
    pub backward: OneWay,
}

/// Counters of one direction; those of a list are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneWay {
    /// Frames that the sending card put on the wire.
    pub sent: Vec<String>,
    /// Frames that the receiving card took from it.
    pub received: Vec<String>,
    /// Frames of which it is not known whether `received` counts them: lost in the card, behind the wire.
    pub perhaps_received: Vec<String>,
    /// Frames that arrived damaged.
    pub damaged: Vec<String>,
}

/// Where an interval is narrower than this, or than [`NARROW_RATIO`] of what was offered, it is a number.
const NARROW_FRAMES: i64 = 10;
const NARROW_RATIO: f64 = 1e-4;

impl OneWay {
    /// Frames that were sent and not received: the least and the most; `None` if a counter was not read.
    pub(super) fn lost(&self, moved: &Moved) -> Option<(i64, i64)> {
        let all = [&self.sent, &self.received, &self.perhaps_received];
        if all.into_iter().flatten().any(|name| moved.gap(name).is_some()) {
            return None;
        }
        let [sent, received, perhaps] = all.map(|names| sum(names, moved));
        Some((sent - received - perhaps, sent - received))
    }

    pub(super) fn formula(&self) -> String {
        let minus = self.received.iter().chain(&self.perhaps_received);
        let minus: Vec<&str> = minus.map(String::as_str).collect();
        let sent = self.sent.join(" + ");
        let sent = if self.sent.len() > 1 { format!("({sent})") } else { sent };
        format!("{sent} - {}", minus.join(" - "))
    }

    pub(super) fn counters(&self) -> impl Iterator<Item = &String> {
        [&self.sent, &self.received, &self.perhaps_received].into_iter().flatten()
    }
}

fn sum(names: &[String], moved: &Moved) -> i64 {
    names.iter().map(|name| moved.get(name)).sum()
}

/// So much that an interval of this width is as good as a number.
pub(super) fn narrow(view: View<'_>) -> i64 {
    narrow_packets(view.input.sender.offered_packets)
}

pub(super) fn narrow_packets(offered_packets: u64) -> i64 {
    NARROW_FRAMES.max((offered_packets as f64 * NARROW_RATIO) as i64)
}

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
    // How many of its host's datagrams a foreign program sent is not known: all may have gone elsewhere.
    let least = if view.counts_all_senders() { 0 } else { (least - sent_to_others).max(0) };
    // The receiving card counts those of others that its ring and the backlog lost, too.
    let lost_of_others =
        shared::others_in_ring(view, units) + shared::others_in_backlog(view, units);
    let received = foreign_in(view, units, way).map(|frames| frames + lost_of_others);
    let most = received.map(|frames| (most + frames).max(least));
    let mut term = Term::derived(Place::Network, way.formula(), least, Unit::Each(1), None);
    term.most = most;
    term.exact = most == Some(least);
    term.is_narrow = most.is_some_and(|most| most - least <= narrow(view));
    term.bound = match most {
        _ if term.is_narrow => None,
        Some(most) => Some(format!(
            "between {least} and {most} datagrams were lost between the network cards: they count other traffic too"
        )),
        None => Some(format!(
            "at least {least} datagrams were lost between the network cards: how many frames of others the receiver's \
             card took is not known"
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

/// The ends of the sum that UDP counted for a foreign program on a host that others use: their datagrams are among them.
pub(super) fn ends_of_all(view: View<'_>) -> Vec<Inexact> {
    let (sender, receiver) = (&view.input.sender, &view.input.receiver);
    let read = if receiver.by_kernel { 0 } else { receiver.delivered_packets };
    let offered = Inexact {
        figure: Figure::Offered,
        least_packets: read.min(sender.offered_packets),
        most_packets: Some(sender.offered_packets),
        why: "the sender is a foreign program, and its host's counters have the datagrams of all programs"
            .into(),
    };
    let delivered = Inexact {
        figure: Figure::Delivered,
        least_packets: 0,
        most_packets: Some(receiver.delivered_packets),
        why: "the receiver is a foreign program, and its host's counters have the datagrams of all programs"
            .into(),
    };
    let ends = [(view.counts_all_senders(), offered), (view.counts_all_receivers(), delivered)];
    ends.into_iter().filter_map(|(is_of_all, end)| is_of_all.then_some(end)).collect()
}

/// Datagrams that other programs on the sender's host handed over, at most. One that dies below the call is counted in
/// `SndbufErrors` and not in `OutDatagrams`. A call that finds the send buffer full (`EAGAIN`) is counted there too, and no
/// datagram died (`net/ipv4/udp.c`, `udp_sendmsg`).
pub(super) fn foreign_datagrams_out(view: View<'_>) -> i64 {
    let of = |group: &str, counter: &str| view.get(&name::snmp(Side::Tx, group, counter));
    let sender = &view.input.sender;
    let handed = (sender.sent_packets + sending::full_queue(sender)) as i64;
    let ours = if sender.raw { 0 } else { handed / i64::from(sender.segments_per_send.max(1)) };
    let sum = |counter: &str| of("Udp", counter) + of("Udp6", counter);
    let died = sum("SndbufErrors").min(sending::below_call(view).unwrap_or(i64::MAX));
    (sum("OutDatagrams") + died - ours).max(0)
}

/// Packets that the sender's host sent in addition to the workload, at most, by the counters of the protocols.
pub(super) fn foreign_out(view: View<'_>) -> i64 {
    let of = |group: &str, counter: &str| view.get(&name::snmp(Side::Tx, group, counter));
    view.foreign_out(Side::Tx)
        + of("Tcp", "RetransSegs")
        + foreign_datagrams_out(view)
        + of("Ip", "ForwDatagrams")
        + of("Ip6", "OutForwDatagrams")
}

/// Frames that the sending card put on the wire and that are not the workload's: no protocol's counter has those of no IP.
fn beyond_workload(view: View<'_>, units: &Units, way: &OneWay) -> i64 {
    if units.qdisc != Unit::Each(1) || units.device != Unit::Each(1) {
        return 0;
    }
    let Some(missing) = flow::gap_to_device(view, units) else { return 0 };
    let ours = view.tx_link("tx.packets") - view.foreign_out(Side::Tx) + missing;
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

/// Packets that the receiver's card passed on in addition to the workload, at most, as far as counters show them.
pub(super) fn foreign_received(view: View<'_>, units: &Units) -> i64 {
    let beyond = match &view.input.path.wire {
        WireFacts::Counted(wire) if behind_card(view, &wire.forward).is_none() => {
            beyond_device(view, &wire.forward).max(0)
        }
        _ => 0,
    };
    beyond_ip(view, units).unwrap_or(0).max(foreign_by_protocol(view)) + beyond
}

/// Packets at both ends that are not the workload's, as far as counters of the protocols show them.
pub(super) fn foreign_at_both_ends(view: View<'_>) -> i64 {
    let into_sender = view.foreign_at_ip(Side::Tx) + view.foreign_family(Side::Tx);
    named_at_ip(view) + view.foreign_family(Side::Rx) + into_sender + foreign_out(view)
}

/// Packets that the protocols of the receiver's host counted in addition to the workload, at most.
fn foreign_by_protocol(view: View<'_>) -> i64 {
    foreign_at_ip(view) + view.foreign_family(Side::Rx)
}

/// Packets that the receiver's device has and IP has not of the workload, at most; `None` where a counter for it was not
/// read.
fn beyond_ip(view: View<'_>, units: &Units) -> Option<i64> {
    let (device, at_ip) = (view.rx_link_name("rx.packets")?, view.ip_name(Side::Rx, "InReceives"));
    if !view.knows(&device) || !view.knows(&at_ip) {
        return None;
    }
    let others = foreign_at_ip(view);
    let backlog = arriving::backlog_behind_device(view);
    let workload = match units.ip {
        Unit::Each(n) => (view.get(&at_ip) - others + backlog) * n,
        Unit::Mixed { .. } if view.counts_all_receivers() => 0,
        // As many as were read or refused: how many an aggregate holds is not known.
        Unit::Mixed { .. } => {
            let refused = view.udp(Side::Rx, "InErrors") + view.udp(Side::Rx, "NoPorts");
            view.input.receiver.delivered_packets as i64 + refused + backlog
        }
    };
    Some(view.get(&device) - view.taken_in_xdp() - workload)
}

/// Packets of others that entered IP of the workload's family, at most: on a host that others use all that were neither read
/// nor lost at the workload's sockets. What a foreign receiver read may be of others, too.
pub(super) fn foreign_at_ip(view: View<'_>) -> i64 {
    let receiver = &view.input.receiver;
    let is_of_all = view.counts_all_receivers();
    if !view.is_shared() || (receiver.socket_drops.is_none() && !is_of_all) {
        return named_at_ip(view);
    }
    let read = receiver.delivered_packets as i64 - view.taken_in_xdp();
    let read = if is_of_all { 0 } else { read.max(0) };
    let dropped = receiver.socket_drops.iter().flatten().sum::<u64>() as i64;
    let ours = read + dropped + receiver.in_flight_packets as i64;
    named_at_ip(view).max(view.segments_at_ip() - ours)
}

/// Those of them that a counter names.
fn named_at_ip(view: View<'_>) -> i64 {
    let read = view.udp(Side::Rx, "InDatagrams");
    // The workload is unicast. For IPv6, multicasts that nobody wants are among the foreign ones already.
    let to_groups = ["InMcastPkts", "InBcastPkts"].map(|c| name::snmp(Side::Rx, "IpExt", c));
    let to_groups = if view.input.path.v6 { 0 } else { sum(&to_groups, view.moved) };
    view.foreign_at_ip(Side::Rx)
        + view.ip(Side::Rx, "ForwDatagrams")
        + view.ip(Side::Rx, "OutForwDatagrams")
        + to_groups
        + (read - view.input.receiver.delivered_packets as i64).max(0)
}

/// Frames that the card took from the wire and the device did not: those of other VLANs, and those that the card's filter
/// rejects after it has counted them.
fn beyond_device(view: View<'_>, way: &OneWay) -> i64 {
    let path = &view.input.path;
    // Drivers differ in whether the device counts what an XDP program takes.
    if view.input.receiver.bypass.is_some() {
        return 0;
    }
    let device = path.rx_device.as_deref().unwrap_or_default();
    // If the card does not count what its ring lost, the upper bound of the loss has that already.
    let ring = view.moved.ring(Side::Rx, device, &path.ring).1;
    sum(&way.received, view.moved) - ring - view.rx_link("rx.packets")
}

/// Frames between the card and its own device, if they are so many that they may be a loss that nothing counts.
fn behind_card(view: View<'_>, way: &OneWay) -> Option<i64> {
    let own = format!(".{}.", view.input.path.rx_device.as_deref()?);
    let is_own = way.received.iter().all(|counter| counter.contains(&own));
    Some(beyond_device(view, way)).filter(|frames| is_own && *frames > narrow(view))
}

/// Why nothing is known of the network, where the cards do not show what it lost.
pub(super) fn unknown(view: View<'_>) -> Option<String> {
    let why = match &view.input.path.wire {
        WireFacts::NoCards => return None,
        WireFacts::Unknown(why) => why.clone(),
        WireFacts::Counted(wire) => format!(
            "the receiver's card counted {} frames that its device has not and that no counter of losses has",
            behind_card(view, &wire.forward)?
        ),
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
