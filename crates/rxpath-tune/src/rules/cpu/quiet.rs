//! What else runs on the CPUs, and when: watchdogs, balancing, tracing, limits.

use crate::prelude::*;

const KERNEL: &str = "kernel: Documentation/admin-guide/sysctl/kernel.rst";
const TUNED: &str = "tuned: profiles/network-latency/tuned.conf";
const NOISE: Text = Text {
    why: "It interrupts every CPU now and then, whatever runs there.",
    mechanism: "A timer or a scan of the kernel's own, on all CPUs unless it is turned off.",
    not_when: "the host shall find its own hangs, or large programs profit from the balancing",
    side_effects: "hangs may go unseen; memory stays where it was first touched",
    set_now: "sysctl -w KEY=0",
    persist: "/etc/sysctl.d/; tuned's network-latency sets it",
    undo: VALUE_BACK,
    verify: "sysctl KEY",
    since: "2.6",
    sources: &[KERNEL, TUNED],
};

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "numa-balancing",
        area: Area::Cpu,
        kind: Kind::Judge,
        what: "Is automatic NUMA balancing off where times matter?",
        applies: "hosts with two or more NUMA nodes",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Warn),
        effect: Effect::Measure,
        check: Check::Host(numa),
        text: Text {
            why: "It unmaps pages to see who uses them: faults in the middle of the work of a pinned program.",
            mechanism: "task_numa_work (kernel/sched/fair.c) marks ranges; the next access faults.",
            set_now: "sysctl -w kernel.numa_balancing=0",
            since: "3.8",
            ..NOISE
        },
    },
    Rule {
        id: "watchdogs",
        area: Area::Cpu,
        kind: Kind::Judge,
        what: "Does no hardware watchdog take a counter and an interrupt of every CPU?",
        applies: "hosts with kernel.nmi_watchdog",
        weight: Weight::by_goal().when(Benchmark, Info).when(Latency, Info),
        effect: Effect::Measure,
        check: Check::Host(watchdog),
        text: Text {
            why: "The NMI watchdog takes a performance counter on each CPU and interrupts it every few seconds.",
            mechanism: "watchdog_hardlockup_enable (kernel/watchdog_perf.c).",
            set_now: "sysctl -w kernel.nmi_watchdog=0",
            ..NOISE
        },
    },
    Rule {
        id: "timer-migration",
        area: Area::Cpu,
        kind: Kind::Record,
        what: "May timers of idle CPUs move to busy ones?",
        applies: "every host",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Host(timers),
        text: Text { set_now: "sysctl -w kernel.timer_migration=0", since: "2.6.30", ..NOISE },
    },
    Rule {
        id: "vm-stat-interval",
        area: Area::Cpu,
        kind: Kind::Record,
        what: "How often does each CPU fold its memory statistics?",
        applies: "every host",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Host(vm_stat),
        text: Text { set_now: "sysctl -w vm.stat_interval=10", since: "2.6.22", ..NOISE },
    },
    Rule {
        id: "thp-ksm-swap",
        area: Area::Cpu,
        kind: Kind::Judge,
        what: "Does nothing move or merge memory under the programs that are measured?",
        applies: "hosts that show transparent huge pages or KSM",
        weight: Weight::by_goal().when(Benchmark, Info).when(Latency, Info),
        effect: Effect::Measure,
        check: Check::Host(memory),
        text: Text {
            why: "Compaction for huge pages and merging by KSM stop programs for moments that depend on history.",
            mechanism: "khugepaged and ksmd (mm/) work in the background; with `always` faults compact directly.",
            not_when: "large heaps profit from huge pages: then measure both",
            side_effects: "more TLB misses without huge pages",
            set_now: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; echo 0 > /sys/kernel/mm/ksm/run",
            persist: "kernel parameter transparent_hugepage=madvise; a unit for KSM",
            undo: VALUE_BACK,
            verify: "cat /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/ksm/run",
            since: "2.6.38",
            sources: &["kernel: Documentation/admin-guide/mm/transhuge.rst"],
        },
    },
    Rule {
        id: "tracing-active",
        area: Area::Cpu,
        kind: Kind::Judge,
        what: "Is nobody tracing the kernel?",
        applies: "hosts that show kernel.bpf_stats_enabled or tracefs",
        weight: Weight::always(Info)
            .when(Benchmark, Fail)
            .when(Throughput, Warn)
            .when(Latency, Warn),
        effect: Effect::Follows { size: Tens, text: "a probe on the path costs at each packet" },
        check: Check::Host(tracing),
        text: Text {
            why: "Tracers that were forgotten cost at each packet, and nobody sees why the host is slow.",
            mechanism: "A function tracer hooks every function; bpf_stats_enabled stamps each run of a BPF program.",
            not_when: "you are the one who traces: then know its cost",
            side_effects: "what the tracer was there for ends",
            set_now: "sysctl -w kernel.bpf_stats_enabled=0; echo nop > /sys/kernel/tracing/current_tracer",
            persist: "end what sets it",
            undo: VALUE_BACK,
            verify: "cat /sys/kernel/tracing/current_tracer; sysctl kernel.bpf_stats_enabled",
            since: "2.6.27; bpf_stats_enabled 5.1",
            sources: &["kernel: Documentation/trace/ftrace.rst", KERNEL],
        },
    },
    Rule {
        id: "cgroup-throttle",
        area: Area::Cpu,
        kind: Kind::Judge,
        what: "Does no limit of a control group stop programs for parts of each period?",
        applies: "hosts that show this process's cpu.max (cgroup 2)",
        weight: Weight::always(Info).when(Latency, Fail).when(Benchmark, Fail),
        effect: Effect::Follows {
            size: Multiple,
            text: "a group that used its quota stands still for the rest of 100 ms",
        },
        check: Check::Host(throttle),
        text: Text {
            why: "A limit of CPU time shows as stalls of tens of ms in an application that has plenty of CPUs.",
            mechanism: "throttle_cfs_rq (kernel/sched/fair.c) takes a group off the CPUs until its next period.",
            not_when: "the limit is the contract",
            side_effects: "the group may use more",
            set_now: "echo max > /sys/fs/cgroup/GROUP/cpu.max",
            persist: "CPUQuota= of the unit, limits of the container",
            undo: VALUE_BACK,
            verify: "nr_throttled in the group's cpu.stat stands still",
            since: "4.15",
            sources: &["kernel: Documentation/admin-guide/cgroup-v2.rst, cpu.max"],
        },
    },
    Rule {
        id: "rt-throttle",
        area: Area::Cpu,
        kind: Kind::Record,
        what: "Are real-time tasks stopped for a part of each second?",
        applies: "every host",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Host(rt),
        text: Text {
            why: "A poller with FIFO priority stands still for 50 ms of each second by default.",
            mechanism: "sched_rt_runtime_us of each sched_rt_period_us (kernel/sched/rt.c); the deadline server \
                        replaced it in 6.12.",
            not_when: "the gap is what saves a host from a task that never sleeps",
            side_effects: "-1: a task that never sleeps locks its CPU up",
            set_now: "sysctl -w kernel.sched_rt_runtime_us=-1",
            persist: "/etc/sysctl.d/",
            undo: VALUE_BACK,
            verify: "sysctl kernel.sched_rt_runtime_us",
            since: "2.6.25",
            sources: &["kernel: Documentation/scheduler/sched-rt-group.rst", KERNEL],
        },
    },
];

fn numa(ask: &Ask<'_>) -> Checked {
    let nodes = ask.facts.cpus("/sys/devices/system/node/online").known()?;
    if nodes.as_slice().len() < 2 {
        return Answer::silent("one NUMA node");
    }
    if ask.facts.sysctl_number("kernel.numa_balancing").known()? == 0 {
        return Answer::fine("off");
    }
    Found::new("on", "off", "it makes page faults in programs that are bound well already")
        .change(Set::new(Knob::sysctl("kernel.numa_balancing"), 0))
        .answer()
}

fn watchdog(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("kernel.nmi_watchdog").known()? == 0 {
        return Answer::fine("off");
    }
    Found::new(
        "the NMI watchdog is on",
        "off while measuring",
        "it takes a counter and interrupts each CPU",
    )
    .change(Set::new(Knob::sysctl("kernel.nmi_watchdog"), 0))
    .answer()
}

fn timers(ask: &Ask<'_>) -> Checked {
    Answer::recorded(ask.facts.sysctl_number("kernel.timer_migration").known()?.to_string())
}

fn vm_stat(ask: &Ask<'_>) -> Checked {
    Answer::recorded(format!("{} s", ask.facts.sysctl_number("vm.stat_interval").known()?))
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
        sets.push(Set::new(Knob::attribute(thp), "madvise"));
    }
    if matches!(merging, Ok(1)) {
        found.push("KSM merges pages");
        sets.push(Set::new(Knob::attribute(ksm), 0));
    }
    if sets.is_empty() {
        // Both unknown is a gap, one known is enough to judge it.
        huge.map(drop).or(merging.map(drop))?;
        return Answer::fine("neither huge pages for everything nor KSM");
    }
    Found::new(found.join(", "), "madvise, and KSM off", "memory is moved under running programs")
        .changes(sets)
        .answer()
}

fn tracing(ask: &Ask<'_>) -> Checked {
    let stats = ask.facts.sysctl_number("kernel.bpf_stats_enabled").known();
    let tracer = ask.facts.text("/sys/kernel/tracing/current_tracer").known();
    if let Ok(name) = &tracer
        && name != "nop"
    {
        return Found::new(
            format!("the tracer {name} runs"),
            "nop",
            "it costs at each function it hooks",
        )
        .change(Set::new(Knob::attribute("/sys/kernel/tracing/current_tracer"), "nop"))
        .answer();
    }
    match (stats, tracer) {
        (Ok(1), _) => {
            Found::new("kernel.bpf_stats_enabled is 1", "0", "each run of a BPF program is timed")
                .change(Set::new(Knob::sysctl("kernel.bpf_stats_enabled"), 0))
                .answer()
        }
        (Ok(_), _) => Answer::fine("no tracer, no BPF statistics"),
        (Err(_), Ok(_)) => Answer::fine("no tracer"),
        (Err(gap), Err(_)) => Err(gap),
    }
}

fn throttle(ask: &Ask<'_>) -> Checked {
    let groups = ask.facts.text("/proc/self/cgroup").known()?;
    let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Answer::silent("no cgroup of version 2");
    };
    let path = format!("/sys/fs/cgroup{}/cpu.max", group.trim_end_matches('/'));
    let limit = ask.facts.text(&path).known()?;
    if limit.starts_with("max") {
        return Answer::fine("no limit on this process's group");
    }
    Found::new(
        format!("cpu.max of {group} is {limit}"),
        "max, or a limit that is never reached",
        "a group over its quota stands still",
    )
    .advice(format!(
        "the limit belongs to who made the group: raise its CPUQuota, or echo max > {path}"
    ))
    .answer()
}

fn rt(ask: &Ask<'_>) -> Checked {
    let runtime = ask.facts.sysctl_number("kernel.sched_rt_runtime_us").known()?;
    Answer::recorded(if runtime < 0 {
        "never".into()
    } else {
        format!("they run {runtime} us of each period")
    })
}
