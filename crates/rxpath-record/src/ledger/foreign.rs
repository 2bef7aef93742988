//! What the hosts sent and received in addition to the workload, as far as counters show it.
//!
//! Cards, devices, IP and UDP count the packets of all programs. What is of others is known by the counters of the protocols and
//! by the difference of device and IP.

use super::call;
use super::cards::{OneWay, sum};
use super::prelude::*;

/// Where an interval is narrower than this, or than [`NARROW_RATIO`] of what was offered, it is a number.
const NARROW_FRAMES: i64 = 10;
const NARROW_RATIO: f64 = 1e-4;

/// So much that an interval of this width is as good as a number.
pub(super) fn narrow(view: View<'_>) -> i64 {
    narrow_packets(view.input.sender.offered_packets)
}

pub(super) fn narrow_packets(offered_packets: u64) -> i64 {
    NARROW_FRAMES.max((offered_packets as f64 * NARROW_RATIO) as i64)
}

/// Datagrams that other programs on the sender's host handed over, at most. One that dies below the call is counted in
/// `SndbufErrors` and not in `OutDatagrams`. A call that finds the send buffer full (`EAGAIN`) is counted there too, and no
/// datagram died (`net/ipv4/udp.c`, `udp_sendmsg`).
pub(super) fn foreign_datagrams_out(view: View<'_>) -> i64 {
    let of = |group: &str, counter: &str| view.get(&name::snmp(PathSide::Tx, group, counter));
    let sender = &view.input.sender;
    let handed = (sender.sent_packets + call::full_queue(sender)) as i64;
    let ours = if sender.raw { 0 } else { handed / i64::from(sender.segments_per_send.max(1)) };
    let sum = |counter: &str| of("Udp", counter) + of("Udp6", counter);
    let died = sum("SndbufErrors").min(call::below_call(view).unwrap_or(i64::MAX));
    (sum("OutDatagrams") + died - ours).max(0)
}

/// Packets that the sender's host sent in addition to the workload, at most, by the counters of the protocols.
pub(super) fn foreign_out(view: View<'_>) -> i64 {
    view.beyond_udp_out() + foreign_datagrams_out(view)
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
    let into_sender = view.foreign_at_ip(PathSide::Tx) + view.foreign_family(PathSide::Tx);
    named_at_ip(view) + view.foreign_family(PathSide::Rx) + into_sender + foreign_out(view)
}

/// Packets that the protocols of the receiver's host counted in addition to the workload, at most.
pub(super) fn foreign_by_protocol(view: View<'_>) -> i64 {
    foreign_at_ip(view) + view.foreign_family(PathSide::Rx)
}

/// Packets that the receiver's device has and IP has not of the workload, at most; `None` where a counter for it was not
/// read.
pub(super) fn beyond_ip(view: View<'_>, units: &Units) -> Option<i64> {
    let (device, at_ip) =
        (view.rx_link_name("rx.packets")?, view.ip_name(PathSide::Rx, "InReceives"));
    if !view.knows(&device) || !view.knows(&at_ip) {
        return None;
    }
    let others = foreign_at_ip(view);
    let backlog = view.backlog_behind_device();
    let workload = match units.ip {
        Unit::Each(n) => (view.get(&at_ip) - others + backlog) * n,
        Unit::Mixed { .. } if view.counts_all_receivers() => 0,
        // As many as were read or refused: how many an aggregate holds is not known.
        Unit::Mixed { .. } => {
            let refused = view.udp(PathSide::Rx, "InErrors") + view.udp(PathSide::Rx, "NoPorts");
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
    let read = view.udp(PathSide::Rx, "InDatagrams");
    // The workload is unicast. For IPv6, multicasts that nobody wants are among the foreign ones already.
    let to_groups = ["InMcastPkts", "InBcastPkts"].map(|c| name::snmp(PathSide::Rx, "IpExt", c));
    let to_groups = if view.input.path.v6 { 0 } else { sum(&to_groups, view.moved) };
    view.foreign_at_ip(PathSide::Rx)
        + view.ip(PathSide::Rx, "ForwDatagrams")
        + view.ip(PathSide::Rx, "OutForwDatagrams")
        + to_groups
        + (read - view.input.receiver.delivered_packets as i64).max(0)
}

/// Frames that the card took from the wire and the device did not: those of other VLANs, and those that the card's filter
/// rejects after it has counted them.
pub(super) fn beyond_device(view: View<'_>, way: &OneWay) -> i64 {
    let path = &view.input.path;
    // Drivers differ in whether the device counts what an XDP program takes.
    if view.input.receiver.bypass.is_some() {
        return 0;
    }
    let device = path.rx_device.as_deref().unwrap_or_default();
    // If the card does not count what its ring lost, the upper bound of the loss has that already.
    let ring = view.moved.ring(PathSide::Rx, device, &path.ring).1;
    sum(&way.received, view.moved) - ring - view.rx_link("rx.packets")
}

/// Frames between the card and its own device, if they are so many that they may be a loss that nothing counts.
pub(super) fn behind_card(view: View<'_>, way: &OneWay) -> Option<i64> {
    let own = format!(".{}.", view.input.path.rx_device.as_deref()?);
    let is_own = way.received.iter().all(|counter| counter.contains(&own));
    Some(beyond_device(view, way)).filter(|frames| is_own && *frames > narrow(view))
}
