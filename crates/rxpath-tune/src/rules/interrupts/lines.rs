//! Interrupt lines: vectors, threaded interrupts, irqbalance, and Energy-Efficient Ethernet.

use std::collections::BTreeSet;

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("irqbalance-running", Check::Host(irqbalance)),
    ("irq-threaded", Check::Host(threaded)),
    ("msix-vectors", Check::Nic(vectors)),
    ("eee", Check::Nic(eee)),
];

fn irqbalance(ask: &Ask<'_>) -> Checked {
    let processes = (&ask.facts.processes).known()?;
    let Some(pid) = processes.of("irqbalance").first().copied() else {
        processes.complete()?;
        return Answer::fine("irqbalance does not run");
    };
    Answer::observed(format!("irqbalance runs (pid {pid})")).advice(
        "systemctl stop irqbalance, after noting every smp_affinity_list: it does not restore them",
    )
}

fn threaded(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.cmdline).known()?;
    if ask.facts.has_option("PREEMPT_RT") {
        return Answer::silent("a PREEMPT_RT kernel threads every interrupt by design");
    }
    if ask.facts.kernel.parameter("threadirqs").is_none() {
        return Answer::fine("interrupts are not threaded");
    }
    Answer::observed("threadirqs is on the kernel command line")
        .advice("remove threadirqs from the boot loader's configuration")
}

fn vectors(_: &Ask<'_>, device: &Device) -> Checked {
    let irqs = (&device.irqs).known()?;
    let queues = device.sysfs.steering.rx_queues.len();
    if queues < 2 {
        return Answer::silent("one receive queue");
    }
    if irqs.iter().any(|irq| irq.about.contains("-fasteoi")) && irqs.len() == 1 {
        return Answer::found(
            format!("{queues} receive queues on one line interrupt ({})", irqs[0].about),
            "MSI-X with a vector for each queue",
            "all queues are handled on one CPU",
        )
        .advice("not changeable at runtime: see set now of `rxpath explain msix-vectors`");
    }
    let rows = &device.queues.rows;
    let vectors: BTreeSet<u32> =
        rows.iter().filter_map(|row| row.irq.value()).map(|irq| irq.irq).collect();
    let (receiving, used) = (vectors.len(), rows.len());
    if receiving >= used {
        return Answer::fine(format!("{receiving} receive vectors for {used} queues"));
    }
    if let (0, Some(row)) = (receiving, rows.first()) {
        (&row.irq).known()?;
    }
    Answer::found(
        format!("{receiving} receive vectors for {used} queues in use"),
        "one for each queue",
        "queues that share a vector share a CPU",
    )
    .advice("not changeable at runtime: see set now of `rxpath explain msix-vectors`")
}

fn eee(_: &Ask<'_>, device: &Device) -> Checked {
    let eee = (&device.nic.eee).known()?;
    match (eee.enabled, eee.active) {
        (Some(true), Some(false)) => {
            Answer::fine("enabled, but the link partner does not support it")
        }
        (Some(true), _) => Answer::observed("EEE is on")
            .change(Set::switch(Knob::part(&device.name, Group::Eee, "enabled"), false)),
        (Some(false), _) => Answer::fine("off"),
        (None, _) => Answer::silent("the driver does not say whether it is on"),
    }
}
