//! The range of CPU frequencies that the governor may use.

use super::power::{CPU, CPUFREQ, numbered};
use crate::prelude::*;

/// Rules of this file.
pub const RULES: &[Rule] = &[Rule {
    id: "cpu-min-freq",
    what: "Can the CPU reach its maximum frequency, and does it stay there?",
    applies: "hosts that show cpufreq policies (few VMs do)",
    weight: Weight::by_goal().when(Latency, Info).when(Throughput, Info).when(Benchmark, Info),
    check: Check::Host(range),
    why: "A cap below the CPU's maximum is often left behind by a tool that was killed before it restored the \
          setting. A floor below the cap lets the frequency fall between bursts.",
    mechanism: "cpufreq_set_policy (drivers/cpufreq/cpufreq.c) keeps the governor between scaling_min_freq and \
                scaling_max_freq. With the performance governor the floor does not matter.",
    not_when: "power or heat is the limit, or the cap makes runs comparable",
    side_effects: "power and heat; less room for boost of other cores",
    set_now: "cd /sys/devices/system/cpu/cpufreq/policyN; cat scaling_max_freq > scaling_min_freq, for each",
    persist: "cpupower.service or a tuned profile",
    verify: "grep . /sys/devices/system/cpu/cpufreq/policy*/scaling_{min,max}_freq",
    since: "2.6",
    sources: &[CPUFREQ, "psf/pyperf issue 158 (machines left slow)"],
    ..Rule::judge(Area::Cpu)
}];

/// One policy's limits, in kHz.
struct Range {
    dir: String,
    floor: i64,
    cap: i64,
    top: i64,
    is_held: bool,
}

fn ranges(ask: &Ask<'_>) -> Result<Vec<Range>, Gap> {
    let policies = numbered(ask, &format!("{CPU}/cpufreq"), "policy")?;
    policies
        .iter()
        .map(|policy| {
            let dir = format!("{CPU}/cpufreq/{policy}");
            let number = |name: &str| ask.facts.number(&format!("{dir}/{name}")).known();
            let governor = ask.facts.text(&format!("{dir}/scaling_governor"));
            Ok(Range {
                floor: number("scaling_min_freq")?,
                cap: number("scaling_max_freq")?,
                top: number("cpuinfo_max_freq")?,
                is_held: governor.value().is_some_and(|name| name == "performance"),
                dir,
            })
        })
        .collect()
}

fn range(ask: &Ask<'_>) -> Checked {
    let ranges = ranges(ask)?;
    if ranges.is_empty() {
        return Answer::silent("no cpufreq policy: the hypervisor or firmware sets the clock");
    }
    let mhz = |khz: i64| khz / 1000;
    let capped: Vec<&Range> = ranges.iter().filter(|one| one.cap < one.top).collect();
    // A benchmark may want the cap: it makes runs comparable.
    if let (Some(first), true) = (capped.first(), ask.goal != Some(Benchmark)) {
        let sets = capped.iter().map(|one| {
            Set::new(Knob::path(&format!("{}/scaling_max_freq", one.dir)), one.top.unsigned_abs())
        });
        return Answer::found(
            format!("the clock is capped at {} MHz on {} policies", mhz(first.cap), capped.len()),
            format!("{} MHz, the CPU's maximum", mhz(first.top)),
            "a forgotten cap slows the handling of every packet",
        )
        .changes(sets.collect::<Vec<_>>());
    }
    let low: Vec<&Range> =
        ranges.iter().filter(|one| one.floor < one.cap && !one.is_held).collect();
    let Some(first) = low.first() else {
        return Answer::fine("the clock cannot fall");
    };
    let sets = low.iter().map(|one| {
        Set::new(Knob::path(&format!("{}/scaling_min_freq", one.dir)), one.cap.unsigned_abs())
    });
    Answer::found(
        format!(
            "the clock may fall to {} of {} MHz on {} policies",
            mhz(first.floor),
            mhz(first.cap),
            low.len()
        ),
        "a floor at the cap, or the governor performance",
        "the first packets of a burst wait for the clock",
    )
    .changes(sets.collect::<Vec<_>>())
}
