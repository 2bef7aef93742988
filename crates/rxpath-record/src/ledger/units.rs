//! How many datagrams one counted packet is, at each point of the way.
//!
//! A GSO sender hands the kernel aggregates of N datagrams. Every counter between its socket and the
//! receiver's socket counts such an aggregate once, unless something on the way took it apart (`tbf` when it
//! is larger than its burst; a device without `tx-udp-segmentation`) or put datagrams together (GRO).
//!
//! Which of these happened is read from counters that count both ways: the sender knows its datagrams, the
//! device its packets; the ECN counters of IP know datagrams, `InReceives` packets. When no whole number of
//! datagrams fits, the unit is [`Unit::Mixed`] and a loss has only bounds.

use rxpath_core::PathSide;

use super::call::{egress_bounds, full_queue};
use super::input::Link;
use super::view::View;

/// Datagrams per counted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Each is this many.
    Each(i64),
    /// Between 1 and `most`; `None` = no bound known.
    Mixed {
        /// Upper bound for one.
        most: Option<i64>,
    },
}

impl Unit {
    /// The least number of datagrams in `packets`, and whether that is exact.
    pub fn least(self, packets: i64) -> (i64, bool) {
        match self {
            Self::Each(n) => (packets * n, true),
            Self::Mixed { .. } => (packets, packets == 0),
        }
    }

    /// The largest number of datagrams in `packets`, when there is one.
    pub fn most(self, packets: i64) -> Option<i64> {
        match self {
            Self::Each(n) => Some(packets * n),
            Self::Mixed { most } => most.map(|n| packets * n),
        }
    }
}

/// The units of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    /// In the sender's queueing discipline, and where its UDP and IP count.
    pub qdisc: Unit,
    /// At both ends of the link.
    pub device: Unit,
    /// At the receiver's IP and netfilter, behind GRO.
    pub ip: Unit,
}

impl Units {
    pub fn of(view: View<'_>) -> Self {
        let n = i64::from(view.input.sender.segments_per_send.max(1));
        let (qdisc, device) = if view.input.sender.short_batches && n > 1 {
            (Unit::Mixed { most: Some(n) }, Unit::Mixed { most: Some(n) })
        } else {
            let (qdisc, device) = sending(view, n);
            (Unit::Each(qdisc), Unit::Each(device))
        };
        Self { qdisc, device, ip: receiving(view, n, device) }
    }
}

/// Which of the three ways an aggregate can take fits the sender's count best.
fn sending(view: View<'_>, n: i64) -> (i64, i64) {
    if n == 1 || view.input.path.tx_device.is_none() {
        return (n, n);
    }
    let sender = &view.input.sender;
    let entered = (sender.sent_packets + full_queue(sender)) as i64;
    let queue = view.qdisc().map_or(0, |(_, drops)| drops);
    let device =
        view.tx_link("tx.packets") + view.tx_link("tx.dropped") - view.foreign_out(PathSide::Tx);
    // Only what surely died there: between hosts the most has drops of the queue that may be of others.
    let hook = egress_bounds(view)[0] * n;
    let miss = |(of_queue, of_device): (i64, i64)| {
        let passed = queue * of_queue + device * of_device + sender.queued_packets as i64;
        (entered - hook - passed).abs()
    };
    // The first of equals wins: whole aggregates all the way is what a veth does by default.
    let ways = [(n, n), (n, 1), (1, 1)];
    ways.into_iter().min_by_key(|way| miss(*way)).unwrap_or((n, n))
}

fn receiving(view: View<'_>, n: i64, device: Unit) -> Unit {
    let foreign = view.foreign_at_ip(PathSide::Rx);
    let packets = view.ip(PathSide::Rx, "InReceives") - foreign;
    let segments = view.segments_at_ip() - foreign;
    // GRO works in NAPI only, and a network card may have hardware GRO.
    let may_merge = matches!(view.link(), Link::VethNapi | Link::Nic);
    let headers = view.ip(PathSide::Rx, "InHdrErrors").max(0);
    let fits = |unit: i64| {
        let missing = packets * unit - segments;
        missing == 0 || (missing > 0 && missing <= headers * unit)
    };
    match device {
        Unit::Each(unit) if fits(unit) => Unit::Each(unit),
        _ if may_merge && segments > packets => Unit::Mixed { most: None },
        _ if n > 1 && fits(1) => Unit::Each(1),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Moved;
    use crate::ledger::{LedgerInput, PathFacts, SenderSaid};

    #[test]
    fn a_queue_that_dropped_aggregates_and_may_have_dropped_others_packets_counts_aggregates() {
        let sender = SenderSaid {
            offered_packets: 100_000,
            sent_packets: 100_000,
            segments_per_send: 10,
            ..SenderSaid::default()
        };
        let path = PathFacts {
            tx_device: Some("eth0".into()),
            tx_qdisc: Some("tx/qdisc.eth0.root.drops".into()),
            tx_filters: Some("tx/tc.eth0.clsact.drops".into()),
            link: Link::Nic,
            is_shared: true,
            ..PathFacts::default()
        };
        let input = LedgerInput { sender, path, ..LedgerInput::default() };
        // Of 10,000 aggregates the queue dropped half. The card took the others apart. Another program sent segments.
        let values = [
            ("tx/qdisc.eth0.root.drops", 5_000),
            ("tx/Udp.SndbufErrors", 5_000),
            ("tx/Ip.OutDiscards", 5_000),
            ("tx/Tcp.OutSegs", 5_000),
            ("tx/link.eth0.tx.packets", 50_000 + 5_000),
        ];
        let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
        let moved = Moved { values, ..Moved::default() };
        let units = Units::of(View { input: &input, moved: &moved });
        assert_eq!((units.qdisc, units.device), (Unit::Each(10), Unit::Each(1)));
    }
}
