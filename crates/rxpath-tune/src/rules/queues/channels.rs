//! How many receive queues there are.

use super::rings::{MUCH_RATIO, lost};
use crate::prelude::*;

const CHANNELS: &str =
    "kernel: Documentation/networking/ethtool-netlink.rst, CHANNELS_GET and CHANNELS_SET";
const SCALING: &str = "kernel: Documentation/networking/scaling.rst, section RSS";
const SIDE: &str = "all rings are rebuilt: the link may go down for a moment, interrupts get new numbers and \
                    affinities, counters restart at 0, some drivers reset the RSS table";
const UNDO: &str = "first restore the RSS table, then the number of channels, then the affinities: the kernel does \
                    not remove channels that a table entry uses";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "channels-combined",
        what: "Are there enough receive queues for the CPUs?",
        applies: "NICs that are up and show their channels, for throughput and where the NIC loses packets",
        weight: Weight::always(Warn),
        size: Multiple,
        effect: "8 queues and 8 threads served 3.8 times the requests/s of one queue and thread at 100 connections, \
                 and no more at one connection",
        figure_from: "M. Honda, Is your network stack set up correctly?, 2018",
        check: Check::Nic(combined),
        why: "One queue uses one CPU for softirqs. More load than one CPU can handle needs more queues.",
        mechanism: "The NIC hashes each flow to a queue (RSS); each queue has a NAPI instance and an \
                    interrupt of its own.",
        not_when: "few flows, or CPUs reserved for other work: more queues than busy CPUs means less batching in \
                   each queue",
        side_effects: SIDE,
        set_now: "ethtool -L DEV combined N, with N the CPUs of the NIC's node",
        persist: "systemd .link: CombinedChannels=",
        undo: UNDO,
        verify: "ethtool -l DEV; one line for each queue in /proc/interrupts",
        since: "3.0; over netlink 5.7",
        sources: &[SCALING, CHANNELS, "M. Honda, Is your network stack set up correctly?, 2018"],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "channels-vs-cpus",
        what: "Are there more receive queues than CPUs to serve them?",
        applies: "NICs that are up and show their channels",
        weight: Weight::always(Info).when(Fairness, Warn),
        check: Check::Nic(too_many),
        why: "With more queues than CPUs, queues share CPUs: each poll finds fewer packets, and interrupts and \
              rings are wasted.",
        mechanism: "netif_get_num_default_rss_queues (net/core/dev.c) takes half of the physical cores where \
                    there are more than two (before 5.18 all CPUs, at most 8); drivers that do not use it create \
                    one for each CPU.",
        not_when: "queues that flow rules or RSS contexts reserve for one application",
        side_effects: SIDE,
        set_now: "ethtool -L DEV combined N",
        persist: "systemd .link: CombinedChannels=",
        undo: UNDO,
        verify: "ethtool -l DEV",
        since: "3.0; over netlink 5.7",
        sources: &[SCALING, CHANNELS],
        ..Rule::judge(Area::Queues)
    },
];

/// Receive queues in use and at most.
pub fn receiving(device: &Device) -> Result<(u32, u32), Gap> {
    let channels = (&device.nic.channels).known()?;
    let sum = |a: Option<u32>, b: Option<u32>| a.unwrap_or(0) + b.unwrap_or(0);
    let now = sum(channels.combined.now, channels.rx.now);
    if now == 0 {
        return Err(Gap::Absent("the driver does not report its receive channels".into()));
    }
    Ok((now, sum(channels.combined.max, channels.rx.max).max(now)))
}

/// Sets the number of receive queues, under the name that the driver has for them.
fn set(device: &Device, queues: u32) -> Set {
    let combined = device.nic.channels.value().is_some_and(|all| all.combined.now.is_some());
    let which = if combined { "combined" } else { "rx" };
    Set::new(Knob::part(&device.name, Group::Channels, which), u64::from(queues))
}

fn combined(ask: &Ask<'_>, device: &Device) -> Checked {
    let (now, max) = receiving(device)?;
    let cpus = ask.facts.serving(device)?.cpus.len() as u32;
    let wanted = max.min(cpus);
    // Half of the CPUs is the kernel's default: hyper-threads share a core.
    if now >= wanted.div_ceil(2) {
        return Answer::fine(format!("{now} receive queues for {cpus} CPUs that may serve them"));
    }
    let many = "for many flows";
    let observed = format!("{now} receive queues of at most {max}, {cpus} CPUs may serve them");
    let why = "each queue is served by one CPU";
    if ask.goal == Some(Throughput) {
        let found = Answer::found(observed, format!("{wanted}, {many}"), why);
        return found.change(set(device, wanted));
    }
    let it = lost(ask, device)?;
    if it.ratio() < MUCH_RATIO || it.lost.evidence() == Evidence::Old {
        return Answer::silent(
            "the NIC loses nothing: judged for throughput, and where packets are lost",
        );
    }
    Answer::found(
        format!("{observed}; the NIC lost packets ({})", it.words),
        format!("{wanted}, {many}"),
        "one CPU empties each ring, and packets that arrive while it is busy are lost",
    )
    .change(set(device, wanted))
    .severity(Fail)
    .size(Loss)
    .rests_on(it.lost, &ask.facts.watched)
}

fn too_many(ask: &Ask<'_>, device: &Device) -> Checked {
    let (now, _) = receiving(device)?;
    let cpus = (&ask.facts.topology).known()?.online.as_slice().len() as u32;
    if now <= cpus {
        return Answer::fine(format!("{now} receive queues, {cpus} CPUs online"));
    }
    Answer::found(
        format!("{now} receive queues, {cpus} CPUs online"),
        format!("{cpus} or fewer"),
        "queues that share a CPU make each poll smaller",
    )
    .change(set(device, cpus))
}
