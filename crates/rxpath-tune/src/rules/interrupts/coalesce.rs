//! How long the NIC delays its interrupt.

use crate::prelude::*;

const SET: &str = "ethtool -C DEV adaptive-rx off rx-usecs N";
const LINK_FILE: &str = "systemd .link: RxCoalesceSec=, UseAdaptiveRxCoalesce=; or a udev rule";
const HEADER: &str =
    "kernel: Documentation/networking/ethtool-netlink.rst, COALESCE_GET and COALESCE_SET";

/// The largest delay of a lone packet that fits the latency goal: common drivers use it as the smallest delay that
/// still avoids an interrupt for each packet.
const LATENCY_USECS: u32 = 8;

/// Above this link rate, in Mb/s, a CPU cannot serve an interrupt for each packet.
const FAST_MBPS: i64 = 10_000;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "irq-coalesce-rx-usecs",
        what: "Does the receive interrupt delay fit the goal?",
        applies: "NICs that are up and show rx-usecs while adaptive moderation is off",
        weight: Weight::by_goal().when(Latency, Warn).when(Throughput, Info).when(Fairness, Info),
        size: Tens,
        effect: "from 29.16 to 24.56 us per HTTP request on one connection with rx-usecs 0 instead of 1 (on ixgbe, \
                 1 lets the driver choose the delay); no difference at 100 connections",
        figure_from: "M. Honda, Is your network stack set up correctly?, 2018",
        check: Check::Nic(rx_usecs),
        why: "A packet that arrives on an idle NIC waits this long for its interrupt. The delay lets more packets \
              share one interrupt.",
        mechanism: "Most NICs start a timer with the first packet and raise their interrupt when it expires. \
                    Intel's ITR counts from the last interrupt, so a packet after a pause does not wait. Under \
                    load NAPI keeps interrupts masked (napi_schedule, net/core/dev.c), so the delay applies only \
                    on a NIC that was idle.",
        not_when: "at high load NAPI polls and the delay has no effect; or CPU time matters more than the latency \
                   of a lone packet",
        side_effects: "with 0 each packet of a slow flow raises an interrupt: more CPU time in interrupts",
        set_now: SET,
        persist: LINK_FILE,
        verify: "ethtool -c DEV shows the value (drivers round it); interrupts per second in /proc/interrupts \
                 under a slow flow",
        since: "2.4; over netlink 5.7",
        sources: &[
            HEADER,
            "M. Honda, Is your network stack set up correctly?, Linux Advent Calendar 2018",
        ],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "irq-coalesce-rx-frames",
        what: "Does a frame limit of 1 defeat the receive interrupt delay?",
        applies: "NICs that are up, have a delay and show rx-frames",
        weight: Weight::by_goal().when(Throughput, Warn).when(Fairness, Warn),
        size: Tens,
        effect: "with a limit of 1 each packet raises its interrupt",
        check: Check::Nic(rx_frames),
        why: "The NIC raises the interrupt after rx-usecs or after rx-frames packets, whichever is first. A limit \
              of 1 makes the delay useless.",
        mechanism: "The NIC counts packets since the last interrupt; the first limit reached raises it.",
        not_when: "latency is the goal: then 1 is right",
        side_effects: "none except the requested delay",
        set_now: "ethtool -C DEV rx-frames 32",
        persist: "systemd .link: RxMaxCoalescedFrames=; or a udev rule",
        verify: "ethtool -c DEV; many drivers reject it (EINVAL), and then only the delay applies",
        since: "2.4; over netlink 5.7",
        sources: &[HEADER],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "irq-coalesce-adaptive",
        what: "Is adaptive interrupt moderation off?",
        applies: "NICs that are up and report adaptive-rx",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Warn),
        check: Check::Nic(adaptive),
        why: "The driver changes the delay with recent traffic. The same load then gives different times in two \
              runs, depending on earlier traffic.",
        mechanism: "net_dim (lib/dim/net_dim.c) samples packets, bytes and events and steps through a profile of \
                    delays; Intel's older drivers use their own algorithm. Meanwhile rx-usecs shows the stored \
                    value or the current delay, depending on the driver.",
        not_when: "throughput or CPU time is the goal and the load varies much: adaptive is then good",
        side_effects: "a fixed delay fits one load only, and the stored value may be long: set rx-usecs too",
        set_now: "ethtool -C DEV adaptive-rx off; then set rx-usecs",
        persist: LINK_FILE,
        verify: "ethtool -c DEV: Adaptive RX: off. Check it: some drivers accept the setting and change nothing",
        since: "2.4; over netlink 5.7",
        sources: &[
            "kernel: lib/dim/net_dim.c",
            "kernel: Documentation/networking/net_dim.rst",
            HEADER,
        ],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "irq-coalesce-tx-usecs",
        what: "Do transmit completions wait too long on shared interrupts?",
        applies: "NICs that are up, have combined channels and show tx-usecs",
        weight: Weight::by_goal().when(Latency, Info),
        check: Check::Nic(tx_usecs),
        why: "On combined channels one interrupt serves both directions. A long transmit delay holds the memory \
              of sent packets and, with byte queue limits, delays the next packets.",
        mechanism: "The completion frees the packet and calls netdev_tx_completed_queue \
                    (include/linux/netdevice.h), which lets the queue continue.",
        not_when: "throughput is the goal: fewer completion interrupts cost less",
        side_effects: "more interrupts; some drivers couple it to the receive delay",
        set_now: "ethtool -C DEV tx-usecs 8",
        persist: "systemd .link: TxCoalesceSec=; or a udev rule",
        verify: "ethtool -c DEV",
        since: "2.4; over netlink 5.7",
        sources: &[HEADER, "kernel: lib/dynamic_queue_limits.c"],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "irq-coalesce-per-queue",
        what: "Do all receive queues have the same interrupt delay?",
        applies: "NICs that are up and report coalescing per queue",
        weight: Weight::always(Info).when(Benchmark, Warn),
        check: Check::Nic(per_queue),
        why: "A queue with a different delay gives its flows different latency. `ethtool -c` shows one value for \
              all queues; with many drivers it is the value of the first queue.",
        mechanism: "ETHTOOL_PERQUEUE with ETHTOOL_GCOALESCE (net/ethtool/ioctl.c ethtool_get_per_queue_coalesce).",
        not_when: "one queue serves a dedicated application by design",
        side_effects: "none except the requested delay",
        set_now: "ethtool -Q DEV queue_mask MASK --coalesce rx-usecs N (-C sets all of them)",
        persist: "a udev rule",
        undo: "restore the previous values of each queue",
        verify: "ethtool -Q DEV --show-coalesce",
        since: "4.6",
        sources: &["kernel: net/ethtool/ioctl.c ethtool_get_per_queue_coalesce", HEADER],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "irq-coalesce-cqe-mode",
        what: "Does the interrupt timer restart with each completion?",
        applies: "NICs whose driver reports use-cqe-mode-rx (mlx5 and few others)",
        weight: Weight::by_goal().when(Latency, Info),
        check: Check::Nic(cqe_mode),
        why: "With the timer per completion, each further packet postpones the interrupt until the frame limit is \
              reached. With the timer per event, the first packet's wait is bounded.",
        mechanism: "ETHTOOL_A_COALESCE_USE_CQE_MODE_RX; mlx5 sets the period mode of the completion queue \
                    (drivers/net/ethernet/mellanox/mlx5/core/en_ethtool.c).",
        not_when: "throughput is the goal: a timer per completion batches more",
        side_effects: "more interrupts under load",
        set_now: "ethtool -C DEV cqe-mode-rx off",
        persist: "a udev rule",
        verify: "ethtool -c DEV: CQE mode RX",
        since: "5.15",
        sources: &[HEADER],
        ..Rule::judge(Area::Interrupts)
    },
];

fn rx_usecs(ask: &Ask<'_>, device: &Device) -> Checked {
    let coalesce = (&device.nic.coalesce).known()?;
    if coalesce.adaptive_rx == Some(true) {
        return Answer::silent("adaptive moderation is on: the driver chooses the delay");
    }
    let usecs = coalesce.rx_usecs.or_gap("rx-usecs")?;
    let knob = Knob::part(&device.name, Group::Coalesce, "rx-usecs");
    let observed = format!("rx-usecs is {usecs}, adaptive off");
    match ask.goal {
        Some(Latency) if usecs > LATENCY_USECS => Answer::found(
            observed,
            format!("0 to {LATENCY_USECS}"),
            format!(
                "a packet that arrives on an idle NIC waits up to {usecs} us for its interrupt"
            ),
        )
        .change(Set::new(knob, 0)),
        Some(Throughput | Fairness) if usecs == 0 && is_fast(device) => Answer::found(
            observed,
            "30 to 100, or adaptive",
            "below the load at which NAPI polls, each packet costs an interrupt",
        )
        .change(Set::new(knob, 50)),
        _ => Answer::fine(observed),
    }
}

fn is_fast(device: &Device) -> bool {
    device.sysfs.speed_mbps.value().is_some_and(|speed| *speed >= FAST_MBPS)
}

fn rx_frames(_: &Ask<'_>, device: &Device) -> Checked {
    let coalesce = (&device.nic.coalesce).known()?;
    let frames = coalesce.rx_max_frames.or_gap("rx-frames")?;
    let usecs = coalesce.rx_usecs.or_gap("rx-usecs")?;
    if usecs == 0 || coalesce.adaptive_rx == Some(true) {
        return Answer::silent("no fixed delay that a frame limit could defeat");
    }
    if frames != 1 {
        return Answer::fine(format!("rx-frames is {frames} with rx-usecs {usecs}"));
    }
    let knob = Knob::part(&device.name, Group::Coalesce, "rx-frames");
    Answer::found(
        format!("rx-frames is 1 with rx-usecs {usecs}"),
        "32 or more, or 0 where the driver takes it as no limit",
        "the frame limit ends the delay with the first packet",
    )
    .change(Set::new(knob, 32))
}

fn adaptive(ask: &Ask<'_>, device: &Device) -> Checked {
    let coalesce = (&device.nic.coalesce).known()?;
    if !coalesce.adaptive_rx.or_gap("adaptive-rx")? {
        return Answer::fine("off");
    }
    let knob = |which: &str| Knob::part(&device.name, Group::Coalesce, which);
    // The stored delay replaces the driver's choice, and may be longer than the driver ever chose.
    let is_long = coalesce.rx_usecs.is_some_and(|usecs| usecs > LATENCY_USECS);
    let delay = (is_long && ask.goal == Some(Latency)).then(|| Set::new(knob("rx-usecs"), 0));
    Answer::found(
        "adaptive-rx is on",
        "off, with a fixed rx-usecs",
        "the delay depends on earlier traffic",
    )
    .change(Set::switch(knob("adaptive-rx"), false))
    .changes(delay)
}

fn tx_usecs(_: &Ask<'_>, device: &Device) -> Checked {
    let coalesce = (&device.nic.coalesce).known()?;
    let combined = (&device.nic.channels).known()?.combined.now.unwrap_or(0);
    if combined == 0 {
        return Answer::silent("no combined channels: transmit has separate interrupts");
    }
    if coalesce.adaptive_tx == Some(true) {
        return Answer::silent("adaptive moderation is on: the driver chooses the delay");
    }
    let usecs = coalesce.tx_usecs.or_gap("tx-usecs")?;
    if usecs <= 64 {
        return Answer::fine(format!("tx-usecs is {usecs}"));
    }
    let knob = Knob::part(&device.name, Group::Coalesce, "tx-usecs");
    Answer::found(
        format!("tx-usecs is {usecs} on combined channels"),
        "64 or less",
        "sent packets wait for their completion, and so do the packets queued behind them",
    )
    .change(Set::new(knob, 8))
}

fn cqe_mode(_: &Ask<'_>, device: &Device) -> Checked {
    let on = (&device.nic.coalesce).known()?.cqe_mode_rx.or_gap("cqe-mode-rx")?;
    if !on {
        return Answer::fine("the timer runs per event");
    }
    let knob = Knob::part(&device.name, Group::Coalesce, "cqe-mode-rx");
    Answer::found("cqe-mode-rx is on", "off", "each further packet postpones the interrupt")
        .change(Set::switch(knob, false))
}

fn per_queue(_: &Ask<'_>, device: &Device) -> Checked {
    let queues = (&device.nic.queue_coalesce).known()?;
    let mut delays: Vec<u32> = queues.iter().filter_map(|queue| queue.rx_usecs).collect();
    let adaptive = queues.iter().any(|queue| queue.adaptive_rx == Some(true));
    if delays.len() < 2 || adaptive {
        return Answer::silent("one queue, or adaptive moderation: delays then differ by design");
    }
    delays.sort_unstable();
    let (least, most) = (delays[0], delays[delays.len() - 1]);
    if least == most {
        return Answer::fine(format!("rx-usecs is {least} on each of {} queues", delays.len()));
    }
    Answer::found(
        format!("rx-usecs is between {least} and {most} by queue"),
        "the same on all, unless a queue serves a dedicated application",
        "a flow's latency depends on its queue",
    )
    .advice(format!("ethtool -Q {} --show-coalesce shows each", device.name))
}
