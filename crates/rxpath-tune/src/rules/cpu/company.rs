//! What shares the CPUs: RCU callbacks on isolated CPUs, and other programs on all CPUs.

use rxpath_core::CpuList;

use crate::prelude::*;

const PARAMS: &str = "kernel: Documentation/admin-guide/kernel-parameters.txt";
const PRESSURE: &str = "/proc/pressure/cpu";

/// If tasks waited for a CPU for more than this percentage of the last 10 s, they disturb a measurement.
const CROWDED_PERCENT: f64 = 5.0;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "rcu-nocbs",
        what: "Are RCU callbacks moved off isolated CPUs?",
        applies: "hosts with isolated CPUs",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Info),
        check: Check::Host(callbacks),
        why: "RCU callbacks run on the CPU that queued them. A burst of callbacks then runs in softirq on a CPU \
              that should be left alone.",
        mechanism: "rcu_nocbs= offloads callbacks to rcuo kthreads (kernel/rcu/tree_nocb.h); nohz_full= implies \
                    it for its CPUs (rcu_init_nohz in the same file).",
        not_when: "the CPUs are isolated from the scheduler only, and their tail latency does not matter",
        side_effects: "boot only; the kthreads need time on other CPUs",
        set_now: "not possible at runtime",
        persist: "kernel parameter rcu_nocbs= with the list of isolcpus=",
        undo: "remove the parameter and reboot",
        verify: "ps -e | grep rcuo; cat /proc/cmdline",
        since: "3.8",
        sources: &[PARAMS, "kernel: kernel/rcu/tree_nocb.h"],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "other-load",
        what: "Do other programs compete for the CPUs?",
        applies: "hosts that show CPU pressure",
        weight: Weight::by_goal().when(Benchmark, Info).when(Latency, Info),
        check: Check::Host(load),
        why: "Other load on the receiving CPUs can cut results severalfold, and it differs between runs.",
        mechanism: "psi_task_change (kernel/sched/psi.c) counts the time in which some task waited for a CPU.",
        set_now: "stop the other programs, or keep them off the measured CPUs (taskset, cpuset)",
        verify: "cat /proc/pressure/cpu: avg10 of `some` near 0",
        since: "4.20",
        sources: &["kernel: Documentation/accounting/psi.rst"],
        ..Rule::honesty(Area::Cpu)
    },
];

fn callbacks(ask: &Ask<'_>) -> Checked {
    let topology = (&ask.facts.topology).known()?;
    let isolated = (&topology.isolated).known()?;
    if isolated.is_empty() {
        return Answer::silent("no CPU is isolated");
    }
    (&ask.facts.kernel.cmdline).known()?;
    let nohz = topology.nohz_full.value().cloned().unwrap_or_default();
    let offloaded = match ask.facts.kernel.parameter("rcu_nocbs") {
        Some("all") => return Answer::fine("rcu_nocbs=all"),
        Some(list) => list.parse::<CpuList>().unwrap_or_default(),
        None => CpuList::default(),
    };
    let left: Vec<u32> = isolated
        .as_slice()
        .iter()
        .copied()
        .filter(|cpu| !nohz.as_slice().contains(cpu) && !offloaded.as_slice().contains(cpu))
        .collect();
    if left.is_empty() {
        return Answer::fine(format!("CPUs {isolated} run no RCU callbacks themselves"));
    }
    Answer::found(
        format!("isolated CPUs {} run their RCU callbacks themselves", CpuList(left)),
        format!("rcu_nocbs={isolated} next to isolcpus={isolated}"),
        "callbacks come in bursts and run in softirq",
    )
    .advice("a kernel parameter, at the next boot")
}

/// The average of the last 10 s in the line `some avg10=1.23 avg60=...`.
fn waited_percent(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

fn load(ask: &Ask<'_>) -> Checked {
    let text = ask.facts.text(PRESSURE).known()?;
    let Some(percent) = waited_percent(&text) else {
        return Err(Gap::Absent(format!("{PRESSURE} has no line `some avg10=`")));
    };
    if percent < CROWDED_PERCENT {
        return Answer::recorded(format!(
            "tasks waited for a CPU in {percent:.1} % of the last 10 s"
        ));
    }
    Answer::caution(format!(
        "tasks waited for a CPU in {percent:.1} % of the last 10 s: other load distorts measurements here"
    ))
}
