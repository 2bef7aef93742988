//! Interrupts deferred by software, and packets batched before the stack.

use crate::prelude::*;

const NAPI: &str = "kernel: Documentation/networking/napi.rst, software interrupt coalescing";
const COMMIT: &str = "kernel commit 6f8b12d661d0 (napi_defer_hard_irqs)";

/// A lone packet should not wait longer than this, in ns.
const LONG_NS: u64 = 200_000;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "napi-defer-hard-irqs",
        what: "If empty polls are allowed, is their timer set as well?",
        applies: "devices with NAPI that are up, Linux 5.8 and later",
        weight: Weight::always(Warn),
        size: Tens,
        effect: "with both set: up to 20 % more on a 100 Gb/s NIC with 32 queues; the number of polls without the \
                 timer has no effect",
        figure_from: COMMIT,
        check: Check::Device(defer),
        why: "napi_defer_hard_irqs allows empty polls, and the timer gro_flush_timeout runs them. Without the \
              timer the interrupt is enabled at once, as if nothing were set. The timer alone only makes GRO hold \
              packets (gro-flush-timeout).",
        mechanism: "napi_complete_done (net/core/dev.c) keeps the interrupt masked while defer_hard_irqs_count is \
                    above 0. It arms the timer that polls again only when gro_flush_timeout is set.",
        not_when: "latency of single packets matters: each may wait for the timer",
        side_effects: "a lone packet waits up to gro_flush_timeout; some CPU for the empty polls",
        set_now: "echo 10 > /sys/class/net/DEV/napi_defer_hard_irqs; \
                  echo 20000 > /sys/class/net/DEV/gro_flush_timeout (ns)",
        persist: "a udev rule for the device",
        undo: "restore both previous values; 0 in both is off",
        verify: "interrupts per second of the queue fall in /proc/interrupts under the same load",
        since: "5.8; per NAPI 6.13",
        sources: &[NAPI, COMMIT],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "gro-flush-timeout",
        what: "Is the GRO timer short enough for latency (at most a round trip in a rack)?",
        applies: "devices with NAPI that are up",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Info),
        size: Tens,
        effect: "delays a lone packet by up to its value",
        check: Check::Device(flush),
        why: "GRO holds packets until the timer expires or enough packets came. A lone packet waits for the timer.",
        mechanism: "napi_complete_done arms a timer of gro_flush_timeout ns; napi_gro_flush then passes older \
                    packets to the stack. 0 flushes at the end of each poll.",
        not_when: "the host is for bulk transfer; or busy polling with prefer_busy_poll uses the timer as a \
                   safeguard",
        side_effects: "a smaller value gives smaller GRO packets: more CPU time for bulk TCP",
        set_now: "echo 20000 > /sys/class/net/DEV/gro_flush_timeout, or 0",
        persist: "a udev rule for the device",
        verify: "cat /sys/class/net/DEV/gro_flush_timeout; round-trip times of single packets",
        since: "3.19; per NAPI 6.13",
        sources: &[NAPI, "kernel: net/core/dev.c napi_complete_done"],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "gro-normal-batch",
        what: "Is GRO's batch of unmerged packets at a sensible size?",
        applies: "Linux 5.4 and later",
        weight: Weight::by_goal().when(Latency, Info).when(Throughput, Info),
        check: Check::Host(batch),
        why: "GRO passes packets that it does not merge to the stack in lists. Instruction caches stay warm, but \
              the first packet of a list waits for the last.",
        mechanism: "gro_normal_one (include/net/gro.h) passes the list up at gro_normal_batch packets, \
                    napi_complete_done at the end of the poll.",
        not_when: "forwarding small packets at high rates may gain from 16 and more",
        side_effects: "larger: first packets wait longer; 1: no lists",
        set_now: "sysctl -w net.core.gro_normal_batch=8",
        persist: "/etc/sysctl.d/",
        verify: "sysctl net.core.gro_normal_batch",
        since: "5.4",
        sources: &[
            "kernel: include/net/gro.h gro_normal_one",
            "kernel commit 323ebb61e32b (gro_normal_batch)",
        ],
        ..Rule::judge(Area::Napi)
    },
    Rule {
        id: "irq-suspend-timeout",
        what: "Are interrupts suspended while an application polls and finds data?",
        applies: "devices whose NAPI instances can be read (6.13)",
        check: Check::Nic(suspend),
        why: "With suspension a polling application gets its packets without interrupts. When it stops polling, \
              interrupts resume at once.",
        mechanism: "ep_suspend_napi_irqs (fs/eventpoll.c, since 6.13) masks the interrupt for irq-suspend-timeout ns when \
                    epoll_wait found data and prefer_busy_poll is set.",
        not_when: "no program uses epoll busy polling: then it has no effect",
        side_effects: "the application has to cooperate (EPIOCSPARAMS, 6.9)",
        set_now: "rxpath tune plan --set DEV/napi-0/irq-suspend-timeout=20000000 (ns), for each receive queue that a program polls",
        persist: "a unit that runs after the device is up: the setting is lost with the NAPI instance",
        undo: VALUE_BACK,
        verify: "the netdev family's napi-get shows irq-suspend-timeout",
        since: "6.13",
        sources: &[NAPI, "kernel: fs/eventpoll.c ep_suspend_napi_irqs"],
        ..Rule::record(Area::Napi)
    },
    Rule {
        id: "napi-id-map",
        what: "Does the driver report which NAPI instance and interrupt serve each queue?",
        applies: "NICs that are up",
        check: Check::Nic(linked),
        why: "If it does not, only the interrupt's name links it to a queue.",
        mechanism: "netif_queue_set_napi and netif_napi_set_irq (net/core/dev.c) are called by the driver.",
        verify: "rxpath check --queues",
        since: "6.8",
        sources: &["kernel: Documentation/netlink/specs/netdev.yaml, queue-get and napi-get"],
        ..Rule::record(Area::Napi)
    },
];

fn halves(device: &Device) -> Result<(u32, u64), Gap> {
    let defer = *(&device.sysfs.napi_defer_hard_irqs).known()?;
    Ok((defer, *(&device.sysfs.gro_flush_timeout_ns).known()?))
}

fn defer(_: &Ask<'_>, device: &Device) -> Checked {
    if device.is_loopback() || !device.is_up() {
        return Answer::silent("loopback or down");
    }
    let (defer, flush) = halves(device)?;
    match (defer, flush) {
        (0, _) => Answer::fine("hardware interrupts are not deferred"),
        (defer, 0) => Answer::found(
            format!("napi_defer_hard_irqs {defer}, gro_flush_timeout 0"),
            "a timer as well, or 0 in both",
            "without the timer the setting has no effect",
        )
        .change(Set::new(Knob::path(&device.path("gro_flush_timeout")), 20_000)),
        (defer, flush) => Answer::fine(format!("{defer} empty polls, {flush} ns apart")),
    }
}

fn flush(_: &Ask<'_>, device: &Device) -> Checked {
    if device.is_loopback() || !device.is_up() {
        return Answer::silent("loopback or down");
    }
    let (_, flush) = halves(device)?;
    if flush <= LONG_NS {
        return Answer::fine(format!("{flush} ns"));
    }
    Answer::found(
        format!("gro_flush_timeout {flush} ns"),
        format!("{LONG_NS} ns or less"),
        "a lone packet waits that long",
    )
    .change(Set::new(Knob::path(&device.path("gro_flush_timeout")), 20_000))
}

fn batch(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.gro_normal_batch").known()?;
    match (now, ask.goal) {
        (..8, Some(Latency)) | (8, _) => Answer::fine(now.to_string()),
        (9..=64, goal) if goal != Some(Latency) => Answer::fine(now.to_string()),
        (_, Some(Latency)) => Answer::found(
            now.to_string(),
            "8 or less",
            "the first packet of a list waits for the last",
        )
        .change(Set::new(Knob::sysctl("net.core.gro_normal_batch"), 8)),
        _ => Answer::found(now.to_string(), "8 to 64", "the kernel's default is 8")
            .change(Set::new(Knob::sysctl("net.core.gro_normal_batch"), 8)),
    }
}

fn suspend(_: &Ask<'_>, device: &Device) -> Checked {
    let napis = (&device.nic.napis).known()?;
    let set = napis.iter().filter(|napi| napi.irq_suspend_timeout_ns.is_some_and(|ns| ns > 0));
    Answer::recorded(format!("{} of {} NAPI instances", set.count(), napis.len()))
}

fn linked(_: &Ask<'_>, device: &Device) -> Checked {
    let queues = (&device.nic.queues).known()?;
    let napis = (&device.nic.napis).known()?;
    let with_napi = queues.iter().filter(|queue| queue.napi_id.is_some()).count();
    let with_irq = napis.iter().filter(|napi| napi.irq.is_some()).count();
    Answer::recorded(format!(
        "{with_napi} of {} queues have a NAPI, {with_irq} of {} NAPI instances an interrupt",
        queues.len(),
        napis.len()
    ))
}
