//! Frequency, boost, hyper-threads, idle states.

use std::collections::BTreeMap;

use crate::facts::throttle_path;
use crate::prelude::*;

pub(super) const CPU: &str = "/sys/devices/system/cpu";

/// An idle state with a longer exit latency shows in round-trip times, in us.
const DEEP_US: u64 = 20;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("cpu-governor", Check::Host(governor)),
    ("cpu-turbo", Check::Host(turbo)),
    ("cpu-smt", Check::Host(smt)),
    ("cpu-cstates", Check::Host(cstates)),
    ("pm-qos-latency", Check::Host(pm_qos)),
    ("thermal-throttle", Check::Host(throttled)),
];

/// Directories below `dir` whose names begin with `prefix` and a number.
pub(super) fn numbered(ask: &Ask<'_>, dir: &str, prefix: &str) -> Result<Vec<String>, Gap> {
    let names = ask.facts.list(dir).known()?;
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let fits = |name: &String| name.strip_prefix(prefix).is_some_and(is_number);
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
    Answer::observed(seen).changes(slow)
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
    Answer::observed("two threads share each core")
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
