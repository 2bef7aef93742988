//! Which counters count the frames between two network cards.

use crate::counters::Moved;

/// What counts the frames between two network cards; counters are names in `Moved`.
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

impl OneWay {
    /// Frames that were sent and not received: the least and the most; `None` if a counter was not read, or began again.
    pub(super) fn lost(&self, moved: &Moved) -> Option<(i64, i64)> {
        let all = [&self.sent, &self.received, &self.perhaps_received];
        let is_gap = |name: &String| moved.gap(name).is_some();
        if all.into_iter().flatten().any(is_gap) || self.fell(moved).is_some() {
            return None;
        }
        let [sent, received, perhaps] = all.map(|names| sum(names, moved));
        Some((sent - received - perhaps, sent - received))
    }

    /// One of these counters that is less than before. A driver may begin those of its card again at a reset, and go on with those
    /// of the kernel.
    ///
    /// **Source** Linux 6.12, drivers/net/ethernet/intel/i40e/i40e_main.c `i40e_pf_reset_stats`.
    pub(super) fn fell(&self, moved: &Moved) -> Option<&str> {
        self.counters().find(|name| moved.get(name) < 0).map(String::as_str)
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

/// What these counters rose by together.
pub(super) fn sum(names: &[String], moved: &Moved) -> i64 {
    names.iter().map(|name| moved.get(name)).sum()
}
