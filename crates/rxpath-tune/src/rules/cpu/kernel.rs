//! How the kernel was built and booted: settings that cannot change at runtime.

use super::power::CPU;
use crate::prelude::*;

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

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("cpu-mitigations", Check::Host(mitigations)),
    ("isolcpus-nohz-full", Check::Host(isolation)),
    ("preempt-model", Check::Host(preempt)),
    ("irq-time-accounting", Check::Host(accounting)),
    ("hz", Check::Host(hz)),
    ("clocksource", Check::Host(clock)),
    ("iommu-mode", Check::Host(iommu)),
    ("swiotlb-forced", Check::Host(swiotlb)),
    ("kernel-debug", Check::Host(debug)),
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
    if ask.facts.option("VIRT_CPU_ACCOUNTING_NATIVE").known()? == "y" {
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
    let found = Answer::observed(now.clone());
    if available.split_whitespace().any(|name| name == "tsc") {
        found.change(Set::new(Knob::path(&format!("{dir}/current_clocksource")), "tsc"))
    } else {
        found.advice("the TSC is not offered: dmesg says why the kernel rejected it")
    }
}

fn iommu(ask: &Ask<'_>) -> Checked {
    let groups = ask.facts.list("/sys/kernel/iommu_groups").known()?;
    let kinds = tally(groups.iter().filter_map(|group| {
        ask.facts.text(&format!("/sys/kernel/iommu_groups/{group}/type")).into_value()
    }));
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
        None => ask.facts.has_option(option),
    };
    CLEARED.into_iter().filter(|(option, name)| is_on(option, name)).map(|(_, name)| name).collect()
}

fn debug(ask: &Ask<'_>) -> Checked {
    let built = DEBUG.into_iter().filter(|option| ask.facts.has_option(option));
    let mut seen: Vec<String> = built.map(|option| format!("CONFIG_{option}")).collect();
    // `slub_debug=-` turns it off (Documentation/admin-guide/mm/slab.rst).
    let is_on = |value: &str| !matches!(value, "0" | "off" | "-");
    let kernel = &ask.facts.kernel;
    let started = STARTED.into_iter().filter(|name| kernel.parameter(name).is_some_and(is_on));
    seen.extend(started.map(str::to_owned));
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
    Answer::observed(seen.join(", ")).advice("boot a production kernel")
}
