//! Which CPU handles each queue's interrupt.

use std::collections::BTreeSet;

use crate::facts::{Irq, Serving};
use crate::prelude::*;
use rxpath_core::{CpuList, Fact};

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("irq-affinity", Check::Nic(one_cpu)),
    ("irq-numa-local", Check::Nic(numa)),
    ("irq-isolated-cpus", Check::Nic(isolated)),
    ("irq-affinity-hint", Check::Nic(hints)),
];

/// The receive interrupts with their CPUs: the effective CPUs, or the allowed CPUs if an interrupt is not active or the
/// kernel is older than 4.13.
fn placed(ask: &Ask<'_>, device: &Device) -> Result<Vec<(Irq, Vec<u32>)>, Gap> {
    let irqs = device.receiving_irqs().known()?;
    let mut all = Vec::new();
    for irq in irqs {
        let list = match &irq.masks.effective_cpus {
            Fact::Ok { value } if !value.is_empty() => value,
            Fact::Ok { .. } => (&irq.masks.allowed_cpus).known()?,
            _ if ask.facts.kernel.is_before(4, 13) => (&irq.masks.allowed_cpus).known()?,
            gap => gap.known()?,
        };
        let cpus = list.as_slice().to_vec();
        all.push((irq, cpus));
    }
    Ok(all)
}

/// The change that moves an interrupt to these CPUs.
fn pinned(irq: &Irq, cpus: impl ToString) -> Set {
    Set::new(Knob::path(&format!("/proc/irq/{}/smp_affinity_list", irq.number)), cpus)
}

/// The changes that move these interrupts, without interrupts that already go to their CPU.
fn moves(serving: &Serving, placed: &[(Irq, Vec<u32>)]) -> Vec<Set> {
    let goes = serving.spread(placed);
    let moved = placed.iter().zip(goes).filter(|((_, at), cpu)| at.as_slice() != [*cpu]);
    moved.map(|((irq, _), cpu)| pinned(irq, cpu)).collect()
}

/// The serving CPUs in words: how many, and which.
fn in_words(serving: &Serving) -> String {
    let mut cpus = serving.cpus.clone();
    cpus.sort_unstable();
    let node = serving.node.map_or_else(String::new, |node| format!(" of node {node}"));
    let others = if serving.kept_free.is_empty() { "" } else { ", which are not isolated" };
    format!("CPUs {}{node}{others}", CpuList(cpus))
}

fn one_cpu(ask: &Ask<'_>, device: &Device) -> Checked {
    let serving = ask.facts.serving(device)?;
    let placed = placed(ask, device)?;
    if placed.len() < 2 || serving.cpus.len() < 2 {
        return Answer::silent("fewer than two receive interrupts or CPUs that may serve them");
    }
    let bound = placed.iter().filter(|(_, cpus)| cpus.len() == 1).map(|(_, cpus)| cpus[0]);
    let fair = serving.fair(placed.len());
    let Some((cpu, most)) = tally(bound).into_iter().max_by_key(|(_, count)| *count) else {
        return Answer::fine("no interrupt is bound to one CPU");
    };
    if most <= fair {
        return Answer::fine(format!(
            "{} receive interrupts, at most {most} on a CPU",
            placed.len()
        ));
    }
    Answer::found(
        format!("{most} of {} receive interrupts go to CPU {cpu}", placed.len()),
        format!("at most {fair} on each of {}", in_words(&serving)),
        "queues that share a CPU are no faster than one queue",
    )
    .changes(moves(&serving, &placed))
}

fn isolated(ask: &Ask<'_>, device: &Device) -> Checked {
    let serving = ask.facts.serving(device)?;
    if serving.kept_free.is_empty() {
        return Answer::silent("no CPU is isolated or without a tick");
    }
    if serving.cpus.iter().any(|cpu| serving.kept_free.contains(cpu)) {
        return Answer::silent("every online CPU is isolated or without a tick");
    }
    let placed = placed(ask, device)?;
    let on: BTreeSet<u32> = placed
        .iter()
        .filter(|(_, cpus)| {
            !cpus.is_empty() && cpus.iter().all(|cpu| serving.kept_free.contains(cpu))
        })
        .flat_map(|(_, cpus)| cpus.iter().copied())
        .collect();
    if on.is_empty() {
        return Answer::fine(format!(
            "{} receive interrupts, none on an isolated CPU",
            placed.len()
        ));
    }
    let count = placed.iter().filter(|(_, cpus)| cpus.iter().any(|cpu| on.contains(cpu))).count();
    Answer::found(
        format!(
            "{count} of {} receive interrupts go to isolated CPUs {}",
            placed.len(),
            CpuList(on.into_iter().collect())
        ),
        in_words(&serving),
        "interrupts and softirqs take time from the task that the CPU was isolated for",
    )
    .changes(moves(&serving, &placed))
}

fn numa(ask: &Ask<'_>, device: &Device) -> Checked {
    let Ok(node) = u32::try_from(*(&device.sysfs.steering.numa_node).known()?) else {
        return Answer::silent("the platform does not report the NIC's node (-1)");
    };
    let topology = (&ask.facts.topology).known()?;
    let of = |cpu: u32| topology.cpu(cpu).and_then(|cpu| cpu.node.value().copied());
    let serving = ask.facts.serving(device)?;
    let elsewhere = topology.online.as_slice().iter().any(|cpu| of(*cpu) != Some(node));
    if serving.node.is_none() || !elsewhere {
        return Answer::silent("one NUMA node, or none of the NIC's CPUs may serve it");
    }
    let placed = placed(ask, device)?;
    let far = placed
        .iter()
        .filter(|(_, cpus)| !cpus.is_empty() && cpus.iter().all(|cpu| of(*cpu) != Some(node)))
        .count();
    if far == 0 {
        return Answer::fine(format!(
            "all {} receive interrupts can reach node {node}",
            placed.len()
        ));
    }
    Answer::found(
        format!("{far} of {} receive interrupts go to CPUs outside node {node}", placed.len()),
        format!("{}, which the NIC is attached to", in_words(&serving)),
        "packets are written to memory of the NIC's node and read over the link between CPU sockets",
    )
    .changes(moves(&serving, &placed))
}

fn hints(ask: &Ask<'_>, device: &Device) -> Checked {
    let placed = placed(ask, device)?;
    for (irq, _) in &placed {
        (&irq.masks.hint_cpus).known()?;
    }
    // A driver knows its node but not the isolated CPUs: only suggested CPUs that may serve are considered.
    let serving = ask.facts.serving(device)?;
    let may = |list: &CpuList| {
        let cpus = list.as_slice().iter().copied().filter(|cpu| serving.cpus.contains(cpu));
        Some(CpuList(cpus.collect())).filter(|cpus| !cpus.is_empty())
    };
    let hinted: Vec<_> = placed
        .iter()
        .filter_map(|(irq, cpus)| Some((irq, cpus, may(irq.masks.hint_cpus.value()?)?)))
        .collect();
    if hinted.is_empty() {
        return Answer::silent("the driver suggests no CPU that may serve it");
    }
    let astray = hinted
        .iter()
        .filter(|(_, cpus, hint)| !cpus.iter().any(|cpu| hint.as_slice().contains(cpu)))
        .count();
    if astray == 0 {
        return Answer::fine(format!("{} receive interrupts as hinted", hinted.len()));
    }
    let changes = hinted.iter().map(|(irq, _, hint)| pinned(irq, hint));
    Answer::observed(format!("{astray} of {} hinted receive interrupts go elsewhere", hinted.len()))
        .changes(changes)
}
