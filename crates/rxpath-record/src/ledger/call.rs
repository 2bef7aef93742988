//! What died under the sender's call.

use rxpath_core::Side;

use super::input::{Link, SenderSaid};
use super::view::{View, of_32_bits};

/// Errors of a full queue: the packet died further down, where a counter owns it.
pub(super) const FULL_QUEUE: &str = "ENOBUFS";

/// Datagrams whose call failed because a queue below was full.
pub(super) fn full_queue(sender: &SenderSaid) -> u64 {
    sender.send_errors.get(FULL_QUEUE).copied().unwrap_or(0)
}

/// Packets that died under the sender's call and that no queue counts: what is left to an egress hook.
///
/// Only when the trial has such a rule. Without one, `SndbufErrors` above its parts is a contradiction, and a
/// term made of it would hide a wrong queue counter. Filters of tc have a counter.
pub(super) fn egress_packets(view: View<'_>) -> i64 {
    if let Some(counter) = &view.input.path.tx_filters {
        return filtered(view, counter);
    }
    let has_rules = view.input.path.egress_rules.as_ref().is_some_and(|rules| !rules.is_empty());
    if !has_rules || view.input.sender.raw {
        return 0;
    }
    let queue = view.qdisc().map_or(0, |(_, drops)| drops);
    (view.udp(Side::Tx, "SndbufErrors") - queue - view.tx_link("tx.dropped")).max(0)
}

/// Packets that died under the sender's call, at most; `None` if a counter for it was not read.
pub(super) fn below_call(view: View<'_>) -> Option<i64> {
    let dropped = view.tx_link_name("tx.dropped")?;
    let (root, queue) = view.qdisc()?;
    let is_known = view.knows(root) && view.knows(&dropped);
    is_known.then(|| queue + view.get(&dropped) + egress_packets(view))
}

/// What filters of tc dropped at the egress of the sender's device. `clsact` counts what they dropped at its ingress too, and
/// `SndbufErrors` also calls that waited for a full send buffer (net/ipv4/udp.c `udp_sendmsg`): no more than the lesser.
fn filtered(view: View<'_>, counter: &str) -> i64 {
    let dropped = of_32_bits(view.get(counter)).max(0);
    if view.input.sender.raw {
        return dropped;
    }
    let queue = view.qdisc().map_or(0, |(_, drops)| drops);
    // Of a card its driver's drops are not under the call.
    let device = if view.link() == Link::Nic { 0 } else { view.tx_link("tx.dropped") };
    dropped.min((view.udp(Side::Tx, "SndbufErrors") - queue - device).max(0))
}
