//! RPS: software moves packets to other CPUs.

use std::collections::BTreeSet;

use rxpath_core::CpuList;

use super::channels::receiving;
use crate::facts::Serving;
use crate::prelude::*;

/// Kinds of devices whose packets the device below already steered to a CPU: `__netif_receive_skb_core` goes round
/// again with the upper device, behind `get_rps_cpu` (net/core/dev.c).
const BEHIND_RPS: [&str; 3] = ["bond", "team", "vlan"];

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("rps-cpus", Check::Nic(rps)), ("rps-mask", Check::Device(masks))];

/// One mask for all receive queues of the device.
fn set_all(device: &Device, mask: &str) -> Vec<Set> {
    let queues = device.sysfs.steering.rx_queues.iter();
    let paths = queues.map(|queue| device.path(&format!("queues/rx-{}/rps_cpus", queue.index)));
    paths.map(|path| Set::new(Knob::path(&path), mask)).collect()
}

/// Receive queues in use and at most: as sysfs shows them where the driver tells no channels.
fn queues(device: &Device) -> (usize, usize) {
    let shown = device.sysfs.steering.rx_queues.len();
    receiving(device).map_or((shown, shown), |(now, max)| (now as usize, max as usize))
}

fn rps(ask: &Ask<'_>, device: &Device) -> Checked {
    let serving = ask.facts.serving(device)?;
    let cpus = serving.cpus.len();
    if cpus < 2 {
        return Answer::silent("one CPU may serve it");
    }
    let (queues, most) = queues(device);
    if device.has_rps() && queues >= cpus {
        return Answer::found(
            format!("RPS is on, next to {queues} hardware queues for {cpus} CPUs"),
            "off (masks of 0)",
            "every packet is moved once more, to a CPU that has its own queue",
        )
        .changes(set_all(device, "0"))
        .severity(Warn);
    }
    if !device.has_rps() && queues == 1 && ask.goal == Some(Throughput) {
        if most > 1 {
            return Answer::silent("the NIC has more queues to give: see channels-combined");
        }
        return Answer::found(
            format!("one receive queue, {cpus} CPUs, RPS off"),
            "a mask of the CPUs that may help",
            "one CPU does all receive work below the sockets",
        )
        .changes(set_all(device, &serving.mask()));
    }
    for queue in &device.sysfs.steering.rx_queues {
        (&queue.rps_cpus).known()?;
    }
    if device.sysfs.steering.rx_queues.is_empty() {
        return Err(Gap::Absent("no receive queue in sysfs".into()));
    }
    Answer::fine(format!("RPS {}, {queues} queues", if device.has_rps() { "on" } else { "off" }))
}

/// The fault of a device's masks, and why it matters.
fn wrong(ask: &Ask<'_>, masks: &[&CpuList], serving: &Serving) -> Result<Option<[String; 2]>, Gap> {
    let topology = (&ask.facts.topology).known()?;
    let online: BTreeSet<u32> = topology.online.as_slice().iter().copied().collect();
    let named: BTreeSet<u32> =
        masks.iter().flat_map(|mask| mask.as_slice().iter().copied()).collect();
    let gone: Vec<u32> = named.difference(&online).copied().collect();
    if masks.iter().any(|mask| mask.as_slice().iter().all(|cpu| !online.contains(cpu))) {
        return Ok(Some([
            format!("a mask names only CPUs that are offline ({})", CpuList(gone)),
            "RPS takes no CPU that is offline: these queues have none".into(),
        ]));
    }
    let kept: Vec<u32> = named.intersection(&serving.kept_free).copied().collect();
    if !kept.is_empty() {
        return Ok(Some([
            format!("the masks name isolated CPUs {}", CpuList(kept)),
            "softirqs take time from the tasks that these CPUs were isolated for".into(),
        ]));
    }
    let node = |cpu: u32| topology.cpu(cpu).and_then(|cpu| cpu.node.value().copied());
    if let Some(own) = serving.node
        && named.iter().all(|cpu| node(*cpu).is_some_and(|node| node != own))
    {
        return Ok(Some([
            format!(
                "the masks name only CPUs of another node than the NIC's ({})",
                CpuList(named.into_iter().collect())
            ),
            "each packet is read over the link between the CPU sockets".into(),
        ]));
    }
    let only = named.first().filter(|_| named.len() == 1 && masks.len() > 1);
    Ok(only.map(|cpu| {
        [
            format!("{} queues are sent to CPU {cpu} alone", masks.len()),
            "one CPU does the work that RSS had spread".into(),
        ]
    }))
}

fn masks(ask: &Ask<'_>, device: &Device) -> Checked {
    if !device.has_rps() {
        for queue in &device.sysfs.steering.rx_queues {
            (&queue.rps_cpus).known()?;
        }
        return Answer::silent("no RPS mask");
    }
    if let Some(kind) = device.link_kind().filter(|kind| BEHIND_RPS.contains(kind)) {
        return Answer::found(
            format!("an RPS mask on a {kind}"),
            "the mask on the devices below it",
            "its packets are steered before they reach this device: the mask has no effect",
        )
        .changes(set_all(device, "0"))
        .severity(Info);
    }
    let serving = ask.facts.serving(device)?;
    let set = device.sysfs.steering.rx_queues.iter().filter_map(|queue| queue.rps_cpus.value());
    let set: Vec<&CpuList> = set.filter(|mask| !mask.is_empty()).collect();
    let Some([observed, why]) = wrong(ask, &set, &serving)? else {
        return Answer::fine(format!("{} masks of CPUs that can help", set.len()));
    };
    // Several queues are spread by RSS: without a mask each is served where its interrupt goes.
    let mask = if queues(device).0 > 1 { "0".into() } else { serving.mask() };
    Answer::found(observed, "CPUs that are online, not isolated and near, or no mask", why)
        .changes(set_all(device, &mask))
}
