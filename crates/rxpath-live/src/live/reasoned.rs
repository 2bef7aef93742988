//! Losses that the kernel gave a reason for and that no counter of IP's or UDP's has: tc, XDP and bridge filters, routing,
//! and whatever a later kernel names.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_bpf::names::UNNAMED;
use rxpath_record::evidence::AnyProtocol;
use rxpath_record::ledger::{Drop, DropReason, Place, Reasoned};

/// The kernel's reason for what a netfilter hook drops (include/net/dropreason-core.h).
pub(crate) const NETFILTER_DROP: &str = "NETFILTER_DROP";

/// Reasons by name (`enum skb_drop_reason`, include/net/dropreason-core.h, Linux 6.18): the place of a loss of the receive path
/// that no counter which is read has.
///
/// What is sent, what lay in a socket that was closed, and frames for others are no losses here; TCP's are judged by TCP's
/// counters. A name that is not here is one of a later kernel, and is shown as it is.
fn of_reason(reason: &str) -> Option<Place> {
    match reason {
        "TC_INGRESS"
        | "TC_CHAIN_NOTFOUND"
        | "TC_COOKIE_ERROR"
        | "TC_RECLASSIFY_LOOP"
        | "XDP"
        | "BRIDGE_INGRESS_STP_STATE" => Some(Place::IngressHook),
        "IP_LOCAL_SOURCE"
        | "IP_INVALID_SOURCE"
        | "IP_LOCALNET"
        | "IP_INVALID_DEST"
        | "UNICAST_IN_L2_MULTICAST" => Some(Place::Routing),
        // It was lost at a place whose counter has it as well.
        NETFILTER_DROP | "SOCKET_FILTER" | "XFRM_POLICY" | "SOCKET_RCVBUFF" | "PROTO_MEM"
        | "NO_SOCKET" | "UDP_CSUM" | "SKB_CSUM" | "CPU_BACKLOG" | "IP_RPFILTER" | "IP_CSUM"
        | "IP_INHDR" | "IP_INADDRERRORS" | "IP_INNOROUTES" | "IP_NOPROTO" | "PKT_TOO_SMALL"
        | "DUP_FRAG" | "FRAG_REASM_TIMEOUT" | "FRAG_TOO_FAR" | "SOCKET_BACKLOG"
        // net/ipv6/ip6_input.c `ip6_rcv_core`: InDiscards.
        | "IPV6DISABLED" => None,
        // It was not received, or nobody wanted it.
        "OTHERHOST" | "UNHANDLED_PROTO" | "PACKET_SOCK_ERROR" | "SOCKET_CLOSE" | "QUEUE_PURGE"
        | "UNIX_DISCONNECT" | "UNIX_SKIP_OOB" | "IP_OUTNOROUTES" | "BPF_CGROUP_EGRESS"
        | "TC_EGRESS" | "CAKE_FLOOD" | "SKB_GSO_SEG" | "SKB_UCOPY_FAULT" | "DEV_HDR"
        | "DEV_READY" | "FULL_RING" | "NO_TX_TARGET" | "TUNNEL_TXINFO" | "DUALPI2_STEP_DROP"
        | "PSP_OUTPUT" | "RECURSION_LIMIT" => None,
        _ if ["TCP_", "QDISC_", "FQ_", "NEIGH_", "IPV6_NDISC_", "TAP_", "CAN"]
            .iter()
            .any(|family| reason.starts_with(family)) =>
        {
            None
        }
        _ => Some(Place::ReasonOnly),
    }
}

/// Where the kernel gives no reason the function that dropped it stands for one, where it belongs to the receive path.
fn of_function(function: &str) -> Option<Place> {
    let has = |parts: &[&str]| parts.iter().any(|part| function.contains(part));
    if is_netfilters(function) {
        None
    } else if function.starts_with("veth_xmit") {
        // The other end found this one's ring full, and counts it there (drivers/net/veth.c `veth_xmit`, Linux 6.18). A packet
        // that is sent while the pair is being deleted has no reason either, and counts as such a loss. For a peer that is down
        // `__dev_forward_skb` drops.
        Some(Place::Ring)
    } else if has(&["destruct"]) {
        // What lay in a socket that was closed (net/ipv4/udp.c `udp_destruct_common`).
        None
    } else if has(&[
        "xmit", "output", "send", "tx_", "unix_", "netlink_", "packet_", "tcp_", "frag", "reasm",
    ]) {
        None
    } else if has(&["xdp"]) || function.starts_with("br_") || has(&["handle_ingress"]) {
        Some(Place::IngressHook)
    } else if has(&[
        "ip_rcv_finish",
        "route_input",
        "ip_error",
        "ip6_rcv_finish",
        "ip6_mc_input",
        "ip_mc_",
    ]) {
        Some(Place::Routing)
    } else if ["ip", "__ip", "udp", "__udp", "netif", "__netif", "inet", "nf_", "macvlan", "vlan"]
        .iter()
        .any(|own| function.starts_with(own))
    {
        Some(Place::ReasonOnly)
    } else {
        None
    }
}

/// Whether netfilter's own code dropped it without a reason: what is queued for a program that does not read (`nf_queue`).
fn is_netfilters(function: &str) -> bool {
    ["nf_", "nft_", "nfqnl_", "ipt_", "ip6t_"].iter().any(|own| function.starts_with(own))
}

/// Whether a hook of netfilter's dropped it.
pub(super) fn by_netfilter(row: &DropReason) -> bool {
    match row.reason.as_str() {
        NETFILTER_DROP => true,
        "NOT_SPECIFIED" => is_netfilters(function(row)),
        _ => false,
    }
}

/// A function without the offset in it.
fn function(row: &DropReason) -> &str {
    row.place.split('+').next().unwrap_or_default()
}

/// The place of a loss of the receive path that no counter which is read has.
pub(crate) fn place(row: &DropReason) -> Option<Place> {
    match row.reason.as_str() {
        "NOT_SPECIFIED" => of_function(function(row)),
        // A router's next link is too small: IP counts these (Ip.FragFails, Ip6.InTooBigErrors).
        "PKT_TOO_BIG" if ["ip_forward", "ip6_forward"].contains(&function(row)) => None,
        reason => of_reason(reason),
    }
}

/// Of rows with reason, place and device: the devices with drops of which nothing is known, no reason and no function.
pub(crate) fn nameless<'a>(rows: impl Iterator<Item = [&'a str; 3]>) -> BTreeSet<String> {
    let unknown = rows.filter(|[reason, place, _]| *reason == "NOT_SPECIFIED" && *place == UNNAMED);
    unknown.map(|[.., device]| device.to_owned()).collect()
}

/// Packets that came in, of every protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CameIn {
    /// From devices with nothing below them.
    pub(crate) devices: u64,
    /// To IP.
    pub(crate) ip: u64,
}

/// Losses that only a reason shows. `filtered` is what IP's counters say netfilter dropped: the rest of
/// netfilter's drops happened in front of IP, on a device or a bridge. `shaping`: devices whose queueing disciplines are on
/// the way in.
pub(crate) fn losses(
    rows: &[DropReason],
    came_in: CameIn,
    filtered: u64,
    shaping: &[String],
) -> Vec<AnyProtocol> {
    // By place, what is shown of it, and the devices.
    let mut told: BTreeMap<(Place, String), u64> = BTreeMap::new();
    for row in rows {
        let place = if is_shaped(row, shaping) { Some(Place::IngressHook) } else { place(row) };
        if let Some(place) = place {
            *told.entry((place, named(row))).or_default() += row.packets;
        }
    }
    // What this host sends has no device yet when a filter of the output drops it.
    let netfilter = rows.iter().filter(|row| by_netfilter(row) && !row.device.is_empty());
    let in_front = netfilter.clone().map(|row| row.packets).sum::<u64>().saturating_sub(filtered);
    if let Some(row) = netfilter.max_by_key(|row| row.packets).filter(|_| in_front > 0) {
        told.insert((Place::IngressHook, named(row)), in_front);
    }
    let at = |place: Place| -> u64 {
        told.iter().filter(|((at, _), _)| *at == place).map(|(_, packets)| packets).sum()
    };
    let mut all: Vec<AnyProtocol> = Vec::new();
    for ((place, counter), packets) in &told {
        let here = at(*place);
        let of_packets = match place {
            Place::Ring => came_in.devices + here,
            Place::IngressHook => came_in.ip + here,
            _ => came_in.ip.max(here),
        };
        let drop = Drop::counted(*place, counter.clone(), *packets);
        all.push(AnyProtocol { drop, of_packets });
    }
    all
}

/// What routing refused, which IP counts nowhere (net/ipv4/route.c `ip_route_input_slow`).
pub fn of_routing<'a>(rows: impl Iterator<Item = &'a DropReason>) -> Vec<Reasoned> {
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows.filter(|row| place(row) == Some(Place::Routing)) {
        *told.entry(named(row)).or_default() += row.packets;
    }
    let one = |(counter, packets)| Reasoned { place: Place::Routing, counter, packets };
    told.into_iter().map(one).collect()
}

/// The devices of [`nameless`] drops.
pub(crate) fn nameless_rows(rows: &[DropReason]) -> BTreeSet<String> {
    nameless(rows.iter().map(|row| [&row.reason, &row.place, &row.device].map(String::as_str)))
}

/// Whether a queueing discipline dropped it that shapes what comes in.
fn is_shaped(row: &DropReason, shaping: &[String]) -> bool {
    let disciplines = ["QDISC_", "FQ_", "CAKE_", "DUALPI2_"];
    shaping.contains(&row.device) && disciplines.iter().any(|of| row.reason.starts_with(of))
}

/// Whether XDP dropped it on this device.
pub(super) fn is_xdp(row: &DropReason, dev: &str) -> bool {
    row.device == dev && (row.reason == "XDP" || function(row).contains("xdp"))
}

/// Packets that were dropped for this reason.
pub(super) fn packets(rows: &[DropReason], reason: &str) -> u64 {
    rows.iter().filter(|row| row.reason == reason).map(|row| row.packets).sum()
}

fn named(row: &DropReason) -> String {
    let on = if row.device.is_empty() { String::new() } else { format!(" on {}", row.device) };
    format!("skb:kfree_skb {} at {}{on}", row.reason, function(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reason: &str, place: &str, device: &str, packets: u64) -> DropReason {
        DropReason {
            side: "machine".into(),
            reason: reason.into(),
            place: place.into(),
            device: device.into(),
            port: 0,
            packets,
        }
    }

    fn told(rows: &[DropReason], received: u64, filtered: u64) -> Vec<(Place, u64, u64, String)> {
        let came_in = CameIn { devices: 2 * received, ip: received };
        let all = losses(rows, came_in, filtered, &["ifb0".into()]).into_iter();
        all.map(|l| (l.drop.place, l.drop.packets, l.of_packets, l.drop.counter)).collect()
    }

    #[test]
    fn what_a_filter_in_front_of_ip_drops_is_a_share_of_what_came_to_it() {
        let rows = [row("TC_INGRESS", "__netif_receive_skb_core+0x2f", "db0", 45_000)];
        let counter = "skb:kfree_skb TC_INGRESS at __netif_receive_skb_core on db0".to_owned();
        assert_eq!(told(&rows, 15_000, 0), [(Place::IngressHook, 45_000, 60_000, counter)]);
        // Rules of a bridge: none of IP's counters has them. What IP's counters have is theirs.
        let rows = [row("NETFILTER_DROP", "nf_hook_slow+0x1", "db0", 45_000)];
        assert_eq!(told(&rows, 15_000, 0)[0].1, 45_000);
        assert_eq!(told(&rows, 60_000, 44_000)[0].1, 1_000);
        assert!(told(&rows, 60_000, 45_000).is_empty());
        assert!(told(&[row("NETFILTER_DROP", "nf_hook_slow+0x1", "", 900)], 0, 0).is_empty());
    }

    #[test]
    fn what_a_shaper_of_incoming_traffic_drops_is_lost_on_the_way_in() {
        let rows = [row("QDISC_DROP", "__dev_queue_xmit+0xd01", "ifb0", 8_000)];
        let counter = "skb:kfree_skb QDISC_DROP at __dev_queue_xmit on ifb0".to_owned();
        assert_eq!(told(&rows, 2_000, 0), [(Place::IngressHook, 8_000, 10_000, counter)]);
        // On any other device it is this host's own traffic.
        assert!(told(&[row("QDISC_DROP", "__dev_queue_xmit+0x1", "eth0", 9)], 9, 0).is_empty());
    }

    #[test]
    fn a_reason_of_a_later_kernel_is_told_as_it_stands() {
        let rows = [row("IP_MOON_PHASE", "ip_rcv+0x1", "eth0", 70)];
        let counter = "skb:kfree_skb IP_MOON_PHASE at ip_rcv on eth0".to_owned();
        assert_eq!(told(&rows, 100, 0), [(Place::ReasonOnly, 70, 100, counter)]);
    }

    #[test]
    fn what_netfilter_drops_without_a_reason_is_netfilters() {
        let rows = [row("NOT_SPECIFIED", "nf_queue+0x21f", "w0", 10_000)];
        assert!(by_netfilter(&rows[0]) && !by_netfilter(&row("NOT_SPECIFIED", "ip_rcv", "w0", 1)));
        // IP's counters have it, so it is no loss of its own.
        assert!(told(&rows, 10_000, 10_000).is_empty());
        assert_eq!(told(&rows, 0, 0)[0].0, Place::IngressHook);
    }

    #[test]
    fn what_is_sent_or_counted_or_unwanted_is_no_loss_here() {
        for reason in
            ["SOCKET_RCVBUFF", "QDISC_DROP", "TCP_OLD_DATA", "OTHERHOST", "UNHANDLED_PROTO"]
        {
            assert!(told(&[row(reason, "f+0x1", "eth0", 9)], 9, 0).is_empty(), "{reason}");
        }
        for function in [
            "dev_hard_start_xmit+0x1",
            // The other end of a veth is down.
            "__dev_forward_skb+0x1",
            "ip_defrag+0x2",
            "unix_release_sock+0x1",
            "udp_destruct_common+0x1",
        ] {
            let rows = [row("NOT_SPECIFIED", function, "eth0", 9)];
            assert!(told(&rows, 9, 0).is_empty(), "{function}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_counted_by_ip_only_where_it_is_forwarded() {
        assert!(told(&[row("PKT_TOO_BIG", "ip_forward+0x2c0", "eth0", 9)], 9, 0).is_empty());
        assert_eq!(told(&[row("PKT_TOO_BIG", "veth_xmit+0x1", "eth0", 9)], 9, 0).len(), 1);
    }

    #[test]
    fn devices_with_drops_of_which_nothing_is_known_are_named() {
        let rows = [
            ["NOT_SPECIFIED", UNNAMED, "veth8"],
            ["SOCKET_RCVBUFF", UNNAMED, "eth0"],
            ["NOT_SPECIFIED", "veth_xmit+0x1", "veth9"],
        ];
        assert_eq!(nameless(rows.into_iter()), ["veth8".to_owned()].into());
        assert!(told(&[row("NOT_SPECIFIED", UNNAMED, "veth8", 9)], 9, 0).is_empty());
    }

    #[test]
    fn what_a_ring_lost_is_a_share_of_what_the_devices_took() {
        let rows = [row("NOT_SPECIFIED", "veth_xmit+0x1", "veth0", 50)];
        let [(place, packets, of_packets, _)] = &told(&rows, 75, 0)[..] else { panic!() };
        assert_eq!((*place, *packets, *of_packets), (Place::Ring, 50, 200));
    }

    #[test]
    fn without_a_reason_the_function_tells() {
        for (function, place) in [
            ("ip_rcv_finish_core+0x1", Place::Routing),
            // A route that prohibits, or is unreachable.
            ("ip_error+0x94", Place::Routing),
            ("do_xdp_generic+0x1", Place::IngressHook),
            ("veth_xmit+0x1", Place::Ring),
            ("udp_queue_rcv_one_skb+0x1", Place::ReasonOnly),
        ] {
            let rows = [row("NOT_SPECIFIED", function, "eth0", 9)];
            assert_eq!(told(&rows, 9, 0)[0].0, place, "{function}");
        }
    }
}
