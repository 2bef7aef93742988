//! Background work on the CPUs: watchdogs, balancing, tracing, limits.

use crate::prelude::*;

const KERNEL: &str = "kernel: Documentation/admin-guide/sysctl/kernel.rst";
const TUNED: &str = "tuned: profiles/network-latency/tuned.conf";
const SYSCTL_D: &str = "/etc/sysctl.d/";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "numa-balancing",
        what: "Is automatic NUMA balancing off?",
        applies: "hosts with two or more NUMA nodes",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Warn),
        check: Check::Host(numa),
        why: "NUMA balancing unmaps pages to see which node uses them. A pinned program then takes page faults \
              during its work.",
        mechanism: "task_numa_work (kernel/sched/fair.c) marks ranges; the next access faults.",
        not_when: "large programs that are not bound to nodes benefit from the balancing",
        side_effects: "memory stays on the node where it was first touched",
        set_now: "sysctl -w kernel.numa_balancing=0",
        persist: "/etc/sysctl.d/; tuned's network-latency sets it",
        verify: "sysctl kernel.numa_balancing; numa_hint_faults in /proc/vmstat does not rise",
        since: "3.8",
        sources: &[KERNEL, TUNED],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "watchdogs",
        what: "Is the NMI watchdog off?",
        applies: "hosts with kernel.nmi_watchdog",
        weight: Weight::by_goal().when(Benchmark, Info).when(Latency, Info),
        check: Check::Host(watchdog),
        why: "The NMI watchdog takes a performance counter on each CPU and interrupts it every few seconds.",
        mechanism: "watchdog_hardlockup_enable (kernel/watchdog_perf.c) opens a perf cycles event on each CPU.",
        not_when: "the host must detect CPUs that hang with interrupts off",
        side_effects: "such a hang is not reported; the soft lockup detector stays active",
        set_now: "sysctl -w kernel.nmi_watchdog=0",
        persist: "/etc/sysctl.d/, or nmi_watchdog=0 on the kernel command line",
        verify: "sysctl kernel.nmi_watchdog; the line NMI of /proc/interrupts does not rise",
        since: "2.6",
        sources: &[KERNEL, "kernel: Documentation/admin-guide/lockup-watchdogs.rst"],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "timer-migration",
        what: "May timers of idle CPUs move to busy CPUs?",
        applies: "every host",
        check: Check::Host(timers),
        why: "With 1, a timer that an idle CPU arms expires on a busy CPU, so that the idle CPU keeps sleeping. \
              The busy CPU then runs timers of other CPUs, and the waiting task's data is not in its caches.",
        mechanism: "get_nohz_timer_target (kernel/sched/core.c) chooses the CPU. Since 6.9 it does so for \
                    hrtimers only; for other timers, idle CPUs use a migration hierarchy \
                    (kernel/time/timer_migration.c). Pinned timers never move.",
        not_when: "power matters: with 0, idle CPUs wake for their own timers",
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
        ..Rule::record(Area::Cpu)
    },
    Rule {
        id: "vm-stat-interval",
        what: "How often does each CPU update the global memory statistics?",
        applies: "every host",
        check: Check::Host(vm_stat),
        why: "If a CPU's page counters changed, a kernel worker on that CPU adds them to the totals. It briefly \
              interrupts the running task once per interval.",
        mechanism: "vmstat_shepherd (mm/vmstat.c) queues vmstat_update on CPUs with changed counters, every \
                    vm.stat_interval seconds.",
        not_when: "memory reclaim or monitoring needs exact totals: they lag by the interval",
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
        ..Rule::record(Area::Cpu)
    },
    Rule {
        id: "thp-ksm-swap",
        what: "Are background huge-page compaction and KSM off?",
        applies: "hosts that show transparent huge pages or KSM",
        weight: Weight::by_goal().when(Benchmark, Info).when(Latency, Info),
        check: Check::Host(memory),
        why: "Huge-page compaction and KSM merging stall programs for short times. The stalls depend on the \
              host's history.",
        mechanism: "khugepaged and ksmd (mm/) work in the background. transparent_hugepage/defrag decides whether \
                    a page fault compacts memory itself: up to 4.5 every fault, since 4.6 by default only faults \
                    in madvise(MADV_HUGEPAGE) memory.",
        not_when: "large heaps benefit from huge pages: measure both",
        side_effects: "more TLB misses without huge pages",
        set_now: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; echo 0 > /sys/kernel/mm/ksm/run",
        persist: "kernel parameter transparent_hugepage=madvise; a unit for KSM",
        verify: "cat /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/ksm/run",
        since: "2.6.38",
        sources: &["kernel: Documentation/admin-guide/mm/transhuge.rst"],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "tracing-active",
        what: "Is kernel tracing off?",
        applies: "hosts that show tracefs (root) and kernel.bpf_stats_enabled",
        weight: Weight::always(Info)
            .when(Benchmark, Fail)
            .when(Throughput, Warn)
            .when(Latency, Warn),
        size: Tens,
        effect: "a probe on the path costs time for each packet",
        check: Check::Host(tracing),
        why: "A forgotten tracer costs time for each packet, and nothing shows why the host is slow.",
        mechanism: "A function tracer hooks every function; a tracefs kprobe or uprobe hooks one; \
                    bpf_stats_enabled times each run of a BPF program. rxpath reads current_tracer, \
                    kprobe_events, uprobe_events and that sysctl. It does not see probes that a program holds by \
                    perf_event_open or a BPF link: bpftool perf and bpftool link list those.",
        not_when: "you are tracing on purpose and know the cost",
        side_effects: "the trace stops",
        set_now: "sysctl -w kernel.bpf_stats_enabled=0; echo nop > /sys/kernel/tracing/current_tracer",
        persist: "stop the program that sets it",
        verify: "cat /sys/kernel/tracing/{current_tracer,kprobe_events,uprobe_events}; sysctl kernel.bpf_stats_enabled",
        since: "2.6.27; bpf_stats_enabled 5.1",
        sources: &["kernel: Documentation/trace/ftrace.rst", KERNEL],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "rt-throttle",
        what: "Are real-time tasks throttled for part of each second?",
        applies: "every host",
        check: Check::Host(rt),
        why: "A poller with FIFO priority loses up to 50 ms of each second by default. Before 6.12 this always \
              happens; since 6.12 only while normal tasks wait for its CPU.",
        mechanism: "Up to 6.11 real-time tasks get sched_rt_runtime_us of each sched_rt_period_us \
                    (kernel/sched/rt.c). Since 6.12 a deadline server per CPU runs normal tasks instead \
                    (kernel/sched/deadline.c). The sysctl then limits the reservations of deadline tasks, and of \
                    groups with CONFIG_RT_GROUP_SCHED.",
        not_when: "the throttle protects the host from a real-time task that never sleeps",
        side_effects: "-1: a task that never sleeps locks its CPU up",
        set_now: "sysctl -w kernel.sched_rt_runtime_us=-1; since 6.12 instead: \
                  echo 0 > /sys/kernel/debug/sched/fair_server/cpuN/runtime, for each CPU of such a task",
        persist: "/etc/sysctl.d/; a systemd unit for the debugfs file",
        undo: VALUE_BACK,
        verify: "sysctl kernel.sched_rt_runtime_us",
        since: "2.6.25; the deadline server 6.12",
        sources: &[
            "kernel: Documentation/scheduler/sched-rt-group.rst",
            "kernel commit 5f6bd380c7bd (sched/rt: Remove default bandwidth control)",
            KERNEL,
        ],
        ..Rule::record(Area::Cpu)
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
    Answer::found("on", "off", "it causes page faults in programs that are already bound")
        .change(Set::new(Knob::sysctl("kernel.numa_balancing"), 0))
}

fn watchdog(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("kernel.nmi_watchdog").known()? == 0 {
        return Answer::fine("off");
    }
    Answer::found(
        "the NMI watchdog is on",
        "off while measuring",
        "it takes a performance counter and interrupts each CPU",
    )
    .change(Set::new(Knob::sysctl("kernel.nmi_watchdog"), 0))
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
    Answer::found(
        found.join(", "),
        "madvise, and KSM off",
        "the kernel moves memory of running programs",
    )
    .changes(sets)
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
    let why = "it costs time at each function or program that it hooks";
    let found = Answer::found(seen.join("; "), "nobody traces", why).changes(sets);
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
