//! The input of the ledger, in addition to the counters.

use std::collections::BTreeMap;

use rxpath_core::PathSide;

use super::Place;
use super::cards::WireFacts;
use crate::counters::name;

/// Everything known about a trial that is not a kernel counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerInput {
    /// The sender's own counts.
    pub sender: SenderSaid,
    /// The receiver's own counts.
    pub receiver: ReceiverSaid,
    /// Facts about the path between them.
    pub path: PathFacts,
    /// Losses that only the kernel's reasons show; `None` if not watched.
    pub reasoned: Option<Vec<Reasoned>>,
}

/// A loss on the receiver's side that no counter has, by the kernel's reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reasoned {
    /// Where.
    pub place: Place,
    /// The tracepoint, the reason, the function and the device.
    pub counter: String,
    /// Packets.
    pub packets: u64,
}

/// The sender's own figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SenderSaid {
    /// Attempted datagrams.
    pub offered_packets: u64,
    /// Datagrams that the kernel accepted.
    pub sent_packets: u64,
    /// Refused datagrams by errno name. `ECONNREFUSED` does not belong here: the send was retried.
    pub send_errors: BTreeMap<String, u64>,
    /// Datagrams per send: 1 (or 0), or the N of a GSO sender.
    pub segments_per_send: u32,
    /// Whether a send may have been less than a full batch of that many: aggregates have no exact size then.
    pub short_batches: bool,
    /// The sender is a raw or packet socket: the UDP and IP counters of its side do not move.
    pub raw: bool,
    /// Frames of an XDP program that the device refused, by its driver's answers. A veth counts them at both ends: in
    /// the sender's `tx_dropped` and in the receiver's `rx_dropped` (drivers/net/veth.c, `veth_get_stats64`).
    pub refused_frames: u64,
    /// Datagrams still in the sender's queueing discipline at the end (`TCA_STATS_QUEUE` qlen).
    pub queued_packets: u64,
    /// Offered and sent are the kernel's counters of a foreign sender: a send of GSO counts once.
    pub by_kernel: bool,
}

/// The receiver's own figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverSaid {
    /// Datagrams read by the application, or counted and dropped by its XDP program where that is its task.
    pub delivered_packets: u64,
    /// Datagrams still in its sockets after draining.
    pub in_flight_packets: u64,
    /// `SKMEMINFO_DROPS` of each socket, read before close; `None` when nobody listened or it was not read.
    pub socket_drops: Option<Vec<u64>>,
    /// They are those of the last sample, because the sockets were closed before the end: there may be more.
    pub drops_are_sampled: bool,
    /// The sockets have `UDP_GRO`: their error counters count aggregates.
    pub gro: bool,
    /// The sockets may refuse datagrams on their own (a socket filter, an unknown external server).
    pub may_refuse: bool,
    /// Payload of one datagram. From 69 bytes on a checksum is verified by the reader, not at the lookup.
    pub payload_bytes: Option<u32>,
    /// Sequence numbers that never came, when datagrams carry them.
    pub sequence_lost_packets: Option<u64>,
    /// Delivered is the kernel's counter of a foreign receiver: an aggregate that is read whole counts once.
    pub by_kernel: bool,
    /// What its XDP program took from the device; `None` without one.
    pub bypass: Option<Bypass>,
}

/// What a receiver's own XDP program took from the device: the counters of IP and UDP leave it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bypass {
    /// Taken: dropped by the program, or handed to AF_XDP sockets.
    pub taken_packets: u64,
    /// Of these, dropped by the program.
    pub program_drops_packets: u64,
    /// Of these, dropped by the AF_XDP sockets: no frame to receive into, or a full ring.
    pub socket_drops_packets: u64,
}

/// Facts about the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFacts {
    /// The sender's device, when there is one to read.
    pub tx_device: Option<String>,
    /// The drop counter of the root queueing discipline of that device (its name in `Moved`).
    ///
    /// `None` = the one with the largest count under `tx/qdisc.<device>.`.
    pub tx_qdisc: Option<String>,
    /// The receiver's device.
    pub rx_device: Option<String>,
    /// The largest packet that the devices of all hosts take; `None` if not known.
    pub mtu_bytes: Option<u32>,
    /// IPv6.
    pub v6: bool,
    /// What kind of link it is.
    pub link: Link,
    /// Counters (names in `Moved`) of the rules that drop in PREROUTING or INPUT.
    ///
    /// `Some` of none = no rule there drops. `None` = not known: the derived term stands alone.
    pub input_rules: Option<Vec<String>>,
    /// The same for ingress hooks of the receiver's device: netfilter ingress, tc, XDP.
    pub ingress_rules: Option<Vec<String>>,
    /// The same for egress hooks of the sender's device. A loss there is only known with them.
    pub egress_rules: Option<Vec<String>>,
    /// The counter of what filters of tc dropped at the sender's device, in both directions: the drops of its `clsact`.
    ///
    /// `Some` of hosts, whose other egress hooks are not known: then the counters of UDP and IP show what died in any of them.
    pub tx_filters: Option<String>,
    /// The same for OUTPUT and POSTROUTING of both sides: a datagram's send call fails there, a segment is lost.
    pub output_rules: Option<Vec<String>>,
    /// Counters whose sum is what the receiving card's ring lost. Of none, the largest of
    /// [`crate::counters::name::RING`].
    pub ring: Vec<String>,
    /// What the two cards count of the frames between them.
    pub wire: WireFacts,
    /// Other programs' packets are in the counters of the hosts, too. Only of network cards.
    pub is_shared: bool,
    /// The link carries frames of no IP, such as ARP: devices count them, and no protocol does.
    pub has_other_frames: bool,
}

/// The kind of link: it decides what the device counters mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// A veth pair; whether the receiving end runs NAPI is not known.
    ///
    /// It is taken from `rx_queue_*_xdp_packets` of the driver, which only move with NAPI.
    #[default]
    Veth,
    /// A veth pair without NAPI: no ring; a full backlog is seen by the sending device too.
    VethPlain,
    /// A veth pair whose receiving end runs NAPI: a ring of 256; backlogs lie behind it.
    VethNapi,
    /// The loopback device: no ring; the sender does not see backlog drops.
    Loopback,
    /// A network card: [`PathFacts::ring`] and [`PathFacts::wire`] say what it counts.
    Nic,
}

impl PathFacts {
    /// The counters that own a drop or enter a derived one. A snapshot without them can't close a ledger.
    ///
    /// Rule counters are not in it: without rules there are none.
    pub fn wanted_counters(&self) -> Vec<String> {
        let (ip, ext, udp) = self.groups();
        let ips = ["InReceives", "InDelivers", "InHdrErrors", "InAddrErrors", "InDiscards"];
        let udps = ["NoPorts", "InErrors", "RcvbufErrors", "InCsumErrors", "MemErrors"];
        let mut names: Vec<String> = ips.iter().map(|c| name::snmp(PathSide::Rx, ip, c)).collect();
        names.extend(name::ECN.iter().map(|c| name::snmp(PathSide::Rx, ext, c)));
        names.extend(udps.iter().map(|c| name::snmp(PathSide::Rx, udp, c)));
        if !self.v6 {
            names.push(name::snmp(PathSide::Rx, "TcpExt", "IPReversePathFilter"));
        }
        if let Some(device) = &self.tx_device {
            names.extend(["tx.packets", "tx.dropped"].map(|c| name::link(PathSide::Tx, device, c)));
            names.extend(self.tx_qdisc.clone());
            if let Some(filters) = &self.tx_filters {
                let below_call = [(udp, "SndbufErrors"), (ip, "OutDiscards")];
                names.extend(below_call.map(|(group, c)| name::snmp(PathSide::Tx, group, c)));
                names.push(filters.clone());
            }
        }
        if let Some(device) = &self.rx_device {
            names.extend(["rx.packets", "rx.dropped"].map(|c| name::link(PathSide::Rx, device, c)));
        }
        if self.link == Link::Nic {
            names.extend(self.ring.iter().cloned());
            if let (true, Some(device)) = (self.ring.is_empty(), &self.rx_device) {
                names.extend(name::RING.map(|counter| name::link(PathSide::Rx, device, counter)));
            }
        }
        if let WireFacts::Counted(wire) = &self.wire {
            names.extend(wire.forward.counters().cloned());
        }
        names
    }

    /// Groups of the family: IP, the IP extension that counts segments, UDP.
    pub(super) fn groups(&self) -> (&'static str, &'static str, &'static str) {
        if self.v6 { ("Ip6", "Ip6", "Udp6") } else { ("Ip", "IpExt", "Udp") }
    }
}
