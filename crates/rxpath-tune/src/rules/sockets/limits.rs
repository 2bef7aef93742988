//! Protocol limits so low that they break the protocol.

use super::floor::{FLOORS, Floor, FloorReading, Low, judge, read};
use crate::prelude::*;

const PORTS: &str = "net.ipv4.ip_local_port_range";
/// A smaller port range for outgoing connections is a mistake; the kernel's default range has 28,232 ports.
const LEAST_PORTS: i64 = 1000;

const PROBING: &str = "net.ipv4.tcp_mtu_probing";
const BASE_MSS: &str = "net.ipv4.tcp_base_mss";
/// The start of probing before the kernel's default became 1024 (4.1).
const LEAST_MSS: i64 = 512;

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("protocol-limits", Check::Host(limits)), ("neighbour-settings", Check::Active(neighbours))];

fn limits(ask: &Ask<'_>) -> Checked {
    let mut all = read(ask.facts, &FLOORS.limit);
    all.extend([ports(ask), base_mss(ask)]);
    judge(all, |count| format!("{count} limits are high enough"))
}

/// Ports for outgoing connections: `None` when they could not be read, else what is wrong.
fn ports(ask: &Ask<'_>) -> FloorReading {
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
fn base_mss(ask: &Ask<'_>) -> FloorReading {
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

fn neighbours(ask: &Ask<'_>, device: &Device) -> Checked {
    if device.flags.value().is_some_and(|flags| flags & NO_ARP != 0) {
        return Answer::silent("the device does not resolve neighbours");
    }
    let mut all = Vec::new();
    for family in ["ipv4", "ipv6"] {
        for Floor { key: name, least, default, below, .. } in &FLOORS.neighbour {
            let key = format!("net/{family}/neigh/{}/{name}", device.name);
            all.push(ask.facts.sysctl_number(&key).into_value().map(|now| {
                (now < *least).then(|| Low {
                    told: format!("{name} of {family} is {now}"),
                    least: format!("at least {least}"),
                    below,
                    set: default.map(|default| Set::new(Knob::sysctl(&key), default)),
                    key,
                    is_deadly: false,
                })
            }));
        }
    }
    judge(all, |count| format!("{count} settings are high enough"))
}
