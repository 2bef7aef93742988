//! The ledger: `offered = delivered + drops by place + in flight`, each term from a named counter.
//!
//! The modules of the places (sending, arriving and UDP) explain which counter owns which loss, which others change
//! with it, and how aggregates are counted. [`Ledger::from_counters`] puts it together.

mod aggregates;
mod arriving;
mod bypass;
mod call;
mod cards;
mod close;
mod flow;
mod foreign;
mod fragments;
pub mod input;
mod interval;
mod prelude;
mod receiver;
mod remainder;
mod segments;
mod sending;
mod shared;
mod term;
mod udp;
mod units;
mod view;
mod wire;
mod words;

pub use cards::{OneWay, WireCounters, WireFacts};
pub use flow::waiting_packets;
pub use input::{Bypass, LedgerInput, Link, PathFacts, Reasoned, ReceiverSaid, SenderSaid};
pub use interval::{PacketBounds, RemainderBounds};
pub use remainder::{Balance, Balances};
pub use segments::{OwnSegments, SegmentInput, SocketSegments, segments_between};
pub use words::PlaceWords;

use rxpath_core::number::grouped;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a datagram can be lost, in the order of the path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The send call failed, for example EPERM of a netfilter OUTPUT rule.
    ///
    /// Not `ENOBUFS`: that packet was dropped in a queue further down, whose counter owns it.
    SendCall,
    /// netfilter OUTPUT or POSTROUTING dropped a TCP segment. A datagram's send call fails instead.
    Output,
    /// An egress hook of the sender's device: a filter of tc, a program of tcx, netfilter egress.
    EgressHook,
    /// The sender's queueing discipline.
    Qdisc,
    /// The sending card's driver dropped it (`tx_dropped`).
    SendingDevice,
    /// Between two network cards: switches, routers, damaged frames.
    Network,
    /// The ring of the receiving NAPI device was full.
    Ring,
    /// The per-CPU backlog of RPS (`enqueue_to_backlog`).
    Backlog,
    /// The device rejected it: longer than its MTU, or of a protocol that no handler here takes (`rx_dropped`).
    DeviceRefused,
    /// An ingress hook: netfilter ingress, tc or XDP.
    IngressHook,
    /// An AF_XDP socket: no frame to receive into, or a full ring.
    XdpSocket,
    /// IP header, address, discard and reassembly errors.
    Ip,
    /// Reverse path filter.
    ReversePath,
    /// Routing rejected it: a martian source, a group that no program joined, no route.
    Routing,
    /// Fragments that never became a complete packet.
    Fragments,
    /// netfilter PREROUTING or INPUT.
    Netfilter,
    /// No IPsec policy allowed it.
    IpsecPolicy,
    /// A filter at the socket, or a BPF program at its control group.
    SocketFilter,
    /// No socket on the port.
    NoListener,
    /// Wrong checksum of UDP or TCP.
    Checksum,
    /// The socket's receive buffer was full.
    SocketBuffer,
    /// The machine-wide UDP memory limit.
    UdpMemory,
    /// UDP memory drops that this kernel counts only at the socket.
    UdpMemoryUncounted,
    /// Any other UDP error (`InErrors` minus its named parts).
    UdpOther,
    /// The kernel gave a reason, and no counter that is read includes the loss.
    ReasonOnly,
    /// The queue of connections that wait to be accepted, or of those being set up.
    ListenQueue,
    /// The backlog of a TCP socket while a program held its lock (`tcp_add_backlog`).
    SocketBacklog,
    /// The receive queue of a TCP socket: no memory, or no window.
    TcpReceiveQueue,
    /// The out-of-order queue of a TCP socket.
    TcpOutOfOrder,
    /// TCP rejected the timestamps (PAWS).
    TcpSequence,
    /// TCP rejected it for another reason.
    TcpOther,
}

rxpath_core::named! {
    /// What a ledger counts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum LedgerUnit {
        /// UDP datagrams, one direction.
        #[default]
        Datagram => "datagrams",
        /// TCP segments, both directions.
        Segment => "segments",
    }
    /// The plural, for text.
    pub fn word(self) -> &'static str
}

/// A second counter that changes with a drop. Shown next to it, never added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCheck {
    /// The counter's name.
    pub counter: String,
    /// Its change.
    pub packets: u64,
    /// Whether it agrees with the owner.
    pub agrees: bool,
}

/// The loss at one place, by its one owning counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drop {
    /// Where.
    pub place: Place,
    /// The owning counter, or the formula when `derived`.
    pub counter: String,
    /// Datagrams lost here; within `bounds`, where there are any.
    pub packets: u64,
    /// Computed from several counters, not read from one.
    pub derived: bool,
    /// `false` if the counter counts aggregates of unknown size, or the packets of other programs too: then `packets` is the
    /// lower bound, or what sequence numbers leave for this place.
    pub exact: bool,
    /// What surely was lost here, and what may have been. None where `exact`, and where only the lower bound is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bounds: Option<PacketBounds>,
    /// Counters that changed with it.
    pub cross_checks: Vec<CrossCheck>,
}

impl Drop {
    /// What one counter read exactly.
    pub fn counted(place: Place, counter: String, packets: u64) -> Self {
        let (derived, exact, bounds, cross_checks) = (false, true, None, Vec::new());
        Self { place, counter, packets, derived, exact, bounds, cross_checks }
    }
}

rxpath_core::named! {
    /// One end of the sum.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Figure {
        /// What the sender attempted.
        Offered => "offered",
        /// What the application read.
        Delivered => "delivered",
    }
    /// For people.
    pub fn word(self) -> &'static str
}

/// An end of the sum that is only known to lie between two values. The ledger shows the lower one, or what a counter has of all
/// programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inexact {
    /// Which.
    pub figure: Figure,
    /// The lower bound.
    pub least_packets: u64,
    /// The upper bound, if known.
    pub most_packets: Option<u64>,
    /// Why no counter shows it.
    pub why: String,
}

impl Inexact {
    /// Whether the bounds leave one value.
    pub fn is_exact(&self) -> bool {
        self.most_packets == Some(self.least_packets)
    }
}

impl std::fmt::Display for Inexact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (figure, least, why) = (self.figure.word(), grouped(self.least_packets), &self.why);
        if self.is_exact() {
            return write!(f, "{figure} is {least}: {why}");
        }
        let most = |most| format!(", at most {}", grouped(most));
        let most = self.most_packets.map_or_else(String::new, most);
        write!(f, "{figure} is known within bounds only: at least {least}{most}: {why}")
    }
}

/// Where every datagram or segment of a trial went.
///
/// **Unit** the ledger's own. **Source** counters named in each term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// What is counted.
    #[serde(default)]
    pub unit: LedgerUnit,
    /// Attempted by the sender; of TCP: sent by either TCP, retransmissions among them.
    pub offered_packets: u64,
    /// Accepted by the sender's kernel.
    pub sent_packets: u64,
    /// Read by the application, or counted and dropped by its XDP program (`--engine xdp-drop`); of TCP: taken by the
    /// receiving TCP.
    pub delivered_packets: u64,
    /// Losses, in the order of the path.
    pub drops: Vec<Drop>,
    /// Still in queues when the trial ended.
    pub in_flight_packets: u64,
    /// Packets seen at either end that are not the workload's: ICMP answers, neighbour discovery, other protocols.
    pub foreign_packets: u64,
    /// `offered - delivered - drops - in flight`: zero if every datagram is accounted for, below zero if more arrived
    /// than were sent. `null` if a term of the sum has only bounds.
    #[serde(default)]
    pub unaccounted_packets: Option<i64>,
    /// What `unaccounted_packets` may be, where terms of the sum have bounds and nothing decides within them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unaccounted_bounds: Option<RemainderBounds>,
    /// Ends for which the kernel's counters are not exact.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub inexact: Vec<Inexact>,
    /// Counters that contradict the ledger or were missing, as text.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// The kernel's reasons for freeing packets, if watched: in addition to the counters, not instead of them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reasons: Vec<DropReason>,
}

impl Default for Ledger {
    /// Of nothing: it closes.
    fn default() -> Self {
        Self {
            unit: LedgerUnit::default(),
            offered_packets: 0,
            sent_packets: 0,
            delivered_packets: 0,
            drops: Vec::new(),
            in_flight_packets: 0,
            foreign_packets: 0,
            unaccounted_packets: Some(0),
            unaccounted_bounds: None,
            inexact: Vec::new(),
            notes: Vec::new(),
            reasons: Vec::new(),
        }
    }
}

/// Packets that the kernel dropped for one reason at one place.
///
/// **Unit** socket buffers: a GSO or GRO aggregate is one. **Source** tracepoint `skb:kfree_skb` (reasons since 5.17).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropReason {
    /// Whose namespace: `tx`, `rx`, `machine`.
    pub side: String,
    /// `SOCKET_RCVBUFF`, ... (enum skb_drop_reason).
    pub reason: String,
    /// The function that freed them, with the offset in it.
    pub place: String,
    /// Device; empty if the packet had none any more.
    pub device: String,
    /// Destination port; 0 where it has none.
    pub port: u16,
    /// How many.
    pub packets: u64,
}
