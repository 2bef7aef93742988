//! What of the segments and of their losses may be of other connections, where hosts have other traffic.
//!
//! The counters of TCP, IP, queues and cards count the segments of all programs. The workload's own sockets count theirs
//! (`TCP_INFO`), each until it is read. What is in the counters beyond that may be of others, and so may as many losses.

use super::Way;
use crate::ledger::foreign::narrow_packets;
use crate::ledger::prelude::*;
use crate::ledger::shared::{take_off, times};
use crate::ledger::{Ledger, RemainderBounds, interval};

/// What the workload's own sockets counted on both sides; see [`SocketSegments`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnSegments {
    /// Those of the load.
    pub tx: SocketSegments,
    /// Those of the server.
    pub rx: SocketSegments,
}

/// Segments of sockets until they were read: their end, a SYN-ACK, and sockets that were not read are missing.
///
/// **Source** `tcpi_segs_out`, `tcpi_segs_in` (net/ipv4/tcp.c `tcp_get_info`). The first has retransmissions. The second
/// has what TCP refused behind it, such as a drop of the socket's backlog (net/ipv4/tcp_ipv4.c `tcp_v4_rcv`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketSegments {
    /// Handed to IP.
    pub sent_packets: u64,
    /// Taken from IP.
    pub received_packets: u64,
}

impl OwnSegments {
    fn of(self, side: PathSide) -> SocketSegments {
        if side == PathSide::Tx { self.tx } else { self.rx }
    }
}

/// Packets of others in one direction, at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Others {
    /// Segments that the sending host's TCP counted.
    sent: i64,
    /// Segments that the receiving host's IP counted.
    arrived: i64,
    /// Packets of other protocols that the sending host sent.
    beyond_tcp_sent: i64,
    /// The same, received by the other host.
    beyond_tcp_arrived: i64,
    /// They are too many to make no difference to a number.
    is_wide: bool,
}

impl Others {
    /// Those of one direction; `None` where the hosts have no others.
    pub(super) fn of(way: &Way<'_>) -> Option<Self> {
        let path = &way.input.path;
        if !path.is_shared || path.link != Link::Nic {
            return None;
        }
        let own = way.input.own.unwrap_or_default();
        let (from, to) = (own.of(way.from), own.of(way.to));
        let mut others = Self {
            is_wide: false,
            sent: (way.sent() - from.sent_packets as i64).max(0),
            arrived: (way.arrived() - to.received_packets as i64).max(0),
            beyond_tcp_sent: beyond_tcp(way),
            beyond_tcp_arrived: way.foreign().max(0),
        };
        let most = others.out().max(others.came());
        others.is_wide = most > few(way);
        (most > 0).then_some(others)
    }

    /// Both directions together.
    pub(super) fn with(all: Option<Self>, more: Option<Self>) -> Option<Self> {
        let (Some(one), Some(other)) = (all, more) else { return all.or(more) };
        Some(Self {
            sent: one.sent + other.sent,
            arrived: one.arrived + other.arrived,
            beyond_tcp_sent: one.beyond_tcp_sent + other.beyond_tcp_sent,
            beyond_tcp_arrived: one.beyond_tcp_arrived + other.beyond_tcp_arrived,
            is_wide: one.is_wide || other.is_wide,
        })
    }

    /// Whether these are so many that figures have bounds.
    pub(super) fn are_many(others: Option<Self>) -> bool {
        others.is_some_and(|others| others.is_wide)
    }

    /// Whether so many segments that were sent and did not arrive are none, or may be of others.
    pub(super) fn explain(others: Option<Self>, missing: i64) -> bool {
        let others = others.unwrap_or_default();
        (-others.arrived..=others.sent).contains(&missing)
    }

    fn out(self) -> i64 {
        self.sent + self.beyond_tcp_sent
    }

    fn came(self) -> i64 {
        self.arrived + self.beyond_tcp_arrived
    }

    /// Makes intervals of losses in counters that others may have moved.
    pub(super) fn bound(others: Option<Self>, way: &Way<'_>, mut terms: Vec<Term>) -> Vec<Term> {
        if let Some(others) = others.filter(|others| others.is_wide) {
            for term in &mut terms {
                others.bound_one(way, term);
            }
        }
        terms
    }

    fn bound_one(self, way: &Way<'_>, term: &mut Term) {
        let lost = term.credited();
        let of_others = match term.place {
            Place::Output
            | Place::EgressHook
            | Place::Qdisc
            | Place::SendingDevice
            | Place::Network => self.out(),
            // No protocol counts what these lost: others lost no more there than they received, or as many times more.
            Place::Ring | Place::Backlog => self.came() * times(lost, way.arrived()),
            _ => self.came(),
        };
        take_off(term, of_others, few(way));
        term.least = term.datagrams;
        // A card that received frames of others hides as many that the network lost.
        if term.place == Place::Network {
            let most = lost.saturating_add(self.came());
            (term.exact, term.is_narrow, term.most) = (false, false, Some(most));
            term.bound = Some(format!(
                "between {} and {} segments were lost between the network cards: they count other traffic too",
                signed(term.least),
                signed(most)
            ));
        }
    }

    /// Enters that the remainder has bounds, and of many others both ends of the sum too. A ledger that closes in spite of few
    /// others stays as it is.
    pub(super) fn leave_open(self, ledger: &mut Ledger, own: Option<OwnSegments>, terms: &[Term]) {
        if !self.is_wide && ledger.unaccounted_packets == Some(0) {
            return;
        }
        if self.is_wide {
            let own = own.unwrap_or_default();
            let sent = own.tx.sent_packets + own.rx.sent_packets;
            let read = own.tx.received_packets + own.rx.received_packets;
            ledger.inexact.extend(ends(ledger, [sent, read], terms));
        }
        let gap = ledger.unaccounted_packets.take().unwrap_or(0);
        let room = interval::room(terms.iter().map(Term::room));
        ledger.unaccounted_bounds = room.map(|room| RemainderBounds {
            least_packets: gap.saturating_sub(room).saturating_sub(self.sent),
            // TCP counts what it took from IP of both families.
            most_packets: gap.saturating_add(self.came()),
        });
    }
}

/// The ends of the sum, where they have bounds. The workload's sockets sent and took from IP this many.
pub(super) fn ends(ledger: &Ledger, [sent, read]: [u64; 2], terms: &[Term]) -> Vec<Inexact> {
    // What TCP refused has been counted by its socket before.
    let refused = most(terms.iter().filter(|term| term.place >= Place::ListenQueue));
    let taken = refused.map_or(0, |refused| read.saturating_sub(refused.unsigned_abs()));
    let ends = [
        (Figure::Offered, sent, ledger.offered_packets),
        (Figure::Delivered, taken, ledger.delivered_packets),
    ];
    let ends = ends.into_iter().map(|(figure, least, most)| Inexact {
        figure,
        least_packets: least.min(most),
        most_packets: Some(most),
        why: "the hosts' counters have the segments of all programs".into(),
    });
    ends.filter(|end| !end.is_exact()).collect()
}

/// What these lost together, at most; `None` without a limit.
fn most<'a>(terms: impl Iterator<Item = &'a Term>) -> Option<i64> {
    interval::room(terms.map(|term| Some(term.credited().saturating_add(term.room()?))))
}

/// So many packets of others make no difference to a number. One of several receivers has no counters of the senders.
fn few(way: &Way<'_>) -> i64 {
    narrow_packets(way.sent().max(way.arrived()).max(0).unsigned_abs())
}

/// Packets of other protocols that the sending host sent, forwarded ones among them, at most. A datagram that died under its
/// call is not in `OutDatagrams` (net/ipv4/udp.c `udp_send_skb`).
fn beyond_tcp(way: &Way<'_>) -> i64 {
    let counters = [
        ("Icmp", "OutMsgs"),
        ("Icmp6", "OutMsgs"),
        ("Udp", "OutDatagrams"),
        ("Udp6", "OutDatagrams"),
        ("Udp", "SndbufErrors"),
        ("Udp6", "SndbufErrors"),
        ("Ip", "ForwDatagrams"),
        ("Ip6", "OutForwDatagrams"),
    ];
    counters.iter().map(|(group, counter)| way.get(way.from, group, counter)).sum()
}
