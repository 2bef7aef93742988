//! Finding the socket: early demultiplexing, hash tables, groups of sockets, and the CPU of the reader.

use std::collections::BTreeSet;

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("tcp-early-demux", Check::Host(|ask| demux(ask, "net.ipv4.tcp_early_demux"))),
    ("udp-early-demux", Check::Host(|ask| demux(ask, "net.ipv4.udp_early_demux"))),
    ("udp-hash-entries", Check::Host(udp_hash)),
    ("reuseport-incoming-cpu", Check::Host(groups)),
    ("numa-of-receiver", Check::Host(receivers)),
    ("stale-settings", Check::Host(stale)),
];

fn demux(ask: &Ask<'_>, key: &str) -> Checked {
    let value = ask.facts.sysctl_number(key).known()?;
    let routes = ask.facts.sysctl_number("net.ipv4.ip_forward").known()? != 0;
    match (value, routes) {
        (0, false) => Answer::observed(format!("{key} is 0 on a host that does not forward"))
            .change(Set::new(Knob::sysctl(key), 1)),
        (0, true) => Answer::fine("0 on a host that forwards"),
        (_, true) => Answer::silent(
            "1 on a host that forwards: which is better depends on how much traffic ends here",
        ),
        (_, false) => Answer::fine("1 on a host that does not forward"),
    }
}

fn udp_hash(ask: &Ask<'_>) -> Checked {
    let entries = ask.facts.sysctl_number("net.ipv4.udp_hash_entries").known()?;
    let shared = if entries < 0 { " (shared with the first namespace)" } else { "" };
    Answer::recorded(format!("{} buckets{shared}", entries.abs()))
}

fn groups(ask: &Ask<'_>) -> Checked {
    let ports = (&ask.facts.udp_ports).known()?;
    let groups = ports.values().filter(|sockets| sockets.sockets_count > 1).count();
    Answer::recorded(format!("{groups} of {} ports", ports.len()))
}

fn receivers(ask: &Ask<'_>) -> Checked {
    let topology = (&ask.facts.topology).known()?;
    let nodes: BTreeSet<&u32> = topology.cpus.iter().filter_map(|cpu| cpu.node.value()).collect();
    if nodes.len() < 2 {
        return Answer::silent("one NUMA node");
    }
    let near: Vec<String> = ask
        .facts
        .nics()
        .filter(|device| device.is_up())
        .filter_map(|device| {
            let node = device.sysfs.steering.numa_node.value().filter(|node| **node >= 0)?;
            Some(format!("{} is on node {node}", device.name))
        })
        .collect();
    if near.is_empty() {
        return Answer::silent("no NIC reports its node");
    }
    Answer::caution(format!(
        "{} NUMA nodes, {}: pin the program to CPUs of that node, or say where it ran",
        nodes.len(),
        near.join(", ")
    ))
}

/// Settings without effect, the first such kernel, and the reason.
const STALE: [(&str, (u32, u32), &str); 4] = [
    ("net.ipv4.tcp_low_latency", (4, 14), "without effect since 4.14"),
    ("net.ipv4.tcp_tw_recycle", (4, 12), "gone since 4.12"),
    ("net.ipv4.tcp_fack", (4, 15), "without effect since 4.15"),
    ("net.ipv4.route.max_size", (3, 6), "without effect since 3.6, as the route cache went"),
];

fn stale(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.version).known()?;
    let mut found = Vec::new();
    for (key, _, why) in
        STALE.iter().filter(|(_, since, _)| ask.facts.kernel.is_since(since.0, since.1))
    {
        // route.max_size was never 0: only a file shows that somebody set it.
        let live = *key != "net.ipv4.route.max_size"
            && ask.facts.sysctl_number(key).value().is_some_and(|value| *value != 0);
        let kept = ask.facts.kept.iter().find(|kept| kept.key == *key);
        match (live, kept) {
            (_, Some(kept)) => found.push(format!("{key} in {} ({why})", kept.file)),
            (true, None) => found.push(format!("{key} is set ({why})")),
            (false, None) => {}
        }
    }
    // A backlog that overflowed was in use, if only by loopback.
    let softnet = (&ask.facts.softnet).known();
    let drops = softnet.as_ref().map_or(true, |lines| lines.iter().any(|(_, it)| it.dropped > 0));
    let backlog = ask.facts.kept.iter().find(|kept| kept.key == "net.core.netdev_max_backlog");
    if let Some(kept) = backlog.filter(|_| !drops && matches!(ask.facts.uses_backlog(), Ok(false)))
    {
        found.push(format!(
            "{} in {} (only loopback passes a backlog here: every other device has NAPI, and RPS is off)",
            kept.key, kept.file
        ));
    }
    if found.is_empty() {
        // The one of them that kernels still have: without it no sysctl can be read here.
        ask.facts.sysctl_number("net.ipv4.tcp_low_latency").known()?;
        if backlog.is_some() {
            softnet?;
            ask.facts.all_devices()?;
        }
        return Answer::fine("none of the known ones");
    }
    Answer::observed(found.join("; ")).advice("remove the lines from the settings files")
}
