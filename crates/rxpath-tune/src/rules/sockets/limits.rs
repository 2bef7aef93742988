//! Protocol limits so low that they break the protocol.

use super::floor::{Floor, Low, Reading, floor, judge, read};
use crate::prelude::*;

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
pub const RULES: RuleFile = RuleFile {
    name: "sockets/limits.toml",
    text: include_str!("limits.toml"),
    checks: &[
        ("protocol-limits", Check::Host(limits)),
        ("neighbour-settings", Check::Active(neighbours)),
    ],
};

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
