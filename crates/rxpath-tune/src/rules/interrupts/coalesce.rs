//! How long the NIC delays its interrupt.

use crate::prelude::*;

/// The largest delay of a lone packet that fits the latency goal: common drivers use it as the smallest delay that
/// still avoids an interrupt for each packet.
const LATENCY_USECS: u32 = 8;

/// Above this link rate, in Mb/s, a CPU cannot serve an interrupt for each packet.
const FAST_MBPS: i64 = 10_000;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("irq-coalesce-rx-usecs", Check::Nic(rx_usecs)),
    ("irq-coalesce-rx-frames", Check::Nic(rx_frames)),
    ("irq-coalesce-adaptive", Check::Nic(adaptive)),
    ("irq-coalesce-tx-usecs", Check::Nic(tx_usecs)),
    ("irq-coalesce-per-queue", Check::Nic(per_queue)),
    ("irq-coalesce-cqe-mode", Check::Nic(cqe_mode)),
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
    Answer::observed(format!("rx-frames is 1 with rx-usecs {usecs}")).change(Set::new(knob, 32))
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
    Answer::observed("adaptive-rx is on")
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
    Answer::observed(format!("tx-usecs is {usecs} on combined channels")).change(Set::new(knob, 8))
}

fn cqe_mode(_: &Ask<'_>, device: &Device) -> Checked {
    let on = (&device.nic.coalesce).known()?.cqe_mode_rx.or_gap("cqe-mode-rx")?;
    if !on {
        return Answer::fine("the timer runs per event");
    }
    let knob = Knob::part(&device.name, Group::Coalesce, "cqe-mode-rx");
    Answer::observed("cqe-mode-rx is on").change(Set::switch(knob, false))
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
    Answer::observed(format!("rx-usecs is between {least} and {most} by queue"))
        .advice(format!("ethtool -Q {} --show-coalesce shows each", device.name))
}
