//! How the kernel was built and booted: settings that cannot change at runtime.

use super::power::CPU;
use crate::prelude::*;

const PARAMS: &str = "kernel: Documentation/admin-guide/kernel-parameters.txt";
const TALAWAH: &str = "talawah.io, Extreme HTTP Performance Tuning, 2021";

/// Options that multiply the cost of a packet.
const DEBUG: [&str; 6] = [
    "KASAN",
    "KCSAN",
    "PROVE_LOCKING",
    "DEBUG_KMEMLEAK",
    "SLUB_DEBUG_ON",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
];

/// Parameters that do the same at boot.
const STARTED: [&str; 4] = ["slub_debug", "slab_debug", "page_poison", "debug_pagealloc"];

/// Memory clearing: the build option and the boot parameter that overrides it (mm/mm_init.c `early_init_on_alloc`).
const CLEARED: [(&str, &str); 2] =
    [("INIT_ON_ALLOC_DEFAULT_ON", "init_on_alloc"), ("INIT_ON_FREE_DEFAULT_ON", "init_on_free")];

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "cpu-mitigations",
        what: "Which CPU vulnerability mitigations are active?",
        applies: "hosts that list CPU vulnerabilities",
        size: Tens,
        effect: "with the mitigations for Spectre, Meltdown, MDS and TAA off: from 347,000 to 446,000 HTTP \
                 requests/s (28 %) on one VM",
        figure_from: TALAWAH,
        check: Check::Host(mitigations),
        why: "Mitigations cost time at each system call and interrupt. They differ between hosts that look \
              identical.",
        mechanism: "arch/x86/kernel/cpu/bugs.c chooses them by CPU model and boot parameters.",
        not_when: "always: mitigations are a security setting. rxpath records them and never changes them",
        side_effects: "without them other tenants and programs may read the host's memory",
        set_now: "not offered",
        persist: "not offered",
        verify: "grep . /sys/devices/system/cpu/vulnerabilities/*",
        since: "4.15",
        sources: &["kernel: Documentation/admin-guide/hw-vuln/index.rst", TALAWAH],
        ..Rule::record(Area::Cpu)
    },
    Rule {
        id: "isolcpus-nohz-full",
        what: "Are isolated CPUs also free of the tick and RCU callbacks?",
        applies: "hosts with isolated CPUs",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Warn),
        check: Check::Host(isolation),
        why: "isolcpus alone keeps tasks away; the tick and RCU callbacks still interrupt. Partial isolation \
              looks complete until tail latency is measured.",
        mechanism: "isolcpus= removes CPUs from the scheduling domains, nohz_full= stops the tick while one task \
                    runs, rcu_nocbs= offloads callbacks (nohz_full implies it).",
        not_when: "a poller that tolerates the tick",
        side_effects: "boot only; time accounting costs more at each system call on nohz_full CPUs",
        set_now: "not possible at runtime",
        persist: "kernel parameters isolcpus=, nohz_full= and rcu_nocbs= with the same list",
        undo: "remove the parameters and reboot",
        verify: "cat /sys/devices/system/cpu/{isolated,nohz_full}",
        since: "3.10",
        sources: &["kernel: Documentation/timers/no_hz.rst", PARAMS],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "preempt-model",
        what: "Which preemption model does the kernel use?",
        applies: "hosts that show it (debugfs or uname -v)",
        check: Check::Host(preempt),
        why: "Full preemption shortens tail latency and costs throughput; PREEMPT_RT runs softirqs in threads.",
        mechanism: "preempt= at boot with PREEMPT_DYNAMIC, else a build option.",
        verify: "cat /sys/kernel/debug/sched/preempt; uname -v",
        since: "5.12",
        sources: &[PARAMS],
        ..Rule::record(Area::Cpu)
    },
    Rule {
        id: "irq-time-accounting",
        what: "Is the softirq time that the kernel reports measured, or sampled at ticks?",
        applies: "hosts whose kernel config can be read",
        check: Check::Host(accounting),
        why: "Without IRQ_TIME_ACCOUNTING, softirq time is sampled at the tick and charged to the interrupted \
              task. /proc/stat then does not show which task loses time to networking.",
        mechanism: "irqtime_account_irq (kernel/sched/cputime.c) with IRQ_TIME_ACCOUNTING, vtime_account_softirq \
                    with VIRT_CPU_ACCOUNTING_NATIVE (ppc64, s390). VIRT_CPU_ACCOUNTING_GEN measures user and \
                    system time of nohz_full CPUs but no softirq time (include/linux/vtime.h). tsc=noirqtime \
                    turns IRQ_TIME_ACCOUNTING off.",
        side_effects: "a build option; interrupts cost some percent more",
        set_now: "not possible at runtime",
        persist: "a kernel with CONFIG_IRQ_TIME_ACCOUNTING=y",
        verify: "zgrep IRQ_TIME_ACCOUNTING /proc/config.gz",
        since: "2.6.37",
        sources: &[
            "kernel: kernel/sched/cputime.c irqtime_account_irq",
            "kernel: include/linux/vtime.h vtime_account_softirq",
            PARAMS,
        ],
        ..Rule::honesty(Area::Cpu)
    },
    Rule {
        id: "hz",
        what: "How many ticks a second?",
        applies: "hosts whose kernel config can be read",
        check: Check::Host(hz),
        why: "Defaults depend on it: the time budget of a softirq is two ticks.",
        mechanism: "CONFIG_HZ; nohz= for idle CPUs.",
        verify: "zgrep CONFIG_HZ= /proc/config.gz",
        since: "2.6.13",
        sources: &["kernel: kernel/Kconfig.hz"],
        ..Rule::record(Area::Cpu)
    },
    Rule {
        id: "clocksource",
        what: "Is reading the clock cheap (a few ns), or does it access a device or the hypervisor?",
        applies: "x86 hosts that list their clock sources",
        weight: Weight::always(Warn).when(Latency, Fail).when(Benchmark, Fail),
        size: Tens,
        effect: "a timestamp from the TSC takes some ten ns without a system call, one from hpet or acpi_pm a \
                 microsecond",
        check: Check::Host(clock),
        why: "Every timestamp and every latency probe reads the clock. With hpet, acpi_pm and, on most hosts, \
              xen, each read is a slow system call.",
        mechanism: "__cvdso_clock_gettime (lib/vdso/gettimeofday.c) reads tsc, kvm-clock and hyperv pages in \
                    user space; others fall back to the system call.",
        not_when: "the kernel marked the TSC unstable for a reason (dmesg)",
        side_effects: "an unstable TSC gives wrong times",
        set_now: "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        persist: "kernel parameter clocksource=tsc tsc=reliable",
        verify: "cat /sys/devices/system/clocksource/clocksource0/current_clocksource; dmesg | grep -i clocksource",
        since: "2.6.18",
        sources: &["kernel: lib/vdso/gettimeofday.c", PARAMS],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "iommu-mode",
        what: "Does an IOMMU translate each NIC buffer?",
        applies: "hosts with IOMMU groups",
        check: Check::Host(iommu),
        why: "Strict translation costs time at each mapping. Passthrough costs nothing and protects from nothing.",
        mechanism: "drivers/iommu: type DMA (strict), DMA-FQ (lazy) or identity for each group; drivers that keep \
                    pages mapped (page_pool) pay little.",
        not_when: "passthrough gives up the protection against a device that writes where it should not",
        side_effects: "security",
        persist: "kernel parameter iommu=pt",
        verify: "cat /sys/kernel/iommu_groups/*/type",
        since: "4.19; DMA-FQ distinguished from DMA since 5.15",
        sources: &[
            PARAMS,
            "kernel: Documentation/ABI/testing/sysfs-kernel-iommu_groups",
            "fasterdata.es.net, host tuning",
        ],
        ..Rule::record(Area::Cpu)
    },
    Rule {
        id: "swiotlb-forced",
        what: "Is each packet copied through bounce buffers?",
        applies: "hosts whose boot parameters can be read",
        check: Check::Host(swiotlb),
        why: "In confidential guests and with swiotlb=force, each packet is copied once more.",
        mechanism: "swiotlb_map (kernel/dma/swiotlb.c).",
        set_now: "remove swiotlb=force from the boot parameters",
        persist: "the same",
        verify: "cat /proc/cmdline",
        since: "2.6",
        sources: &[PARAMS],
        ..Rule::honesty(Area::Cpu)
    },
    Rule {
        id: "kernel-debug",
        what: "Is this a production kernel, without debug checks that multiply the cost of a packet?",
        applies: "hosts whose kernel config or boot parameters can be read",
        weight: Weight::always(Warn).when(Benchmark, Fail).when(Throughput, Fail),
        size: Multiple,
        effect: "sanitizers and lock checking slow the kernel severalfold",
        check: Check::Host(debug),
        why: "A debug kernel finds errors and is several times slower. Its numbers say nothing about a production \
              kernel.",
        mechanism: "KASAN and KCSAN check each access, lockdep each lock, slub_debug each allocation; \
                    init_on_alloc and init_on_free clear memory: this is hardening, so it is reported and not \
                    judged.",
        not_when: "you are looking for kernel errors",
        side_effects: "the kernel no longer reports such errors",
        set_now: "not possible at runtime",
        persist: "boot another kernel; remove slub_debug, page_poison and the like from the command line",
        undo: "boot the previous kernel",
        verify: "zgrep -E 'KASAN|PROVE_LOCKING' /proc/config.gz; cat /proc/cmdline",
        since: "2.6",
        sources: &["kernel: Documentation/dev-tools/kasan.rst", PARAMS],
        ..Rule::judge(Area::Cpu)
    },
];

fn mitigations(ask: &Ask<'_>) -> Checked {
    let dir = format!("{CPU}/vulnerabilities");
    let names = ask.facts.list(&dir).known()?;
    let mut open = Vec::new();
    let mut active = 0;
    for name in &names {
        let state = ask.facts.text(&format!("{dir}/{name}")).known()?;
        active += usize::from(state.starts_with("Mitigation"));
        if state.starts_with("Vulnerable") {
            open.push(name.as_str());
        }
    }
    let mut text = format!("{active} mitigations active for {} known vulnerabilities", names.len());
    if !open.is_empty() {
        text += &format!("; open: {}", open.join(", "));
    }
    Answer::recorded(text)
}

fn isolation(ask: &Ask<'_>) -> Checked {
    let topology = (&ask.facts.topology).known()?;
    let isolated = (&topology.isolated).known()?;
    if isolated.is_empty() {
        return Answer::silent("no CPU is isolated");
    }
    let Ok(nohz) = (&topology.nohz_full).known() else {
        return Answer::silent("this kernel was built without nohz_full");
    };
    let with_tick: Vec<u32> =
        isolated.as_slice().iter().copied().filter(|cpu| !nohz.as_slice().contains(cpu)).collect();
    if with_tick.is_empty() {
        return Answer::fine(format!("CPUs {isolated} are isolated and have no tick"));
    }
    Answer::found(
        format!(
            "CPUs {isolated} are isolated, {} keep their tick",
            rxpath_core::CpuList(with_tick)
        ),
        format!("nohz_full={isolated} next to isolcpus={isolated}"),
        "the tick and RCU callbacks still interrupt them",
    )
    .advice("kernel parameters, at the next boot")
}

fn preempt(ask: &Ask<'_>) -> Checked {
    if let Some(text) = ask.facts.text("/sys/kernel/debug/sched/preempt").into_value() {
        return Answer::recorded(text);
    }
    let version = ask.facts.text("/proc/sys/kernel/version").known()?;
    let word = version.split_whitespace().find(|word| word.starts_with("PREEMPT"));
    Answer::recorded(word.unwrap_or("not preemptible, or not reported").to_owned())
}

fn accounting(ask: &Ask<'_>) -> Checked {
    let irq = ask.facts.option("IRQ_TIME_ACCOUNTING").known()?;
    let native = ask.facts.option("VIRT_CPU_ACCOUNTING_NATIVE").known()?;
    if native == "y" {
        return Answer::recorded("measured");
    }
    if irq == "y" {
        (&ask.facts.kernel.cmdline).known()?;
        if ask.facts.kernel.parameter("tsc") != Some("noirqtime") {
            return Answer::recorded("measured");
        }
    }
    Answer::caution(
        "softirq time is sampled at ticks and charged to the interrupted task: CPU time per program is misleading",
    )
}

fn hz(ask: &Ask<'_>) -> Checked {
    let hz = (&ask.facts.kernel.hz).known()?;
    let idle = match ask.facts.kernel.parameter("nohz") {
        Some("off") => ", and idle CPUs keep their tick (nohz=off)",
        _ => "",
    };
    Answer::recorded(format!("{hz} Hz{idle}"))
}

fn clock(ask: &Ask<'_>) -> Checked {
    let dir = "/sys/devices/system/clocksource/clocksource0";
    let now = ask.facts.text(&format!("{dir}/current_clocksource")).known()?;
    let available = ask.facts.text(&format!("{dir}/available_clocksource")).known()?;
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen"];
    if !slow.contains(&now.as_str()) {
        return Answer::fine(now);
    }
    let found = Answer::found(
        now.clone(),
        "tsc, kvm-clock or the hypervisor's clock page",
        "each read is a slow system call",
    );
    if available.split_whitespace().any(|name| name == "tsc") {
        found.change(Set::new(Knob::path(&format!("{dir}/current_clocksource")), "tsc"))
    } else {
        found.advice("the TSC is not offered: dmesg says why the kernel rejected it")
    }
}

fn iommu(ask: &Ask<'_>) -> Checked {
    let groups = ask.facts.list("/sys/kernel/iommu_groups").known()?;
    let mut kinds = std::collections::BTreeMap::<String, u32>::new();
    for group in &groups {
        let path = format!("/sys/kernel/iommu_groups/{group}/type");
        if let Some(kind) = ask.facts.text(&path).into_value() {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    if groups.is_empty() {
        return Answer::silent("no IOMMU group");
    }
    if kinds.is_empty() {
        return Answer::recorded(format!("{} groups, type not reported", groups.len()));
    }
    let words: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    Answer::recorded(words.join(", "))
}

fn swiotlb(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.cmdline).known()?;
    match ask.facts.kernel.parameter("swiotlb") {
        Some(value) if value.split(',').any(|word| word == "force") => {
            Answer::caution("swiotlb=force: every packet is copied through bounce buffers")
        }
        // Confidential guests (SEV, TDX) force it without a boot parameter.
        _ => Answer::recorded("not forced on the command line"),
    }
}

/// Which memory clearing is active: hardening that costs time for each buffer.
fn cleared(ask: &Ask<'_>) -> Vec<&'static str> {
    let is_on = |option: &str, name: &str| match ask.facts.kernel.parameter(name) {
        Some(value) => matches!(value, "1" | "on" | "y"),
        None => ask.facts.option(option).into_value().as_deref() == Some("y"),
    };
    CLEARED.into_iter().filter(|(option, name)| is_on(option, name)).map(|(_, name)| name).collect()
}

fn debug(ask: &Ask<'_>) -> Checked {
    let mut seen: Vec<String> = Vec::new();
    for option in DEBUG {
        if ask.facts.option(option).into_value().as_deref() == Some("y") {
            seen.push(format!("CONFIG_{option}"));
        }
    }
    for name in STARTED {
        // `slub_debug=-` turns it off (Documentation/admin-guide/mm/slab.rst).
        let is_on = |value: &str| !matches!(value, "0" | "off" | "-");
        if ask.facts.kernel.parameter(name).is_some_and(is_on) {
            seen.push(name.to_owned());
        }
    }
    if seen.is_empty() {
        // Check both: each can enable debugging that the other does not show.
        (&ask.facts.config).known()?;
        (&ask.facts.kernel.cmdline).known()?;
        let cleared = cleared(ask);
        let words = if cleared.is_empty() {
            String::new()
        } else {
            format!("; each allocation is cleared ({}), a security setting", cleared.join(", "))
        };
        return Answer::fine(format!("no such option or parameter{words}"));
    }
    Answer::found(
        seen.join(", "),
        "none of them",
        "speed and numbers of a debug kernel mean little",
    )
    .advice("boot a production kernel")
}
