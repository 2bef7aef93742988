//! Cgroup CPU limits that throttle programs for part of each period.

use std::collections::BTreeSet;

use rxpath_host::read::cgroup::with_parents;

use crate::facts::{CGROUPS, is_outside, stat_file};
use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("cgroup-throttle", Check::Host(throttle))];

/// A group's limit, and its throttling since the group was created.
struct Limit {
    /// `cpu.max`: time and period, in us.
    text: String,
    /// Periods in which the group ran.
    periods_count: u64,
    /// Periods in which it was throttled.
    stopped: Count,
    /// Total throttled time, where the kernel reports it.
    stopped_us: Option<u64>,
}

impl Limit {
    /// As one line; the share is of the periods in which the group ran.
    fn told(&self, group: &str) -> String {
        let Self { text, periods_count, stopped, stopped_us } = self;
        let stopped_count = stopped.total;
        let share = match periods_count {
            0 => String::new(),
            count => format!(" = {:.1} %", stopped_count as f64 * 100.0 / *count as f64),
        };
        let time = stopped_us
            .filter(|_| stopped_count > 0)
            .map_or_else(String::new, |us| format!(", for {:.1} s in all", us as f64 / 1e6));
        let group = if group.is_empty() { "/" } else { group };
        format!(
            "{group} {text} us (stopped in {stopped_count} of {periods_count} periods{share}{time})"
        )
    }
}

/// A group's limit; `None` where it has none.
fn limit_of(ask: &Ask<'_>, group: &str) -> Result<Option<Limit>, Gap> {
    let path = format!("{CGROUPS}{group}/cpu.max");
    // The file exists only where the parent group enables the controller; the host's root group has none.
    let is_there =
        group.is_empty() || (ask.facts.is_live() && ask.facts.exists(&format!("{CGROUPS}{group}")));
    if is_there && !ask.facts.exists(&path) {
        return Ok(None);
    }
    let text = ask.facts.text(&path).known()?;
    if text.starts_with("max") {
        return Ok(None);
    }
    let path = stat_file(group);
    let count = |name: &str| {
        let find = |stat: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|count| count.trim().parse::<u64>().ok())
        };
        ask.facts.count_in(&path, find).known()
    };
    let needed =
        |name: &str| count(name)?.ok_or_else(|| Gap::Absent(format!("{path} has no {name}")));
    Ok(Some(Limit {
        periods_count: needed("nr_periods")?.total,
        stopped: needed("nr_throttled")?,
        stopped_us: count("throttled_usec")?.map(|count| count.total),
        text,
    }))
}

fn throttle(ask: &Ask<'_>) -> Checked {
    let groups = ask.facts.cgroups()?;
    let programs = groups.programs_count;
    let of = match &ask.facts.scope.processes {
        Some(_) => format!("the processes asked about ({programs})"),
        None => format!("this process and {programs} programs that receive"),
    };
    let groups = groups.names;
    if groups.is_empty() {
        return Answer::silent("no cgroup of version 2");
    }
    let (outside, groups): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| is_outside(group));
    let all: BTreeSet<String> = groups.iter().flat_map(|group| with_parents(group)).collect();
    let mut limited = Vec::new();
    let mut stopped = Vec::new();
    for group in &all {
        if let Some(limit) = limit_of(ask, group)? {
            stopped.push(limit.stopped);
            limited.push(limit.told(group));
        }
    }
    if let (true, Some(group)) = (limited.is_empty(), outside.first()) {
        let why = format!("the group {group} lies outside this control group namespace");
        return Err(Gap::Absent(why));
    }
    if limited.is_empty() {
        return Answer::fine(format!("no limit on the groups of {of}"));
    }
    let stopped = Count::sum(stopped);
    let mut observed = format!("cpu.max of {}", limited.join(", "));
    if stopped.total > 0 {
        let told = ask.facts.watched.tell(stopped, "stops", "the groups were made");
        observed += &format!("; {told}");
    }
    let found = Answer::observed(observed).advice(
        "change the limit where it was set: CPUQuota= of the unit, or the container's limit",
    );
    // A limit that was never reached has cost nothing so far.
    if stopped.total > 0 {
        found.rests_on(stopped, &ask.facts.watched)
    } else {
        found.severity(Info).size(Unmeasured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_stops_has_its_base() {
        let told = |periods_count, stopped, stopped_us| {
            let text = "50000 100000".to_owned();
            let stopped = Count { total: stopped, recent: None };
            Limit { text, periods_count, stopped, stopped_us }.told("/a")
        };
        assert_eq!(
            told(400, 3, Some(1_250_000)),
            "/a 50000 100000 us (stopped in 3 of 400 periods = 0.8 %, for 1.2 s in all)"
        );
        assert_eq!(told(0, 0, None), "/a 50000 100000 us (stopped in 0 of 0 periods)");
    }
}
