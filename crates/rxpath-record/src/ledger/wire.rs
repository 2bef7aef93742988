//! What was lost between two network cards: the frames that one put on the wire less those that the other took from it.
//!
//! Cards count frames in hardware, behind segmentation and before GRO: a frame is a datagram, unless IP made fragments.
//! They count everybody's. What else their hosts sent and received is known by the counters of the protocols, so the loss
//! is an interval. Where a card does not count frames, the loss is not known and no remainder stands for it.

use rxpath_core::Side;

use super::Place;
use super::fragments::Fragments;
use super::term::Term;
use super::units::Unit;
use super::view::View;
use crate::counters::{Moved, name};

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

/// The loss of a trial's datagrams, where the cards tell it.
pub(super) fn network(view: View<'_>) -> Option<Term> {
    let WireFacts::Counted(wire) = &view.input.path.wire else { return None };
    // A frame is a piece of a datagram there.
    if Fragments::read(view).is_some() {
        return None;
    }
    let way = &wire.forward;
    let (least, most) = way.lost(view.moved)?;
    // What only one of the two cards counted: sent to others, received from others.
    let least = (least - foreign_out(view)).max(0);
    let most = (most + foreign_in(view)).max(0);
    let mut term = Term::derived(Place::Network, way.formula(), least, Unit::Each(1), None);
    term.most = Some(most);
    term.exact = least == most;
    let offered = view.input.sender.offered_packets as f64;
    let narrow = NARROW_FRAMES.max((offered * NARROW_RATIO) as i64);
    term.bound = (most - least > narrow).then(|| {
        format!(
            "between {least} and {most} datagrams were lost between the network cards: they count other traffic too"
        )
    });
    term.is_narrow = most - least <= narrow;
    for counter in way.damaged.iter().filter(|counter| view.get(counter) != 0) {
        term.check(counter, view.get(counter), view.get(counter));
    }
    Some(term)
}

/// Frames that the sender's host sent in addition to the workload, at most.
fn foreign_out(view: View<'_>) -> i64 {
    let of = |group: &str, counter: &str| view.get(&name::snmp(Side::Tx, group, counter));
    let sender = &view.input.sender;
    let sends = sender.sent_packets as i64 / i64::from(sender.segments_per_send.max(1));
    let ours = if sender.raw { 0 } else { sends };
    let datagrams = of("Udp", "OutDatagrams") + of("Udp6", "OutDatagrams");
    view.foreign_out(Side::Tx)
        + of("Tcp", "RetransSegs")
        + (datagrams - ours).max(0)
        + of("Ip", "ForwDatagrams")
        + of("Ip6", "OutForwDatagrams")
}

/// Frames that the receiver's host received in addition to the workload, at most.
fn foreign_in(view: View<'_>) -> i64 {
    let read = view.udp(Side::Rx, "InDatagrams");
    view.foreign_at_ip(Side::Rx)
        + view.foreign_family(Side::Rx)
        + (read - view.input.receiver.delivered_packets as i64).max(0)
}

/// Why nothing is known of the network, where cards do not count its frames.
pub(super) fn unknown(wire: &WireFacts) -> Option<String> {
    let WireFacts::Unknown(why) = wire else { return None };
    Some(format!("what the network lost is not known: {why}"))
}
