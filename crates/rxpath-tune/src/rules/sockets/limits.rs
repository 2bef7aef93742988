//! Protocol limits so low that they break the protocol.

use super::floor::{Floor, Low, Reading, floor, judge, read};
use crate::prelude::*;

const SYSCTL: &str = "kernel: Documentation/networking/ip-sysctl.rst";

/// **Source** of the defaults: net/ipv4/ip_fragment.c, net/ipv6/reassembly.c, net/ipv4/tcp_ipv4.c `tcp_sk_init`,
/// include/net/ip.h `IPDEFTTL`.
const FLOORS: [Floor; 11] = [
    floor(
        "net.ipv4.ipfrag_high_thresh",
        262_144,
        Some(4_194_304),
        "fragments are dropped while they wait for the others",
    ),
    floor(
        "net.ipv6.ip6frag_high_thresh",
        262_144,
        Some(4_194_304),
        "IPv6 fragments are dropped while they wait for the others",
    ),
    floor("net.ipv4.ipfrag_time", 1, Some(30), "fragments do not wait for the others"),
    floor(
        "net.ipv4.tcp_limit_output_bytes",
        16_384,
        Some(1_048_576),
        "a sender waits for each packet to leave before it sends the next",
    ),
    floor(
        "net.ipv4.tcp_notsent_lowat",
        4096,
        Some(4_294_967_295),
        "a sender is woken for each few bytes",
    )
    // Old kernels show what is unlimited as -1.
    .may_be_unlimited(),
    floor("net.ipv4.tcp_pacing_ca_ratio", 100, Some(120), "TCP paces below what its window allows"),
    floor(
        "net.ipv4.tcp_pacing_ss_ratio",
        100,
        Some(200),
        "TCP cannot grow its window at the start",
    ),
    floor("net.ipv4.tcp_reordering", 3, Some(3), "TCP treats each reordered packet as lost"),
    floor("net.ipv4.tcp_retries2", 3, Some(15), "connections end after a second without an answer"),
    floor("net.ipv4.ip_default_ttl", 32, Some(64), "packets end on the way to peers that are far"),
    floor(
        "net.ipv6.conf.all.hop_limit",
        32,
        Some(64),
        "IPv6 packets end on the way to peers that are far",
    ),
];

const PORTS: &str = "net.ipv4.ip_local_port_range";
/// A smaller port range for outgoing connections is a mistake; the kernel's default range has 28,232 ports.
const LEAST_PORTS: i64 = 1000;

const PROBING: &str = "net.ipv4.tcp_mtu_probing";
const BASE_MSS: &str = "net.ipv4.tcp_base_mss";
/// The start of probing before the kernel's default became 1024 (4.1).
const LEAST_MSS: i64 = 512;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "protocol-limits",
        what: "Is an IP or TCP limit so low that it breaks the protocol?",
        applies: "every host",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "fragments, connections or most of the speed are lost until it is raised",
        check: Check::Host(limits),
        why: "A typing error, a wrong unit, or advice for another kernel. No load needs values so low.",
        mechanism: "inet_frag_kill and inet_frag_create drop fragments beyond ipfrag_high_thresh \
                    (net/ipv4/inet_fragment.c); tcp_small_queue_check holds a sender at tcp_limit_output_bytes \
                    (net/ipv4/tcp_output.c); tcp_update_pacing_rate multiplies by the pacing ratios \
                    (net/ipv4/tcp_input.c); __inet_hash_connect takes ports from ip_local_port_range \
                    (net/ipv4/inet_hashtables.c); tcp_mtu_probing searches from tcp_base_mss on \
                    (net/ipv4/tcp_timer.c).",
        not_when: "an experiment that shows their effect",
        side_effects: "none beyond the kernel's own behaviour",
        set_now: "sysctl -w net.ipv4.ipfrag_high_thresh=4194304, and so on with the kernel's default of each \
                  named setting",
        persist: "remove the line that sets it from /etc/sysctl.conf and /etc/sysctl.d/",
        verify: "rxpath check",
        since: "2.4; tcp_limit_output_bytes 3.6, tcp_notsent_lowat 3.12, pacing ratios 4.2",
        sources: &[SYSCTL, "kernel: net/ipv4/tcp_ipv4.c tcp_sk_init"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "neighbour-settings",
        what: "Can neighbour addresses (ARP, ND) be resolved and cached?",
        applies: "devices that are up and find their neighbours by ARP or neighbour discovery",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "packets to a neighbour whose address is being resolved are dropped",
        check: Check::Active(neighbours),
        why: "A neighbour's address is resolved before the first packet, and again when its entry is too old. \
              Meanwhile packets wait in a queue.",
        mechanism: "__neigh_event_send (net/core/neighbour.c) queues up to unres_qlen_bytes and drops the oldest; \
                    neigh_timer_handler asks mcast_solicit times; neigh_periodic_work derives the random time for \
                    which an entry counts as reachable from base_reachable_time_ms.",
        not_when: "all neighbours of the device are permanent entries",
        side_effects: "up to unres_qlen_bytes of memory for each neighbour that does not answer",
        set_now: "sysctl -w net.ipv4.neigh.DEV.unres_qlen_bytes=212992; \
                  sysctl -w net.ipv4.neigh.DEV.base_reachable_time_ms=30000; \
                  sysctl -w net.ipv4.neigh.DEV.mcast_solicit=3",
        persist: "remove the line that sets it from /etc/sysctl.d/",
        verify: "ip -s neigh show dev DEV: no neighbour that answers is FAILED",
        since: "2.2; unres_qlen_bytes 3.3",
        sources: &["kernel: net/core/neighbour.c __neigh_event_send", SYSCTL],
        ..Rule::judge(Area::Sockets)
    },
];

fn limits(ask: &Ask<'_>) -> Checked {
    let mut all = read(ask.facts, &FLOORS);
    all.extend([ports(ask), base_mss(ask)]);
    judge(all, |count| format!("{count} limits are high enough"))
}

/// Ports for outgoing connections: `None` when they could not be read, else what is wrong.
fn ports(ask: &Ask<'_>) -> Reading {
    let range = ask.facts.sysctl_numbers(PORTS).into_value()?;
    let [first, last] = range[..] else { return None };
    let count = last.saturating_sub(first).saturating_add(1);
    Some((count < LEAST_PORTS).then(|| Low {
        told: format!("{PORTS} holds {count} ports"),
        least: format!("at least {LEAST_PORTS} ports"),
        below: "connections to one address fail once these ports are in use",
        key: PORTS.into(),
        set: Some(Set::new(Knob::sysctl(PORTS), "32768 60999")),
        is_deadly: false,
    }))
}

/// The size at which the search for a path's MTU begins, where TCP searches.
fn base_mss(ask: &Ask<'_>) -> Reading {
    ask.facts.sysctl_number(PROBING).into_value().filter(|on| *on > 0)?;
    let now = ask.facts.sysctl_number(BASE_MSS).into_value()?;
    Some((now < LEAST_MSS).then(|| Low {
        told: format!("{BASE_MSS} is {now}, and {PROBING} is on"),
        least: format!("{BASE_MSS} at least {LEAST_MSS}"),
        below: "connections whose path is probed send segments of this size",
        key: BASE_MSS.into(),
        set: Some(Set::new(Knob::sysctl(BASE_MSS), 1024)),
        is_deadly: false,
    }))
}

/// `IFF_NOARP`, linux/if.h.
const NO_ARP: u32 = 0x80;

const NEIGHBOURS: [(&str, i64, u64, &str); 3] = [
    (
        "unres_qlen_bytes",
        4096,
        212_992,
        "packets are dropped while the neighbour's address is resolved",
    ),
    ("base_reachable_time_ms", 1000, 30_000, "each neighbour is resolved again all the time"),
    ("mcast_solicit", 1, 3, "nobody is asked for a neighbour's address"),
];

fn neighbours(ask: &Ask<'_>, device: &Device) -> Checked {
    if device.flags.value().is_some_and(|flags| flags & NO_ARP != 0) {
        return Answer::silent("the device does not resolve neighbours");
    }
    let mut all = Vec::new();
    for family in ["ipv4", "ipv6"] {
        for (name, least, default, below) in NEIGHBOURS {
            let key = format!("net/{family}/neigh/{}/{name}", device.name);
            all.push(ask.facts.sysctl_number(&key).into_value().map(|now| {
                (now < least).then(|| Low {
                    told: format!("{name} of {family} is {now}"),
                    least: format!("at least {least}"),
                    below,
                    set: Some(Set::new(Knob::sysctl(&key), default)),
                    key,
                    is_deadly: false,
                })
            }));
        }
    }
    judge(all, |count| format!("{count} settings are high enough"))
}
