//! Interrupt lines: vectors, threaded interrupts, irqbalance, and Energy-Efficient Ethernet.

use std::collections::BTreeSet;

use crate::prelude::*;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "irqbalance-running",
        what: "Does irqbalance move interrupts?",
        applies: "hosts whose processes are visible",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Warn),
        check: Check::Host(irqbalance),
        why: "irqbalance rewrites affinities every ten seconds by load. Pinned interrupts lose their CPU, and two \
              runs get different placements.",
        mechanism: "A daemon that reads /proc/interrupts and /proc/stat and writes /proc/irq/N/smp_affinity.",
        not_when: "fairness on a host with many devices: irqbalance exists to spread interrupts by load",
        side_effects: "stopping it does not restore the old masks; new devices stay on their first CPU",
        set_now: "systemctl stop irqbalance; or its option --banirq=N for each interrupt of the NIC, or IRQBALANCE_BANNED_CPULIST for CPUs",
        persist: "systemctl disable irqbalance; or the ban in /etc/default/irqbalance (Debian) or /etc/sysconfig/irqbalance (Fedora, RHEL)",
        undo: "systemctl enable --now irqbalance, after restoring each smp_affinity_list",
        verify: "pgrep irqbalance; /proc/irq/N/smp_affinity_list stays the same for a minute",
        since: "every kernel",
        sources: &[
            "https://github.com/haproxy/haproxy/issues/1194",
            "https://github.com/Irqbalance/irqbalance/issues/202 (bans that were ignored)",
        ],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "irq-threaded",
        what: "Does every interrupt wake a thread first (threadirqs)?",
        applies: "every host whose boot parameters can be read",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Warn),
        check: Check::Host(threaded),
        why: "With threadirqs each interrupt wakes a kernel thread that does the work: one more wake-up between \
              the wire and the softirq, delayed by the scheduler.",
        mechanism: "force_irqthreads (kernel/irq/manage.c) turns handlers into threads irq/N-name; \
                    PREEMPT_RT does it always.",
        not_when: "a real-time host: it needs threaded interrupts",
        side_effects: "tasks of higher priority can no longer preempt interrupt work",
        set_now: "only at boot: remove threadirqs from the kernel command line",
        persist: "the boot loader's configuration",
        undo: "put threadirqs back on the kernel command line",
        verify: "no kernel threads named irq/N-DEV",
        since: "2.6.39",
        sources: &[
            "kernel: Documentation/admin-guide/kernel-parameters.txt threadirqs",
            "kernel: kernel/irq/manage.c setup_forced_irqthreads",
        ],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "msix-vectors",
        what: "Does the NIC have an interrupt vector for each of its queues?",
        applies: "NICs that are up and whose interrupts are known",
        weight: Weight::always(Info).when(Throughput, Warn).when(Latency, Warn),
        size: Multiple,
        effect: "queues that share a vector share its CPU",
        check: Check::Nic(vectors),
        why: "Without MSI-X the NIC has one interrupt, often shared with other devices, and one CPU for all \
              queues. With too few vectors several queues share one.",
        mechanism: "pci_alloc_irq_vectors (drivers/pci/msi/api.c) gives a driver as many vectors as \
                    platform and device have; drivers fall back to fewer queues or to one shared line.",
        not_when: "a device that has one queue: one vector is all it can use",
        side_effects: "not changeable at runtime",
        set_now: "in a guest: give the device more vectors (QEMU: vectors=2*queues+2); on hardware: no pci=nomsi \
                  on the kernel command line, newer firmware",
        persist: "the hypervisor's or the boot loader's configuration",
        undo: "restore the old configuration",
        verify: "PCI-MSI (since 6.2 on x86 PCI-MSIX) in the device's lines of /proc/interrupts, one line for each queue",
        since: "2.6; pci_alloc_irq_vectors 4.8",
        sources: &["kernel: Documentation/PCI/msi-howto.rst"],
        ..Rule::judge(Area::Interrupts)
    },
    Rule {
        id: "eee",
        what: "Is Energy-Efficient Ethernet on, so that the link sleeps between packets?",
        applies: "NICs that are up and show EEE",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Warn),
        size: Percents,
        effect: "16.5 us to wake a 1000BASE-T link",
        figure_from: "IEEE 802.3az; Christensen et al., IEEE Communications Magazine 48(11), 2010",
        check: Check::Nic(eee),
        why: "An idle link goes to sleep, and the first packet after a pause waits until both ends are awake.",
        mechanism: "The MAC signals low-power idle; the peer must refresh and wake it before data (phylib: \
                    drivers/net/phy/phy.c phy_ethtool_set_eee).",
        not_when: "power matters more than tens of us on idle links",
        side_effects: "the link renegotiates: no link for seconds",
        set_now: "ethtool --set-eee DEV eee off",
        persist: "a udev rule or a oneshot unit",
        undo: "ethtool --set-eee DEV eee on, with the modes that were advertised before",
        verify: "ethtool --show-eee DEV: EEE status: disabled",
        since: "3.6; over netlink 5.7",
        sources: &[
            "kernel: Documentation/networking/ethtool-netlink.rst, EEE_GET",
            "IEEE 802.3az-2010",
        ],
        ..Rule::judge(Area::Interrupts)
    },
];

fn irqbalance(ask: &Ask<'_>) -> Checked {
    let processes = (&ask.facts.processes).known()?;
    let Some(pid) = processes.of("irqbalance").first().copied() else {
        processes.complete()?;
        return Answer::fine("irqbalance does not run");
    };
    Answer::found(
        format!("irqbalance runs (pid {pid})"),
        "stopped, or banned from the NIC's interrupts and the measured CPUs",
        "it moves interrupts by load every ten seconds",
    )
    .advice(
        "systemctl stop irqbalance, after noting every smp_affinity_list: it does not restore them",
    )
}

fn threaded(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.cmdline).known()?;
    if ask.facts.option("PREEMPT_RT").value().is_some_and(|value| value == "y") {
        return Answer::silent("a PREEMPT_RT kernel threads every interrupt by design");
    }
    if ask.facts.kernel.parameter("threadirqs").is_none() {
        return Answer::fine("interrupts are not threaded");
    }
    Answer::found(
        "threadirqs is on the kernel command line",
        "without it, unless this is a real-time host",
        "one more wake-up between the interrupt and the softirq",
    )
    .advice("remove threadirqs from the boot loader's configuration")
}

fn vectors(_: &Ask<'_>, device: &Device) -> Checked {
    let irqs = (&device.irqs).known()?;
    let queues = device.sysfs.rx_queues.len();
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
        (Some(true), _) => Answer::found(
            "EEE is on",
            "off",
            "the first packet after a pause waits for the link to wake",
        )
        .change(Set::switch(Knob::part(&device.name, Group::Eee, "enabled"), false)),
        (Some(false), _) => Answer::fine("off"),
        (None, _) => Answer::silent("the driver does not say whether it is on"),
    }
}
