//! Interrupts deferred by software, and packets batched before the stack.

use crate::prelude::*;

/// A lone packet should not wait longer than this, in ns.
const LONG_NS: u64 = 200_000;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("napi-defer-hard-irqs", Check::Active(defer)),
    ("gro-flush-timeout", Check::Active(flush)),
    ("gro-normal-batch", Check::Host(batch)),
    ("irq-suspend-timeout", Check::Nic(suspend)),
    ("napi-id-map", Check::Nic(linked)),
];

fn halves(device: &Device) -> Result<(u32, u64), Gap> {
    let defer = *(&device.sysfs.napi_defer_hard_irqs).known()?;
    Ok((defer, *(&device.sysfs.gro_flush_timeout_ns).known()?))
}

fn defer(_: &Ask<'_>, device: &Device) -> Checked {
    let (defer, flush) = halves(device)?;
    match (defer, flush) {
        (0, _) => Answer::fine("hardware interrupts are not deferred"),
        (defer, 0) => {
            Answer::observed(format!("napi_defer_hard_irqs {defer}, gro_flush_timeout 0"))
                .change(Set::new(Knob::path(&device.path("gro_flush_timeout")), 20_000))
        }
        (defer, flush) => Answer::fine(format!("{defer} empty polls, {flush} ns apart")),
    }
}

fn flush(_: &Ask<'_>, device: &Device) -> Checked {
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
