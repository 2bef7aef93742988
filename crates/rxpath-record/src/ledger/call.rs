//! What died under the sender's call.

use rxpath_core::PathSide;

use super::input::{Link, SenderSaid};
use super::view::{View, of_32_bits};
use crate::counters::name;

/// Errors of a full queue: the packet died further down, where a counter owns it.
pub(super) const FULL_QUEUE: &str = "ENOBUFS";

/// The error of a datagram that netfilter's OUTPUT dropped (net/netfilter/core.c `nf_hook_slow`).
pub(super) const REFUSED: &str = "EPERM";

/// Datagrams whose call failed because a queue below was full.
pub(super) fn full_queue(sender: &SenderSaid) -> u64 {
    sender.send_errors.get(FULL_QUEUE).copied().unwrap_or(0)
}

/// Packets that died under the sender's call and that no queue counts, at least and at most: what is left to an egress hook.
///
/// In a lab only when the trial has such a rule. Without one, `SndbufErrors` above its parts is a contradiction, and a
/// term made of it would hide a wrong queue counter. Between hosts nobody knows all hooks, and UDP and IP both count
/// what died under the call.
pub(super) fn egress_bounds(view: View<'_>) -> [i64; 2] {
    if let Some(filters) = &view.input.path.tx_filters {
        return at_host(view, filters);
    }
    let has_rules = view.input.path.egress_rules.as_ref().is_some_and(|rules| !rules.is_empty());
    if !has_rules || view.input.sender.raw {
        return [0; 2];
    }
    let queue = view.qdisc().map_or(0, |(_, drops)| drops);
    let died = view.udp(PathSide::Tx, "SndbufErrors") - queue - view.tx_link("tx.dropped");
    [died.max(0); 2]
}

/// Packets that died under the sender's call, at most; `None` if a counter for it was not read.
pub(super) fn below_call(view: View<'_>) -> Option<i64> {
    let dropped = view.tx_link_name("tx.dropped")?;
    let (root, queue) = view.qdisc()?;
    let is_known = view.knows(root) && view.knows(&dropped);
    is_known.then(|| queue + view.get(&dropped) + egress_bounds(view)[1])
}

/// What hooks at the egress of a host dropped: filters of tc, programs of tcx, netfilter. Each lets the call end with
/// `NET_XMIT_DROP` (net/core/dev.c `sch_handle_egress`, include/linux/netfilter_netdev.h `nf_hook_egress`), which is an
/// error for UDP (`SndbufErrors`, net/ipv4/udp.c `udp_send_skb`) and for IP (`OutDiscards`, net/ipv4/ip_output.c
/// `ip_send_skb`). UDP also counts calls that waited for a full send buffer, and IP those that netfilter's OUTPUT
/// refused: no more than the lesser. Only filters of tc have a counter of their own, which alone shows those of a packet
/// socket.
fn at_host(view: View<'_>, filters: &str) -> [i64; 2] {
    let sender = &view.input.sender;
    if sender.raw {
        return [of_32_bits(view.get(filters)).max(0); 2];
    }
    let (root, queue) = view.qdisc().unwrap_or_default();
    let (udp, ip) = (view.udp(PathSide::Tx, "SndbufErrors"), view.ip(PathSide::Tx, "OutDiscards"));
    let refused = sender.send_errors.get(REFUSED).copied().unwrap_or(0) as i64;
    let refused = refused / i64::from(sender.segments_per_send.max(1));
    // Drivers of cards differ in whether the call sees what they drop.
    let device = view.tx_link("tx.dropped");
    let surely_of_device = if view.link() == Link::Nic { 0 } else { device };
    // All of it may be the queue's, where its drops were not read.
    let least = if view.knows(root) { udp.min(ip - refused) - queue - device } else { 0 };
    let most = udp.min(ip) - (queue - beyond_udp(view)).max(0) - surely_of_device;
    [least.max(0), most.max(0)]
}

/// Packets in the queue of a host that others use, too, which the counters of this family's UDP leave out, at most.
pub(super) fn beyond_udp(view: View<'_>) -> i64 {
    if !view.is_shared() {
        return 0;
    }
    let other = if view.input.path.v6 { "Udp" } else { "Udp6" };
    view.beyond_udp_out() + view.get(&name::snmp(PathSide::Tx, other, "SndbufErrors"))
}
