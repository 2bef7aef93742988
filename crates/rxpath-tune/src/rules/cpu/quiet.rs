//! Background work on the CPUs: watchdogs, balancing, tracing, limits.

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("numa-balancing", Check::Host(numa)),
    ("watchdogs", Check::Host(watchdog)),
    ("timer-migration", Check::Host(|ask| recorded(ask, "kernel.timer_migration", ""))),
    ("vm-stat-interval", Check::Host(|ask| recorded(ask, "vm.stat_interval", " s"))),
    ("thp-ksm-swap", Check::Host(memory)),
    ("tracing-active", Check::Host(tracing)),
    ("rt-throttle", Check::Host(rt)),
];

fn numa(ask: &Ask<'_>) -> Checked {
    let nodes = ask.facts.cpus("/sys/devices/system/node/online").known()?;
    if nodes.as_slice().len() < 2 {
        return Answer::silent("one NUMA node");
    }
    if ask.facts.sysctl_number("kernel.numa_balancing").known()? == 0 {
        return Answer::fine("off");
    }
    Answer::observed("on").change(Set::new(Knob::sysctl("kernel.numa_balancing"), 0))
}

fn watchdog(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("kernel.nmi_watchdog").known()? == 0 {
        return Answer::fine("off");
    }
    Answer::observed("the NMI watchdog is on")
        .change(Set::new(Knob::sysctl("kernel.nmi_watchdog"), 0))
}

fn memory(ask: &Ask<'_>) -> Checked {
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    let ksm = "/sys/kernel/mm/ksm/run";
    let huge = ask.facts.text(thp).known();
    let merging = ask.facts.number(ksm).known();
    let mut found = Vec::new();
    let mut sets = Vec::new();
    if matches!(&huge, Ok(text) if text.contains("[always]")) {
        found.push("huge pages for everything");
        sets.push(Set::new(Knob::path(thp), "madvise"));
    }
    if matches!(merging, Ok(1)) {
        found.push("KSM merges pages");
        sets.push(Set::new(Knob::path(ksm), 0));
    }
    if sets.is_empty() {
        huge?;
        // A kernel that was built without KSM has no directory for it.
        if ask.facts.exists("/sys/kernel/mm/ksm") {
            merging?;
        }
        return Answer::fine("neither huge pages for everything nor KSM");
    }
    Answer::observed(found.join(", ")).changes(sets)
}

const TRACING: &str = "/sys/kernel/tracing";

/// Probes in a tracefs list, one per line (kernel/trace/trace_kprobe.c `probes_seq_show`).
fn probes(ask: &Ask<'_>, list: &str) -> Result<usize, Gap> {
    let path = format!("{TRACING}/{list}");
    // A kernel that was built without them has no such file.
    if ask.facts.exists(TRACING) && !ask.facts.exists(&path) && ask.facts.is_live() {
        return Ok(0);
    }
    let text = ask.facts.text(&path).known()?;
    Ok(text.lines().filter(|line| !line.trim().is_empty()).count())
}

fn tracing(ask: &Ask<'_>) -> Checked {
    let stats = ask.facts.sysctl_number("kernel.bpf_stats_enabled").known();
    let tracer = ask.facts.text(&format!("{TRACING}/current_tracer")).known();
    let lists = [("kprobe_events", "kprobes"), ("uprobe_events", "uprobes")];
    let counts = lists.map(|(list, what)| (list, what, probes(ask, list)));
    let (mut seen, mut ways, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    if let Ok(name) = &tracer
        && name != "nop"
    {
        seen.push(format!("the tracer {name} runs"));
        sets.push(Set::new(Knob::path(&format!("{TRACING}/current_tracer")), "nop"));
    }
    for (list, what, count) in &counts {
        if let Ok(count @ 1..) = count {
            seen.push(format!("{count} {what} are defined"));
            ways.push(format!("{TRACING}/{list} names them; end the program that made them"));
        }
    }
    if matches!(stats, Ok(1..)) {
        seen.push("kernel.bpf_stats_enabled is 1".into());
        sets.push(Set::new(Knob::sysctl("kernel.bpf_stats_enabled"), 0));
    }
    if seen.is_empty() {
        tracer?;
        for (_, _, count) in counts {
            count?;
        }
        stats?;
        return Answer::fine("no tracer, no probe in tracefs, no BPF statistics");
    }
    let found = Answer::observed(seen.join("; ")).changes(sets);
    if ways.is_empty() { found } else { found.advice(ways.join("; ")) }
}

fn rt(ask: &Ask<'_>) -> Checked {
    let runtime = ask.facts.sysctl_number("kernel.sched_rt_runtime_us").known()?;
    Answer::recorded(if runtime < 0 {
        "never".into()
    } else {
        format!("they run {runtime} us of each period")
    })
}
