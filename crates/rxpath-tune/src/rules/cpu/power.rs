//! Frequency, boost, hyper-threads, idle states.

use std::collections::BTreeMap;

use crate::facts::throttle_path;
use crate::prelude::*;

pub(super) const CPU: &str = "/sys/devices/system/cpu";
pub(super) const CPUFREQ: &str = "kernel: Documentation/admin-guide/pm/cpufreq.rst";
const IDLE: &str = "kernel: Documentation/admin-guide/pm/cpuidle.rst";
const PERF: &str = "rust-lang/rustc-perf issue 1450";

/// An idle state with a longer exit latency shows in round-trip times, in us.
const DEEP_US: u64 = 20;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "cpu-governor",
        what: "Do the CPUs keep their frequency when packets come in bursts?",
        applies: "hosts that show cpufreq policies (few VMs do)",
        weight: Weight::by_goal().when(Latency, Warn).when(Throughput, Info).when(Benchmark, Warn),
        check: Check::Host(governor),
        why: "A CPU that clocks down between bursts handles the first packets slowly. Two benchmark runs at low \
              load differ with the frequency at their start.",
        mechanism: "The governor (drivers/cpufreq) chooses the frequency by load; performance keeps the highest.",
        not_when: "power or heat is the limit",
        side_effects: "power and heat; less room for boost of other cores",
        set_now: "echo performance > /sys/devices/system/cpu/cpufreq/policyN/scaling_governor, for each",
        persist: "cpupower.service, a tuned profile or the kernel parameter cpufreq.default_governor=",
        verify: "cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        since: "2.6",
        sources: &[CPUFREQ],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "cpu-turbo",
        what: "Is boost off for benchmarks, and on for latency and throughput?",
        applies: "hosts that show intel_pstate/no_turbo or cpufreq/boost",
        weight: Weight::by_goal().when(Benchmark, Warn).when(Throughput, Info).when(Latency, Info),
        size: Percents,
        effect: "with boost and SMT off: substantially less variance, run time 10 % longer",
        figure_from: PERF,
        check: Check::Host(turbo),
        why: "Boost depends on heat and on the load of other cores. Turn it off for a benchmark: the next run may \
              not get the same boost. Turn it on for latency and throughput.",
        mechanism: "The processor raises single cores above the base frequency while power and heat allow.",
        not_when: "to off: speed counts more than repeatability; to on: power or heat is the limit",
        side_effects: "off: lower peak speed; on: more power and heat, and runs that differ",
        set_now: "on: echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 1 > \
                  /sys/devices/system/cpu/cpufreq/boost; off, for a benchmark: 1 to no_turbo, or 0 to boost",
        persist: "a systemd unit at boot",
        verify: "cat /sys/devices/system/cpu/intel_pstate/no_turbo, or cat /sys/devices/system/cpu/cpufreq/boost; scaling_cur_freq under load",
        since: "3.9; cpufreq/boost 3.7",
        sources: &[PERF, "kernel: Documentation/admin-guide/pm/intel_pstate.rst"],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "cpu-smt",
        what: "Are hyper-threads off for benchmarks?",
        applies: "hosts that show cpu/smt",
        weight: Weight::by_goal().when(Benchmark, Info),
        size: Percents,
        effect: "variance reduced substantially with boost and SMT off",
        figure_from: PERF,
        check: Check::Host(smt),
        why: "Two hyper-threads share the units of one core: load on one changes the other's speed.",
        mechanism: "cpu/smt/control takes the second threads offline (kernel/cpu.c cpuhp_smt_disable).",
        not_when: "all CPUs are needed; instead, pin programs so that second threads stay idle",
        side_effects: "interrupts of the offlined threads move: save their affinities first",
        set_now: "echo off > /sys/devices/system/cpu/smt/control",
        persist: "kernel parameter nosmt",
        undo: "echo on > /sys/devices/system/cpu/smt/control, then restore the interrupt affinities",
        verify: "cat /sys/devices/system/cpu/smt/active",
        since: "4.19",
        sources: &[PERF, "kernel: Documentation/ABI/testing/sysfs-devices-system-cpu, smt"],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "cpu-cstates",
        what: "Do CPUs enter idle states so deep that the wake-up shows in round-trip times?",
        applies: "hosts that show cpuidle states",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Warn),
        size: Multiple,
        effect: "a home router's LAN ping took 1.2 ms until its idle states were limited",
        figure_from: "slava.cc, C-states and network latency, 2020",
        check: Check::Host(cstates),
        why: "The symptom: latency is higher on an idle host than under load, because each packet wakes a CPU \
              from a deep state.",
        mechanism: "cpuidle picks a state by the expected idle time; leaving the state takes its exit latency.",
        not_when: "power matters more",
        side_effects: "power and heat; less room for boost of other cores",
        set_now: "keep /dev/cpu_dma_latency open with the value 0 in a program: the limit ends when the program \
                  closes it (tuned's force_latency does so). Else, for each deep state: echo 1 > \
                  /sys/devices/system/cpu/cpuN/cpuidle/stateM/disable",
        persist: "kernel parameters intel_idle.max_cstate=1 or processor.max_cstate=1",
        verify: "usage of the disabled states does not rise",
        since: "2.6.24",
        sources: &[IDLE, "kernel: Documentation/power/pm_qos_interface.rst"],
        ..Rule::judge(Area::Cpu)
    },
    Rule {
        id: "pm-qos-latency",
        what: "Does a per-CPU latency limit restrict idle states?",
        applies: "hosts that show pm_qos_resume_latency_us",
        check: Check::Host(pm_qos),
        why: "The safest way to keep CPUs awake: one file per CPU. The global limit ends with the process that \
              holds /dev/cpu_dma_latency.",
        mechanism: "cpuidle honours the smallest of /dev/cpu_dma_latency and cpuN/power/pm_qos_resume_latency_us. \
                    rxpath reads the per-CPU files only: the value of /dev/cpu_dma_latency needs root, and the \
                    kernel does not show which program holds it.",
        side_effects: "more power for the CPUs that stay awake",
        verify: "cat /sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us (0 is no limit, n/a is no sleep)",
        since: "4.11; n/a 4.15",
        sources: &["kernel: Documentation/power/pm_qos_interface.rst"],
        ..Rule::record(Area::Cpu)
    },
    Rule {
        id: "thermal-throttle",
        what: "Was a CPU throttled for heat since boot?",
        applies: "x86 hosts that count throttling",
        check: Check::Host(throttled),
        why: "A run on a throttled CPU measures the cooling, not the software.",
        mechanism: "therm_throt_process (drivers/thermal/intel/therm_throt.c) counts each event.",
        set_now: "cooling; a lower fixed clock",
        verify: "core_throttle_count does not rise during a run",
        since: "2.6",
        sources: &["kernel: drivers/thermal/intel/therm_throt.c"],
        ..Rule::honesty(Area::Surroundings)
    },
];

/// Directories below `dir` whose names begin with `prefix` and a number.
pub(super) fn numbered(ask: &Ask<'_>, dir: &str, prefix: &str) -> Result<Vec<String>, Gap> {
    let names = ask.facts.list(dir).known()?;
    let fits = |name: &String| {
        name.strip_prefix(prefix)
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    Ok(names.into_iter().filter(fits).collect())
}

fn governor(ask: &Ask<'_>) -> Checked {
    let dir = format!("{CPU}/cpufreq");
    let policies = numbered(ask, &dir, "policy")?;
    if policies.is_empty() {
        return Answer::silent("no cpufreq policy: the hypervisor or firmware sets the clock");
    }
    let mut slow = Vec::new();
    let mut names = Vec::new();
    for policy in &policies {
        let path = format!("{dir}/{policy}/scaling_governor");
        let governor = ask.facts.text(&path).known()?;
        if governor != "performance" {
            slow.push(Set::new(Knob::path(&path), "performance"));
            names.push(governor);
        }
    }
    names.sort_unstable();
    names.dedup();
    if slow.is_empty() {
        return Answer::fine(format!("performance on {} policies", policies.len()));
    }
    let seen = format!("{} on {} of {} policies", names.join(", "), slow.len(), policies.len());
    Answer::found(
        seen,
        "performance",
        "the frequency follows the load, so the first packets of a burst run on a slow CPU",
    )
    .changes(slow)
}

fn turbo(ask: &Ask<'_>) -> Checked {
    let intel = format!("{CPU}/intel_pstate/no_turbo");
    let boost = format!("{CPU}/cpufreq/boost");
    let (path, is_on, off) = if let Ok(value) = ask.facts.number(&intel).known() {
        (intel, value == 0, 1_u64)
    } else {
        let value = ask.facts.number(&boost).known()?;
        (boost, value == 1, 0)
    };
    match (is_on, ask.goal) {
        (true, Some(Benchmark)) => Answer::found(
            "boost is on",
            "off, for numbers that repeat",
            "boost depends on heat and on the load of other cores",
        )
        .change(Set::new(Knob::path(&path), off)),
        (false, Some(Throughput | Latency)) => {
            Answer::found("boost is off", "on", "single cores could run faster")
                .change(Set::new(Knob::path(&path), 1 - off))
        }
        (is_on, _) => Answer::fine(if is_on { "boost is on" } else { "boost is off" }),
    }
}

fn smt(ask: &Ask<'_>) -> Checked {
    let active = ask.facts.number(&format!("{CPU}/smt/active")).known()?;
    if active == 0 {
        return Answer::fine("no hyper-threads are in use");
    }
    Answer::found(
        "two threads share each core",
        "off, or no load on the second threads",
        "load on one changes the other's speed",
    )
    .change(Set::new(Knob::path(&format!("{CPU}/smt/control")), "off"))
}

fn cstates(ask: &Ask<'_>) -> Checked {
    let dir = format!("{CPU}/cpu0/cpuidle");
    let mut deep = Vec::new();
    let mut worst = 0;
    for state in numbered(ask, &dir, "state")? {
        let latency = ask.facts.number(&format!("{dir}/{state}/latency")).known()? as u64;
        let disabled = ask.facts.number(&format!("{dir}/{state}/disable")).known()?;
        if latency > DEEP_US && disabled == 0 {
            worst = worst.max(latency);
            deep.push(state);
        }
    }
    if deep.is_empty() {
        return Answer::fine(format!("no idle state takes longer than {DEEP_US} us to leave"));
    }
    let cpus = numbered(ask, CPU, "cpu")?;
    let sets = cpus.iter().flat_map(|cpu| {
        let path = move |state: &String| format!("{CPU}/{cpu}/cpuidle/{state}/disable");
        deep.iter().map(move |state| Set::new(Knob::path(&path(state)), 1))
    });
    let sets: Vec<Set> = sets.collect();
    Answer::found(
        format!("{} idle states take up to {worst} us to leave", deep.len()),
        format!("none above {DEEP_US} us"),
        "a packet that wakes a CPU waits that long",
    )
    .changes(sets)
}

fn pm_qos(ask: &Ask<'_>) -> Checked {
    let mut by_limit = std::collections::BTreeMap::<String, Vec<u32>>::new();
    for cpu in numbered(ask, CPU, "cpu")? {
        let path = format!("{CPU}/{cpu}/power/pm_qos_resume_latency_us");
        let limit = ask.facts.text(&path).known()?;
        let number = cpu.trim_start_matches("cpu").parse().unwrap_or_default();
        by_limit.entry(limit).or_default().push(number);
    }
    let words = by_limit.into_iter().map(|(limit, mut cpus)| {
        cpus.sort_unstable();
        let cpus = rxpath_core::CpuList(cpus);
        match limit.as_str() {
            "0" => format!("no limit on CPUs {cpus}"),
            "n/a" => format!("CPUs {cpus} may not sleep"),
            us => format!("{us} us on CPUs {cpus}"),
        }
    });
    Answer::recorded(words.collect::<Vec<_>>().join(", ") + "; /dev/cpu_dma_latency is not read")
}

fn throttled(ask: &Ask<'_>) -> Checked {
    let topology = (&ask.facts.topology).known()?;
    let mut cores = BTreeMap::new();
    for cpu in &topology.cpus {
        let count = |text: &str| text.parse().ok();
        let read = ask.facts.count_in(&throttle_path(cpu.cpu), count).into_value().flatten();
        if let Some(count) = read {
            // Both hyper-threads of a core show the same per-core count.
            let first = cpu.siblings.value().and_then(|all| all.as_slice().first().copied());
            cores.insert(first.unwrap_or(cpu.cpu), count);
        }
    }
    if cores.is_empty() {
        return Answer::silent("this host does not count throttling (a VM?)");
    }
    let total = Count::sum(cores.into_values());
    let told = ask.facts.watched.tell(total, "cuts of a core's clock for heat", "boot");
    match total.evidence() {
        Evidence::Never => Answer::recorded("never since boot"),
        Evidence::Old => Answer::recorded(told),
        Evidence::Now | Evidence::Unknown => {
            Answer::caution(format!("{told}: look at the count during a run"))
        }
    }
}
