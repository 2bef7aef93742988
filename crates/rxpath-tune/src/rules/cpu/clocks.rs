//! The range of CPU frequencies that the governor may use.

use super::power::{CPU, numbered};
use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("cpu-min-freq", Check::Host(range))];

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
        .changes(sets);
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
    .changes(sets)
}
