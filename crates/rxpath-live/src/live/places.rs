//! Places of loss, each with the counter that owns it: those of UDP, and those that count packets of every protocol.

use rxpath_core::PathSide;
use rxpath_core::number::grouped;
use rxpath_record::counters::Moved;
use rxpath_record::evidence::{AnyProtocol, ConntrackUse};
use rxpath_record::ledger::{CrossCheck, Drop, DropReason, Place};

use super::devices::Carried;
use super::reasoned::{self, CameIn, NETFILTER_DROP};

#[cfg(test)]
mod tests;

/// Places of loss, each with the counter that owns it, of IPv4 and IPv6 together. Those of UDP count datagrams; IP's and
/// the reverse path filter's count packets of every protocol.
pub(crate) const PLACES: [(Place, &[&str]); 8] = [
    (
        Place::Ip,
        &[
            "Ip.InHdrErrors",
            "Ip.InAddrErrors",
            "Ip.InDiscards",
            "IpExt.InTruncatedPkts",
            "Ip.FragFails",
            "Ip6.InHdrErrors",
            "Ip6.InAddrErrors",
            "Ip6.InDiscards",
            "Ip6.InTruncatedPkts",
            "Ip6.InTooBigErrors",
        ],
    ),
    (Place::Routing, &["IpExt.InNoRoutes", "Ip6.InNoRoutes"]),
    (Place::ReversePath, &["TcpExt.IPReversePathFilter"]),
    (Place::Fragments, &["Ip.ReasmFails", "Ip6.ReasmFails"]),
    (Place::NoListener, &["Udp.NoPorts", "Udp6.NoPorts"]),
    (Place::Checksum, &["Udp.InCsumErrors", "Udp6.InCsumErrors"]),
    (Place::SocketBuffer, &["Udp.RcvbufErrors", "Udp6.RcvbufErrors"]),
    (Place::UdpMemory, &["Udp.MemErrors", "Udp6.MemErrors"]),
];
/// Of these the ones that do not tell UDP from other protocols.
const ANY_PROTOCOL: [Place; 4] = [Place::Ip, Place::Routing, Place::ReversePath, Place::Fragments];

/// How the name of what a driver counts for XDP ends.
pub(crate) const XDP_DROPS: &str = "drops of XDP";
/// What IP took in.
pub(crate) const RECEIVED: [&str; 2] = ["Ip.InReceives", "Ip6.InReceives"];
/// Where what IP took in goes to when no filter drops it: up, on to another host, into a whole packet, or into a counter
/// of IP's own. A fragment ends where it is taken up, and the whole packet goes on in its stead.
///
/// **Source** net/ipv4/ip_input.c, route.c (`ip_error`), ip_forward.c, ip_fragment.c; net/ipv6/ip6_input.c, reassembly.c.
const ACCOUNTED: [&str; 19] = [
    "Ip.InDelivers",
    "Ip.ForwDatagrams",
    "Ip.InHdrErrors",
    "Ip.InAddrErrors",
    "Ip.InDiscards",
    "Ip.InUnknownProtos",
    "Ip.ReasmReqds",
    "IpExt.InNoRoutes",
    "IpExt.InTruncatedPkts",
    "TcpExt.IPReversePathFilter",
    "Ip6.InDelivers",
    "Ip6.OutForwDatagrams",
    "Ip6.InHdrErrors",
    "Ip6.InAddrErrors",
    "Ip6.InDiscards",
    "Ip6.InUnknownProtos",
    "Ip6.InNoRoutes",
    "Ip6.InTruncatedPkts",
    "Ip6.ReasmReqds",
];
/// Whole packets that were made of fragments.
const MADE: [&str; 2] = ["Ip.ReasmOKs", "Ip6.ReasmOKs"];
/// The counters of one line are not read at one moment: a difference of less than this, or than this part of what came, is
/// none.
const SKEW_PACKETS: u64 = 10;
const SKEW: u64 = 1_000;
/// What devices refused beyond its known reasons is a loss where it is this part of it or more: bursts into the backlog lose
/// hundreds of packets between two readings.
const REFUSED_SKEW: u64 = 2;

/// How far these counters moved together; `None` when none of them moved.
pub(crate) fn sum(moved: &Moved, names: &[&str]) -> Option<u64> {
    let one = |name: &&str| moved.values.get(&format!("{}/{name}", PathSide::Machine)).copied();
    let found: Vec<i64> = names.iter().filter_map(one).collect();
    (!found.is_empty()).then(|| found.iter().map(|n| u64::try_from(*n).unwrap_or(0)).sum())
}

fn lost(moved: &Moved, place: Place, names: &[&str]) -> Option<Drop> {
    let packets = sum(moved, names).filter(|packets| *packets > 0)?;
    Some(Drop::counted(place, names.join(" + "), packets))
}

/// What UDP lost in all, however.
pub(crate) const UDP_ERRORS: [&str; 2] = ["Udp.InErrors", "Udp6.InErrors"];
/// Its parts that have a counter of their own.
pub(crate) const UDP_NAMED: [Place; 3] = [Place::Checksum, Place::SocketBuffer, Place::UdpMemory];

/// Datagrams of UDP that were lost: these counters count nothing else. `at_sockets`: what the sockets that were looked at
/// dropped; `reasons` where the kernel's were watched.
pub(super) fn of_udp(moved: &Moved, at_sockets: u64, reasons: Option<&[DropReason]>) -> Vec<Drop> {
    let own = PLACES.iter().filter(|(place, _)| !ANY_PROTOCOL.contains(place));
    let mut drops: Vec<Drop> =
        own.filter_map(|(place, names)| lost(moved, *place, names)).collect();
    let named = drops.iter().filter(|drop| UDP_NAMED.contains(&drop.place));
    let named: u64 = named.map(|drop| drop.packets).sum();
    let errors = sum(moved, &UDP_ERRORS).unwrap_or(0);
    // The memory limit may be a control group's: then no counter but the socket's own moves (net/ipv4/udp.c
    // `__udp_enqueue_schedule_skb`).
    let uncounted = at_sockets.saturating_sub(errors.max(named));
    drops.extend(other(errors.saturating_sub(named), reasons));
    if uncounted > 0 {
        let formula = "SO_MEMINFO drops - Udp.InErrors - Udp6.InErrors".to_owned();
        let drop = Drop::counted(Place::UdpMemoryUncounted, formula, uncounted);
        drops.push(Drop { derived: true, exact: false, ..drop });
    }
    drops
}

/// What the sockets of a port or of programs that were asked for lost: nothing of what others did. `udp` is all that UDP
/// lost, which has no counter by socket but one, of everything that ended at it; `port`: of whose drops the kernel's reasons
/// tell.
pub(super) fn of_asked(
    udp: &[Drop],
    at_sockets: u64,
    has_sockets: bool,
    port: Option<u16>,
    reasons: Option<&[DropReason]>,
) -> Vec<Drop> {
    let mut left = at_sockets;
    let mut own = Vec::new();
    for drop in udp {
        if drop.place == Place::NoListener {
            own.extend(closed(drop, has_sockets, port, reasons));
            continue;
        }
        let packets = drop.packets.min(left);
        left -= packets;
        let counter = format!("SO_MEMINFO drops of the sockets asked for, within {}", drop.counter);
        let is_all = packets == drop.packets;
        own.extend((packets > 0).then(|| Drop {
            derived: drop.derived || !is_all,
            exact: drop.exact && is_all,
            ..Drop::counted(drop.place, counter, packets)
        }));
    }
    own
}

/// What came to the port while nobody had it. Programs that have sockets are asked for by these.
fn closed(
    all: &Drop,
    has_sockets: bool,
    port: Option<u16>,
    reasons: Option<&[DropReason]>,
) -> Option<Drop> {
    let port = port?;
    let Some(rows) = reasons else {
        return (!has_sockets).then(|| Drop { exact: false, ..all.clone() });
    };
    let rows = rows.iter().filter(|row| row.reason == "NO_SOCKET" && row.port == port);
    // A segment of TCP may have the same reason and port.
    let packets = rows.map(|row| row.packets).sum::<u64>().min(all.packets);
    let counter = format!("skb:kfree_skb NO_SOCKET of port {port}, within {}", all.counter);
    (packets > 0).then(|| Drop::counted(Place::NoListener, counter, packets))
}

/// `InErrors` less its named parts, divided by the kernel's reasons where there are some.
fn other(mut errors: u64, reasons: Option<&[DropReason]>) -> Vec<Drop> {
    let mut drops = Vec::new();
    for (reason, place) in UDP_REASONS {
        let rows = reasons.unwrap_or_default().iter().filter(|row| row.reason == reason);
        // TCP's sockets have filters as well: UDP's share is at most what UDP counted.
        let packets = rows.map(|row| row.packets).sum::<u64>().min(errors);
        if packets > 0 {
            errors -= packets;
            let counter = format!("skb:kfree_skb {reason}, within Udp.InErrors + Udp6.InErrors");
            drops.push(Drop::counted(place, counter, packets));
        }
    }
    if errors > 0 {
        let formula =
            "Udp.InErrors - RcvbufErrors - MemErrors - InCsumErrors, and the same of Udp6";
        drops
            .push(Drop { derived: true, ..Drop::counted(Place::UdpOther, formula.into(), errors) });
    }
    drops
}

/// Reasons for which UDP has no counter but the sum of all errors (net/ipv4/udp.c `udp_queue_rcv_one_skb`).
pub(crate) const UDP_REASONS: [(&str, Place); 2] =
    [("SOCKET_FILTER", Place::SocketFilter), ("XFRM_POLICY", Place::IpsecPolicy)];

/// What else is told of the packets, beside IP's counters.
pub(super) struct Beside<'a> {
    /// What the devices took and lost.
    pub carried: &'a Carried,
    /// Packets of each CPU's softirq and backlog.
    pub by_cpu: &'a [rxpath_record::evidence::CpuPackets],
    /// Connection tracking, where it could be read.
    pub tracked: Option<&'a ConntrackUse>,
    /// The kernel's reasons, where they were watched.
    pub reasons: Option<&'a [DropReason]>,
}

/// Losses whose counters count packets of every protocol, in the order of the way.
pub(super) fn of_any_protocol(moved: &Moved, beside: &Beside<'_>) -> Vec<AnyProtocol> {
    let received = sum(moved, &RECEIVED).unwrap_or(0);
    let mut all: Vec<AnyProtocol> = beside.carried.ring.iter().cloned().collect();
    let by_xdp: u64 = beside.carried.xdp.iter().map(|(_, packets)| packets).sum();
    all.extend(beside.carried.xdp.iter().map(|(dev, packets)| {
        let counter = format!("ethtool -S {dev}, {XDP_DROPS}");
        let drop = Drop::counted(Place::IngressHook, counter, *packets);
        AnyProtocol { drop, of_packets: received + by_xdp }
    }));
    let processed: u64 = beside.by_cpu.iter().map(|cpu| cpu.packets).sum();
    let dropped: u64 = beside.by_cpu.iter().map(|cpu| cpu.dropped_packets).sum();
    all.extend(refused(beside, received, dropped));
    if dropped > 0 {
        let counter = "softnet dropped, all CPUs and network namespaces".to_owned();
        let drop = Drop::counted(Place::Backlog, counter, dropped);
        all.push(AnyProtocol { drop, of_packets: processed + dropped });
    }
    let own = PLACES.iter().filter(|(place, _)| ANY_PROTOCOL.contains(place));
    let at_ip = own.filter_map(|(place, names)| lost(moved, *place, names));
    let filtered = filtered(moved, beside);
    let by_filters = filtered.as_ref().map_or(0, |drop| drop.packets);
    all.extend(at_ip.chain(filtered).map(|drop| {
        let of_packets = received.max(drop.packets);
        AnyProtocol { drop, of_packets }
    }));
    // What a driver counts of XDP may have a reason as well.
    let of_xdp =
        |row: &DropReason| beside.carried.xdp.iter().any(|(dev, _)| reasoned::is_xdp(row, dev));
    let rows: Vec<DropReason> =
        beside.reasons.unwrap_or_default().iter().filter(|row| !of_xdp(row)).cloned().collect();
    let came_in = CameIn { devices: beside.carried.took, ip: received };
    all.extend(reasoned::losses(&rows, came_in, by_filters, &beside.carried.shaping));
    all
}

/// Fragments of one packet, about, at most: 64 KiB in pieces for the usual MTU.
const FRAGMENTS: u64 = 46;
/// Fewer fragments than this are strays.
const WAITING_FRAGMENTS: u64 = 100;

/// That fragments came whose rest did not, or not yet: they are lost only when the time for it is over
/// (net.ipv4.ipfrag_time, 30 s).
pub(super) fn waiting_fragments(moved: &Moved) -> Option<String> {
    let came = sum(moved, &["Ip.ReasmReqds", "Ip6.ReasmReqds"]).unwrap_or(0);
    let made = sum(moved, &MADE).unwrap_or(0);
    (came >= WAITING_FRAGMENTS && came > made.saturating_mul(FRAGMENTS)).then(|| {
        let [came, made] = [came, made].map(grouped);
        format!("what became of {came} fragments: {made} packets were made whole, the others wait for their rest")
    })
}

/// What devices refused, where the kernel's reasons tell it from frames that nobody here wants.
fn refused(beside: &Beside<'_>, received: u64, backlog: u64) -> Option<AnyProtocol> {
    let (names, dropped) = &beside.carried.refused;
    // A packet that the backlog has no room for counts at its device, too (net/core/dev.c `enqueue_to_backlog`).
    let rows = beside.reasons?;
    // Frames of protocols that no handler takes are in `rx_dropped`, too, and are not losses of anybody's.
    let unhandled = reasoned::packets(rows, "UNHANDLED_PROTO");
    let unwanted = unhandled + backlog.max(reasoned::packets(rows, "CPU_BACKLOG"));
    // The device's counter and the reasons are read at two moments: on a busy machine hundreds of milliseconds apart.
    let packets = dropped.saturating_sub(unwanted);
    let packets = if packets < *dropped / REFUSED_SKEW { 0 } else { packets };
    let counter = format!("rtnetlink stats64 rx_dropped of {}", names.join(", "));
    let drop = Drop::counted(Place::DeviceRefused, counter, packets);
    (packets > 0).then(|| AnyProtocol { drop, of_packets: received + packets })
}

/// What came to IP and went nowhere that a counter names: netfilter has none of its own. What connection tracking dropped
/// is among it, and is more where it drops what this host sends.
fn filtered(moved: &Moved, beside: &Beside<'_>) -> Option<Drop> {
    let came = sum(moved, &RECEIVED).unwrap_or(0) + sum(moved, &MADE).unwrap_or(0);
    let gone = came.saturating_sub(sum(moved, &ACCOUNTED).unwrap_or(0));
    let gone = if gone < SKEW_PACKETS.max(came / SKEW) { 0 } else { gone };
    let tracked = beside.tracked.map_or(0, |tracked| tracked.drops_packets);
    // Where the kernel's reasons were watched, what vanished without one was no filter's: load balancers (IPVS) take
    // packets out of the path, and fragments of IPv6 are joined before they are counted.
    let by_netfilter = |rows: &[DropReason]| -> u64 {
        rows.iter().filter(|row| reasoned::by_netfilter(row)).map(|row| row.packets).sum()
    };
    let reasoned = beside.reasons.map(by_netfilter);
    let gone = reasoned.map_or(gone, |reasoned| gone.min(reasoned.max(tracked)));
    let packets = gone.max(tracked);
    if packets == 0 {
        return None;
    }
    let mut cross_checks = Vec::new();
    if let Some(reasoned) = reasoned {
        cross_checks.push(CrossCheck {
            counter: format!("skb:kfree_skb {NETFILTER_DROP}"),
            packets: reasoned,
            // What it drops of this host's own packets comes on top.
            agrees: reasoned >= packets - packets / 20,
        });
    }
    if tracked >= gone {
        let drop = Drop::counted(Place::Netfilter, "nf_conntrack drop".into(), tracked);
        return Some(Drop { cross_checks, ..drop });
    }
    let counter =
        "Ip.InReceives - Ip.InDelivers - ForwDatagrams - IP's own discards, and the same of Ip6";
    let drop = Drop::counted(Place::Netfilter, counter.into(), gone);
    Some(Drop { derived: true, cross_checks, ..drop })
}
