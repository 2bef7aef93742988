//! How many receive queues there are.

use super::rings::{MUCH_RATIO, lost};
use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("channels-combined", Check::Nic(combined)), ("channels-vs-cpus", Check::Nic(too_many))];

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
