//! What else runs on the CPUs, and when: watchdogs, balancing, tracing, limits.

use crate::prelude::*;

const KERNEL: &str = "kernel: Documentation/admin-guide/sysctl/kernel.rst";
const TUNED: &str = "tuned: profiles/network-latency/tuned.conf";
const SYSCTL_D: &str = "/etc/sysctl.d/";

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
            not_when: "large programs are not bound to nodes: they profit from the balancing",
            side_effects: "memory stays on the node where it was first touched",
            set_now: "sysctl -w kernel.numa_balancing=0",
            persist: "/etc/sysctl.d/; tuned's network-latency sets it",
            undo: VALUE_BACK,
            verify: "sysctl kernel.numa_balancing; numa_hint_faults in /proc/vmstat does not rise",
            since: "3.8",
            sources: &[KERNEL, TUNED],
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
            mechanism: "watchdog_hardlockup_enable (kernel/watchdog_perf.c) opens a perf event of cycles on each CPU.",
            not_when: "the host shall find CPUs that hang with interrupts off",
            side_effects: "such a hang is not reported; the soft lockup detector stays",
            set_now: "sysctl -w kernel.nmi_watchdog=0",
            persist: "/etc/sysctl.d/, or nmi_watchdog=0 on the kernel command line",
            undo: VALUE_BACK,
            verify: "sysctl kernel.nmi_watchdog; the line NMI of /proc/interrupts does not rise",
            since: "2.6",
            sources: &[KERNEL, "kernel: Documentation/admin-guide/lockup-watchdogs.rst"],
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
        text: Text {
            why: "With 1 a timer that an idle CPU arms expires on a busy CPU, so that the idle one sleeps on. The busy CPU then \
                  runs timers of others, and a timeout is handled away from the caches of the task that waits for it.",
            mechanism: "get_nohz_timer_target (kernel/sched/core.c) chooses the CPU, since 6.9 of hrtimers only: other timers stay, \
                        and idle CPUs hand theirs up a hierarchy (kernel/time/timer_migration.c). Pinned timers never move.",
            not_when: "power matters: idle CPUs wake for their own timers with 0",
            side_effects: "idle CPUs wake more often with 0",
            set_now: "sysctl -w kernel.timer_migration=0",
            persist: SYSCTL_D,
            undo: VALUE_BACK,
            verify: "sysctl kernel.timer_migration",
            since: "2.6.30",
            sources: &[
                "kernel: kernel/time/timer_migration.c",
                "kernel: kernel/time/timer.c timer_migration_handler",
            ],
        },
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
        text: Text {
            why: "A CPU whose counters of pages changed gets a kernel worker that folds them into the totals: a short \
                  interruption of what runs there, once an interval.",
            mechanism: "vmstat_shepherd (mm/vmstat.c) queues vmstat_update on CPUs with something to fold, each \
                        vm.stat_interval seconds.",
            not_when: "memory reclaim and monitoring want exact totals: they lag by the interval",
            side_effects: "totals in /proc/vmstat and /proc/meminfo are older",
            set_now: "sysctl -w vm.stat_interval=10",
            persist: SYSCTL_D,
            undo: VALUE_BACK,
            verify: "sysctl vm.stat_interval",
            since: "2.6.22",
            sources: &[
                "kernel: Documentation/admin-guide/sysctl/vm.rst stat_interval",
                "kernel: mm/vmstat.c vmstat_shepherd",
            ],
        },
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
            mechanism: "khugepaged and ksmd (mm/) work in the background. Where transparent_hugepage/defrag says so a fault \
                        compacts memory itself: up to 4.5 every one, since 4.6 by default those of madvise(MADV_HUGEPAGE).",
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
        applies: "hosts that show tracefs (root) and kernel.bpf_stats_enabled",
        weight: Weight::always(Info)
            .when(Benchmark, Fail)
            .when(Throughput, Warn)
            .when(Latency, Warn),
        effect: Effect::Follows { size: Tens, text: "a probe on the path costs at each packet" },
        check: Check::Host(tracing),
        text: Text {
            why: "Tracers that were forgotten cost at each packet, and nobody sees why the host is slow.",
            mechanism: "A function tracer hooks every function; a kprobe or uprobe of tracefs its own; \
                        bpf_stats_enabled stamps each run of a BPF program. Read are current_tracer, kprobe_events, \
                        uprobe_events and that sysctl. Probes that a program holds by perf_event_open or a BPF link \
                        are in none of them: bpftool perf and bpftool link list those.",
            not_when: "you are the one who traces: then know its cost",
            side_effects: "what the tracer was there for ends",
            set_now: "sysctl -w kernel.bpf_stats_enabled=0; echo nop > /sys/kernel/tracing/current_tracer",
            persist: "end what sets it",
            undo: VALUE_BACK,
            verify: "cat /sys/kernel/tracing/{current_tracer,kprobe_events,uprobe_events}; sysctl kernel.bpf_stats_enabled",
            since: "2.6.27; bpf_stats_enabled 5.1",
            sources: &["kernel: Documentation/trace/ftrace.rst", KERNEL],
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
            why: "A poller with FIFO priority loses up to 50 ms of each second by default: before 6.12 always, since then while \
                  tasks without such a priority wait for its CPU.",
            mechanism: "Up to 6.11 real-time tasks get sched_rt_runtime_us of each sched_rt_period_us (kernel/sched/rt.c). Since 6.12 \
                        a deadline server per CPU runs the others instead (kernel/sched/deadline.c), and the sysctl bounds \
                        what deadline tasks may reserve, and groups with CONFIG_RT_GROUP_SCHED.",
            not_when: "the gap is what saves a host from a task that never sleeps",
            side_effects: "-1: a task that never sleeps locks its CPU up",
            set_now: "sysctl -w kernel.sched_rt_runtime_us=-1; since 6.12 instead: \
                      echo 0 > /sys/kernel/debug/sched/fair_server/cpuN/runtime, for each CPU of such a task",
            persist: "/etc/sysctl.d/; a unit for the file of debugfs",
            undo: VALUE_BACK,
            verify: "sysctl kernel.sched_rt_runtime_us",
            since: "2.6.25; the deadline server 6.12",
            sources: &[
                "kernel: Documentation/scheduler/sched-rt-group.rst",
                "kernel commit 5f6bd380c7bd (sched/rt: Remove default bandwidth control)",
                KERNEL,
            ],
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
        huge?;
        // A kernel that was built without KSM has no directory for it.
        if ask.facts.exists("/sys/kernel/mm/ksm") {
            merging?;
        }
        return Answer::fine("neither huge pages for everything nor KSM");
    }
    Found::new(found.join(", "), "madvise, and KSM off", "memory is moved under running programs")
        .changes(sets)
        .answer()
}

const TRACING: &str = "/sys/kernel/tracing";

/// Probes that a list of tracefs names: one a line (kernel/trace/trace_kprobe.c `probes_seq_show`).
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
        sets.push(Set::new(Knob::attribute(format!("{TRACING}/current_tracer")), "nop"));
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
    let why = "it costs at each function or program it hooks";
    let found = Found::new(seen.join("; "), "nobody traces", why).changes(sets);
    if ways.is_empty() { found.answer() } else { found.advice(ways.join("; ")).answer() }
}

fn rt(ask: &Ask<'_>) -> Checked {
    let runtime = ask.facts.sysctl_number("kernel.sched_rt_runtime_us").known()?;
    Answer::recorded(if runtime < 0 {
        "never".into()
    } else {
        format!("they run {runtime} us of each period")
    })
}
