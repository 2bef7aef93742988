//! Finding the socket: early demultiplexing, hash tables, groups of sockets, and the CPU of the reader.

use crate::prelude::*;

const IP_SYSCTL: &str = "kernel: Documentation/networking/ip-sysctl.rst";
const FILE: &str = "/etc/sysctl.d/";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "tcp-early-demux",
        what: "Does early demultiplexing of TCP fit an end host or a router?",
        applies: "every host",
        weight: Weight::by_goal().when(Throughput, Info),
        check: Check::Host(tcp_demux),
        why: "An end host finds the socket first and takes the route from it. A router finds no socket, so the \
              lookup is wasted.",
        mechanism: "ip_rcv_finish_core (net/ipv4/ip_input.c) calls tcp_v4_early_demux.",
        not_when: "a host that both forwards and serves: measure",
        set_now: "sysctl -w net.ipv4.tcp_early_demux=1 (0 on a router)",
        persist: FILE,
        verify: "sysctl net.ipv4.tcp_early_demux",
        since: "3.6; for each protocol 4.12",
        sources: &[IP_SYSCTL, "kernel: net/ipv4/ip_input.c ip_rcv_finish_core"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "udp-early-demux",
        what: "Does early demultiplexing of UDP fit an end host or a router?",
        applies: "every host",
        weight: Weight::by_goal().when(Throughput, Info),
        check: Check::Host(udp_demux),
        why: "Early demultiplexing helps connected UDP sockets on end hosts. A router finds no socket for any \
              datagram.",
        mechanism: "udp_v4_early_demux (net/ipv4/udp.c).",
        not_when: "a host that both forwards and serves: measure",
        set_now: "sysctl -w net.ipv4.udp_early_demux=1 (0 on a router)",
        persist: FILE,
        verify: "sysctl net.ipv4.udp_early_demux",
        since: "3.13; for each protocol 4.12",
        sources: &[IP_SYSCTL, "kernel: net/ipv4/udp.c udp_v4_early_demux"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "udp-hash-entries",
        what: "How large is the table of UDP sockets?",
        applies: "kernels that report it",
        check: Check::Host(udp_hash),
        why: "Many sockets in few buckets make each lookup slow.",
        mechanism: "net.ipv4.udp_hash_entries is the table of this namespace; a negative number means that it is \
                    shared with the initial namespace.",
        not_when: "hundreds of sockets: leave it",
        side_effects: "memory for each namespace created later",
        set_now: "sysctl -w net.ipv4.udp_child_hash_entries=N before the namespace is created; uhash_entries= at \
                  boot",
        persist: "/etc/sysctl.d/, the kernel command line",
        undo: VALUE_BACK,
        verify: "sysctl net.ipv4.udp_hash_entries inside the namespace",
        since: "6.2",
        sources: &[IP_SYSCTL],
        ..Rule::record(Area::Sockets)
    },
    Rule {
        id: "reuseport-incoming-cpu",
        what: "How many UDP ports have more than one socket (SO_REUSEPORT groups)?",
        applies: "hosts whose UDP sockets can be listed",
        size: Multiple,
        effect: "1.1 million packets/s with a socket for each of four threads, 0.5 million with one socket shared \
                 by two threads",
        figure_from: "Cloudflare, How to receive a million packets per second, 2015",
        check: Check::Host(groups),
        why: "Threads that read from one socket wait for its lock. One socket per thread spreads the flows, but \
              few flows are not spread evenly.",
        mechanism: "reuseport_select_sock (net/core/sock_reuseport.c) by hash, by a BPF program, or by \
                    SO_INCOMING_CPU since 6.2.",
        not_when: "one reader is fast enough",
        side_effects: "flows change sockets when a socket joins or leaves the group",
        set_now: "an option of the application",
        persist: "the application's configuration",
        verify: "ss -uan: several sockets of a port; their drops and queues",
        since: "3.9; a BPF selector 4.5",
        sources: &[
            "kernel: net/core/sock_reuseport.c reuseport_select_sock",
            "https://blog.cloudflare.com/how-to-receive-a-million-packets/",
        ],
        ..Rule::record(Area::Sockets)
    },
    Rule {
        id: "numa-of-receiver",
        what: "Do programs and the NIC's interrupts run on one NUMA node?",
        applies: "hosts with two or more NUMA nodes and a NIC that reports its node",
        weight: Weight::by_goal().when(Benchmark, Info),
        size: Tens,
        effect: "1.4 million packets/s with everything on one NUMA node, 1 million across nodes",
        figure_from: "Cloudflare, How to receive a million packets per second, 2015",
        check: Check::Host(receivers),
        why: "The reader's node changes the result by a third, and the scheduler may use any node.",
        mechanism: "The kernel wakes a reader near its last CPU (select_task_rq_fair, kernel/sched/fair.c), not \
                    near the NIC.",
        not_when: "the reader is pinned already",
        side_effects: "a pinned reader cannot leave a busy CPU",
        set_now: "taskset -c CPUS COMMAND with CPUs of the NIC's node",
        persist: "systemd unit: CPUAffinity=, NUMAPolicy=",
        undo: "taskset -p MASK PID, with the previous mask",
        verify: "ps -L -o psr -p PID, against local_cpulist of the NIC",
        since: "every kernel",
        sources: &[
            "https://blog.cloudflare.com/how-to-receive-a-million-packets/",
            "kernel: kernel/sched/fair.c",
        ],
        ..Rule::honesty(Area::Sockets)
    },
    Rule {
        id: "stale-settings",
        what: "Are there settings without effect on this kernel?",
        applies: "hosts whose settings files or sysctls can be read",
        effect: "none: these settings have no effect",
        check: Check::Host(stale),
        why: "Settings copied from old guides look like tuning but have no effect. They hide the effective \
              settings.",
        mechanism: "tcp_low_latency does nothing since 4.14 (the prequeue was removed), tcp_tw_recycle is removed \
                    since 4.12, tcp_fack has no effect since 4.15, route.max_size since 3.6; netdev_max_backlog \
                    does not affect a NIC with NAPI and without RPS; txqueuelen is about transmit.",
        not_when: "the same file serves old kernels too",
        set_now: "remove the lines from /etc/sysctl.conf and /etc/sysctl.d/",
        persist: "the same",
        undo: "restore the lines",
        verify: "sysctl --system reports no unknown key",
        since: "4.12 and later",
        sources: &[
            IP_SYSCTL,
            "kernel: commit 4396e46187ca (tcp_tw_recycle removed, 4.12)",
            "kernel: commit b6690b14386698ce2c19309abad3f17656bdfaea (tcp_low_latency without effect, 4.14)",
        ],
        ..Rule::judge(Area::Sockets)
    },
];

/// Whether this host forwards packets.
fn routes(ask: &Ask<'_>) -> Result<bool, Gap> {
    Ok(ask.facts.sysctl_number("net.ipv4.ip_forward").known()? != 0)
}

fn demux(ask: &Ask<'_>, key: &str) -> Checked {
    let value = ask.facts.sysctl_number(key).known()?;
    let routes = routes(ask)?;
    match (value, routes) {
        (0, false) => Answer::found(
            format!("{key} is 0 on a host that does not forward"),
            "1, the default",
            "route and socket are looked up separately for each packet",
        )
        .change(Set::new(Knob::sysctl(key), 1)),
        (0, true) => Answer::fine("0 on a host that forwards"),
        (_, true) => Answer::silent(
            "1 on a host that forwards: which is better depends on how much traffic ends here",
        ),
        (_, false) => Answer::fine("1 on a host that does not forward"),
    }
}

fn tcp_demux(ask: &Ask<'_>) -> Checked {
    demux(ask, "net.ipv4.tcp_early_demux")
}

fn udp_demux(ask: &Ask<'_>) -> Checked {
    demux(ask, "net.ipv4.udp_early_demux")
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
    let mut nodes: Vec<u32> =
        topology.cpus.iter().filter_map(|cpu| cpu.node.value().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.len() < 2 {
        return Answer::silent("one NUMA node");
    }
    let near: Vec<String> = ask
        .facts
        .nics()
        .filter(|device| device.is_up())
        .filter_map(|device| {
            let node = device.sysfs.numa_node.value().filter(|node| **node >= 0)?;
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
    Answer::found(
        found.join("; "),
        "no such lines",
        "they have no effect, and hide the effective settings",
    )
    .advice("remove the lines from the settings files")
}
