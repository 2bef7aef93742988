//! What shares the CPUs: RCU callbacks on isolated CPUs, and other programs on all CPUs.

use rxpath_core::CpuList;

use crate::prelude::*;

const PRESSURE: &str = "/proc/pressure/cpu";

/// If tasks waited for a CPU for more than this percentage of the last 10 s, they disturb a measurement.
const CROWDED_PERCENT: f64 = 5.0;

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("rcu-nocbs", Check::Host(callbacks)), ("other-load", Check::Host(load))];

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
