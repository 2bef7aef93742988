//! Limits of control groups that stop programs for parts of each period.

use std::collections::BTreeSet;

use crate::prelude::*;

const MOUNT: &str = "/sys/fs/cgroup";

/// Rules of this file.
pub const RULES: &[Rule] = &[Rule {
    id: "cgroup-throttle",
    area: Area::Cpu,
    kind: Kind::Judge,
    what: "Does no limit of a control group stop programs for parts of each period?",
    applies: "hosts that show the groups (cgroup 2) of the programs that receive, or of this process",
    weight: Weight::always(Info).when(Latency, Fail).when(Benchmark, Fail),
    effect: Effect::Follows {
        size: Multiple,
        text: "a group that used its quota stands still for the rest of 100 ms",
    },
    check: Check::Host(throttle),
    text: Text {
        why: "A limit of CPU time shows as stalls of tens of ms in an application that has plenty of CPUs.",
        mechanism: "throttle_cfs_rq (kernel/sched/fair.c) takes a group off the CPUs until its next period, and counts \
                    it in nr_throttled of cpu.stat. Read are cpu.max and cpu.stat of the groups of the programs with a \
                    receiving socket that this process may see, of rxpath's own, and of every group above them.",
        not_when: "the limit is the contract",
        side_effects: "the group may use more",
        set_now: "echo max > /sys/fs/cgroup/GROUP/cpu.max",
        persist: "CPUQuota= of the unit, limits of the container",
        undo: "write the limit back; rxpath reports it and changes nothing: it belongs to the manager of the group",
        verify: "nr_throttled in the group's cpu.stat stands still",
        since: "4.15",
        sources: &["kernel: Documentation/admin-guide/cgroup-v2.rst, cpu.max"],
    },
}];

/// The group of a process in the one hierarchy of version 2.
fn group_of(ask: &Ask<'_>, process: &str) -> Result<Option<String>, Gap> {
    let groups = ask.facts.text(&format!("/proc/{process}/cgroup")).known()?;
    Ok(groups.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned))
}

/// The group and those above it, without the root, which has no limit.
fn with_parents(group: &str) -> impl Iterator<Item = String> {
    let parts: Vec<String> =
        group.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    (1..=parts.len()).rev().map(move |count| format!("/{}", parts[..count].join("/")))
}

/// A group's limit and how often it was stopped for it; `None` where the group has no limit.
fn limit_of(ask: &Ask<'_>, group: &str) -> Result<Option<(String, u64)>, Gap> {
    let path = format!("{MOUNT}{group}/cpu.max");
    // Only groups whose parent hands the controller down have the file.
    if ask.facts.exists(&format!("{MOUNT}{group}"))
        && !ask.facts.exists(&path)
        && ask.facts.is_live()
    {
        return Ok(None);
    }
    let limit = ask.facts.text(&path).known()?;
    if limit.starts_with("max") {
        return Ok(None);
    }
    let stat = ask.facts.text(&format!("{MOUNT}{group}/cpu.stat")).known()?;
    let count = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    let count = count.and_then(|count| count.trim().parse().ok());
    let missing = || Gap::Absent(format!("{MOUNT}{group}/cpu.stat has no nr_throttled"));
    Ok(Some((limit, count.ok_or_else(missing)?)))
}

/// Groups to look at: of the programs that receive, as far as they are shown, and of this process.
fn groups(ask: &Ask<'_>) -> Result<(BTreeSet<String>, usize), Gap> {
    let mut groups: BTreeSet<String> = group_of(ask, "self")?.into_iter().collect();
    let Some(readers) = ask.facts.readers().into_value() else { return Ok((groups, 0)) };
    let mut receivers = 0;
    for pid in readers.seen.iter().map(|reader| reader.pid).collect::<BTreeSet<_>>() {
        // One that ended since has no group.
        if let Ok(Some(group)) = group_of(ask, &pid.to_string()) {
            receivers += 1;
            groups.insert(group);
        }
    }
    Ok((groups, receivers))
}

fn throttle(ask: &Ask<'_>) -> Checked {
    let (groups, receivers) = groups(ask)?;
    if groups.is_empty() {
        return Answer::silent("no cgroup of version 2");
    }
    let all: BTreeSet<String> = groups.iter().flat_map(|group| with_parents(group)).collect();
    let mut limited = Vec::new();
    let mut stopped = 0_u64;
    for group in &all {
        if let Some((limit, count)) = limit_of(ask, group)? {
            stopped = stopped.saturating_add(count);
            limited.push(format!("{group} {limit} (stopped {count} times)"));
        }
    }
    let of = format!("this process and {receivers} programs that receive");
    if limited.is_empty() {
        return Answer::fine(format!("no limit on the groups of {of}"));
    }
    let found = Found::new(
        format!("cpu.max of {}", limited.join(", ")),
        "max, or a limit that is never reached",
        "a group over its quota stands still",
    )
    .advice("the limit is its manager's: CPUQuota= of the unit, the container's limit");
    // A limit that nobody has reached has cost nothing so far.
    if stopped == 0 { found.severity(Info).size(Unmeasured).answer() } else { found.answer() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_parents_count_and_the_root_does_not() {
        let all: Vec<String> = with_parents("/system.slice/app.service").collect();
        assert_eq!(all, ["/system.slice/app.service", "/system.slice"]);
        assert_eq!(with_parents("/").count(), 0);
    }
}
