//! The ledger of one of several receivers.
//!
//! Its own counters show what was lost on its host. What the senders and the network lost is counted for all receivers
//! together: each gets a share of it by what is missing there.

use super::prelude::*;
use super::segments::{self, SegmentInput};
use super::{Drop, Ledger, PacketBounds, interval};

impl Ledger {
    /// The part of one receiver in the ledger of all. `input` has what was offered to it and what its program said, `moved`
    /// its own counters.
    #[must_use]
    pub fn of_receiver(&self, input: &LedgerInput, moved: &Moved) -> Self {
        let mut input = input.clone();
        input.path.tx_device = None;
        input.path.wire = WireFacts::NoCards;
        let own = Self::from_counters(&input, moved);
        let missing = own.offered_packets as i64
            - own.delivered_packets as i64
            - own.in_flight_packets as i64;
        let mut drops: Vec<Drop> = own.drops.into_iter().filter(is_of_receiver).collect();
        let room = interval::room(drops.iter().map(Drop::room)).filter(|_| own.inexact.is_empty());
        let raised = interval::raised(&input, drops.iter().map(Drop::raised));
        let rest = missing - drops.iter().map(|drop| drop.packets as i64).sum::<i64>();
        let shared: Vec<&Drop> = self.drops.iter().filter(|drop| !is_of_receiver(drop)).collect();
        let before: i64 = shared.iter().map(|drop| drop.packets as i64).sum();
        let more = interval::room(shared.iter().map(|drop| drop.room()));
        let limit = rest.max(0).unsigned_abs();
        drops.extend(shares(&shared, limit.min(before.unsigned_abs()), Some(limit)));
        drops.sort_few_by_key(|drop| drop.place);
        // Within what may have been lost before, nothing tells whose it was. Its shares may be those of other receivers.
        let open = match more {
            _ if rest <= 0 => room.map(|room| (rest, room, raised)),
            Some(more) if before + more == 0 || rest > before + more => {
                room.map(|room| (rest - before, room.saturating_add(more), raised + before))
            }
            _ => None,
        };
        let note = "losses at the senders and in the network are not counted per receiver: each has a share by what is missing there";
        let notes = (more != Some(0) || before > 0).then(|| note.to_owned()).into_iter().collect();
        let mut part = Self {
            drops,
            unaccounted_packets: None,
            unaccounted_bounds: None,
            notes,
            reasons: Vec::new(),
            ..own
        };
        if let Some((gap, room, raised)) = open {
            part.leave_over(gap, Some(room), raised);
        }
        part
    }

    /// The part of one receiver in the ledger of the segments of all: those from the senders that arrived at its host, by
    /// its own counters in `moved`. Of the workload's sockets, `input` has the receiver's. `share_ratio` is its share of the
    /// segments that arrived at all receivers, and of what was lost anywhere else, the way back included.
    #[must_use]
    pub fn of_receiving_host(&self, input: &SegmentInput, moved: &Moved, share_ratio: f64) -> Self {
        let mut input = input.clone();
        input.path.tx_device = None;
        input.path.wire = WireFacts::NoCards;
        let mut own = segments::arrived(&input, moved);
        let shared: Vec<&Drop> = self.drops.iter().filter(|drop| !is_of_receiver(drop)).collect();
        let elsewhere: u64 = shared.iter().map(|drop| drop.packets).sum();
        let share = (elsewhere as f64 * share_ratio.clamp(0.0, 1.0)).round() as u64;
        own.offered_packets += share;
        own.sent_packets += share;
        for end in own.inexact.iter_mut().filter(|end| end.figure == Figure::Offered) {
            end.most_packets = end.most_packets.map(|most| most.saturating_add(share));
        }
        own.drops.extend(shares(&shared, share, None));
        own.drops.sort_few_by_key(|drop| drop.place);
        if elsewhere > 0 {
            let note = "segments lost elsewhere are not counted per receiver: each has a share of them by what arrived there";
            own.notes.push(note.to_owned());
            own.unaccounted_packets = None;
        }
        own
    }
}

/// Whether the receiver's own counters have the loss. A veth counts what its ring refuses at the sender's end.
fn is_of_receiver(drop: &Drop) -> bool {
    drop.place > Place::Network && !drop.counter.starts_with("tx/")
}

/// `packets` divided as the losses are. Each is an estimate: between none and all of the loss, and no more than `limit`.
fn shares(losses: &[&Drop], packets: u64, limit: Option<u64>) -> Vec<Drop> {
    let (mut left, mut of) = (packets, losses.iter().map(|drop| drop.packets).sum::<u64>());
    let share = |loss: &&Drop| {
        // No more than the loss; the last one takes what is left.
        let own = (u128::from(left) * u128::from(loss.packets)).div_ceil(u128::from(of.max(1)));
        let own = u64::try_from(own).unwrap_or(left).min(left);
        left -= own;
        of -= loss.packets;
        let most_packets = [loss.range().most_packets, limit].into_iter().flatten().min();
        Drop {
            packets: own,
            derived: true,
            exact: false,
            bounds: Some(PacketBounds { least_packets: 0, most_packets }),
            cross_checks: Vec::new(),
            ..Drop::clone(loss)
        }
    };
    losses.iter().map(share).filter(|drop| drop.range().most_packets != Some(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{
        Balance, Link, OwnSegments, PathFacts, ReceiverSaid, RemainderBounds, SenderSaid,
        SocketSegments,
    };

    fn drop_at(place: Place, counter: &str, packets: u64) -> Drop {
        Drop {
            place,
            counter: counter.into(),
            packets,
            derived: false,
            exact: true,
            bounds: None,
            cross_checks: Vec::new(),
        }
    }

    /// 100 datagrams to a receiver whose socket dropped ten.
    fn receiver(delivered: u64) -> (LedgerInput, Moved) {
        let input = LedgerInput {
            sender: SenderSaid { offered_packets: 100, sent_packets: 100, ..SenderSaid::default() },
            receiver: ReceiverSaid {
                delivered_packets: delivered,
                socket_drops: Some(vec![10]),
                ..ReceiverSaid::default()
            },
            path: PathFacts {
                tx_device: Some("eth0".into()),
                rx_device: Some("eth0".into()),
                link: Link::Nic,
                ..PathFacts::default()
            },
            reasoned: None,
        };
        let came = delivered as i64 + 10;
        let values = [
            ("rx/link.eth0.rx.packets", came),
            ("rx/IpExt.InNoECTPkts", came),
            ("rx/Ip.InReceives", came),
            ("rx/Ip.InDelivers", came),
            ("rx/Udp.InDatagrams", delivered as i64),
            ("rx/Udp.InErrors", 10),
            ("rx/Udp.RcvbufErrors", 10),
        ];
        let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
        (input, Moved { values, ..Moved::default() })
    }

    fn part(all: &[Drop], delivered: u64) -> Ledger {
        let (input, moved) = receiver(delivered);
        Ledger { drops: all.to_vec(), ..Ledger::default() }.of_receiver(&input, &moved)
    }

    #[test]
    fn a_receiver_s_own_losses_close_its_ledger() {
        let of_all = [drop_at(Place::SocketBuffer, "rx/Udp.RcvbufErrors", 17)];
        let ledger = part(&of_all, 90);
        assert_eq!(ledger.lost_at(Place::SocketBuffer), 10, "{ledger:?}");
        assert_eq!((ledger.unaccounted_packets, ledger.lost_packets()), (Some(0), 10));
        let missing = part(&of_all, 88);
        assert_eq!(missing.unaccounted_packets, Some(2), "{missing:?}");
    }

    #[test]
    fn losses_before_the_receivers_are_shared_by_what_is_missing() {
        let of_all = [
            drop_at(Place::Qdisc, "tx/qdisc.eth0.drops", 30),
            drop_at(Place::Ring, "tx/link.eth0.tx.dropped", 10),
            drop_at(Place::SocketBuffer, "rx/Udp.RcvbufErrors", 17),
        ];
        let ledger = part(&of_all, 70);
        assert_eq!((ledger.lost_at(Place::Qdisc), ledger.lost_at(Place::Ring)), (15, 5));
        assert_eq!((ledger.lost_packets(), ledger.unaccounted_packets), (30, None));
        let most = |drop: &Drop| (drop.place, drop.range().most_packets);
        let estimates = [(Place::Qdisc, Some(20)), (Place::Ring, Some(10))];
        assert_eq!(ledger.drops.iter().take(2).map(most).collect::<Vec<_>>(), estimates);
        // 50 are missing, more than the 40 that were lost before: other receivers may have lost those.
        let ledger = part(&of_all, 40);
        let rest = RemainderBounds { least_packets: 10, most_packets: 50 };
        assert_eq!((ledger.unaccounted_packets, ledger.unaccounted_bounds), (None, Some(rest)));
        assert_eq!(ledger.unaccounted(), "at least 10");
    }

    #[test]
    fn within_the_bounds_of_what_was_lost_before_the_receivers_nothing_is_surely_unaccounted() {
        let network = Drop {
            exact: false,
            bounds: Some(PacketBounds { least_packets: 0, most_packets: Some(56) }),
            ..drop_at(Place::Network, "tx/ethtool.eth0.tx_packets", 0)
        };
        let of_all = [network, drop_at(Place::Qdisc, "tx/qdisc.eth0.drops", 10)];
        // 20 are missing.
        let ledger = part(&of_all, 70);
        assert_eq!((ledger.unaccounted_packets, ledger.unaccounted_bounds), (None, None));
        let bounds = |place| {
            let drop = ledger.drops.iter().find(|drop| drop.place == place);
            drop.and_then(|drop| drop.bounds).and_then(|bounds| bounds.most_packets)
        };
        assert_eq!((bounds(Place::Qdisc), bounds(Place::Network)), (Some(10), Some(20)));
        // 80 are missing, of which no more than 66 were lost before.
        let ledger = part(&of_all, 10);
        assert_eq!(ledger.balance(), Balance::Missing(14), "{ledger:?}");
        assert_eq!(ledger.unaccounted(), "at least 14");
        assert_eq!(part(&of_all, 90).unaccounted_packets, Some(0));
    }

    /// 100 segments that came to a receiver, of which TCP refused six.
    fn segments_of_receiver() -> (SegmentInput, Moved) {
        let values = [
            ("rx/IpExt.InNoECTPkts", 100),
            ("rx/Ip.InReceives", 100),
            ("rx/Ip.InDelivers", 100),
            ("rx/Tcp.InSegs", 100),
            ("rx/TcpExt.TCPBacklogDrop", 6),
        ];
        let values = values.into_iter().map(|(name, by)| (name.to_owned(), by)).collect();
        let path = PathFacts {
            tx_device: Some("eth0".into()),
            rx_device: Some("eth0".into()),
            link: Link::Nic,
            ..PathFacts::default()
        };
        let input = SegmentInput { path, mtu_bytes: 1500, ..SegmentInput::default() };
        (input, Moved { values, ..Moved::default() })
    }

    #[test]
    fn segments_that_arrived_are_those_of_their_receiver() {
        let (input, moved) = segments_of_receiver();
        let refused = drop_at(Place::SocketBacklog, "rx/TcpExt.TCPBacklogDrop", 9);
        let of_all = Ledger { drops: vec![refused], ..Ledger::default() };
        let ledger = of_all.of_receiving_host(&input, &moved, 0.25);
        assert_eq!((ledger.offered_packets, ledger.delivered_packets), (100, 94), "{ledger:?}");
        assert_eq!((ledger.lost_packets(), ledger.unaccounted_packets), (6, Some(0)), "{ledger:?}");
    }

    #[test]
    fn what_came_to_a_receiver_s_own_sockets_is_surely_of_the_workload() {
        let (mut input, moved) = segments_of_receiver();
        input.path.is_shared = true;
        let rx = SocketSegments { sent_packets: 0, received_packets: 60 };
        input.own = Some(OwnSegments { rx, ..OwnSegments::default() });
        let drops = vec![drop_at(Place::Qdisc, "tx/qdisc.eth0.drops", 40)];
        let of_all = Ledger { drops, ..Ledger::default() };
        let ledger = of_all.of_receiving_host(&input, &moved, 0.25);
        let end = |figure| {
            let end = ledger.inexact.iter().find(|it| it.figure == figure).unwrap();
            (end.least_packets, end.most_packets)
        };
        // Ten of those that were lost elsewhere are its share. Up to six of those that came were refused.
        assert_eq!(end(Figure::Offered), (60, Some(110)), "{ledger:?}");
        assert_eq!(end(Figure::Delivered), (54, Some(100)), "{ledger:?}");
        assert!(
            ledger.bound_word(Figure::Offered) == "at most "
                && ledger.unaccounted_packets.is_none()
        );
    }

    #[test]
    fn few_segments_of_others_are_few_of_those_that_came_to_a_receiver() {
        let (mut input, mut moved) = segments_of_receiver();
        input.path.is_shared = true;
        for counter in ["IpExt.InNoECTPkts", "Ip.InReceives", "Ip.InDelivers", "Tcp.InSegs"] {
            moved.values.insert(format!("rx/{counter}"), 1_000_000);
        }
        let rx = SocketSegments { sent_packets: 0, received_packets: 999_950 };
        input.own = Some(OwnSegments { rx, ..OwnSegments::default() });
        let ledger = Ledger::default().of_receiving_host(&input, &moved, 0.25);
        assert_eq!((ledger.lost_packets(), ledger.unaccounted_packets), (6, Some(0)), "{ledger:?}");
        // Segments that the other IP family handed to TCP are no excess.
        moved.values.insert("rx/Ip6.InReceives".into(), 9);
        moved.values.insert("rx/Tcp.InSegs".into(), 1_000_009);
        let ledger = Ledger::default().of_receiving_host(&input, &moved, 0.25);
        assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:?}");
    }

    #[test]
    fn segments_lost_elsewhere_are_shared_by_what_arrived() {
        let (input, moved) = segments_of_receiver();
        let drops = vec![
            drop_at(Place::Qdisc, "tx/qdisc.eth0.drops", 40),
            drop_at(Place::SocketBacklog, "tx/TcpExt.TCPBacklogDrop", 8),
        ];
        let of_all = Ledger { drops, ..Ledger::default() };
        let ledger = of_all.of_receiving_host(&input, &moved, 0.25);
        assert_eq!((ledger.lost_at(Place::Qdisc), ledger.offered_packets), (10, 112), "{ledger:?}");
        assert_eq!((ledger.lost_packets(), ledger.unaccounted_packets), (18, None), "{ledger:?}");
    }
}
