//! Settings with two owners, and what a host is set to as a whole.

use crate::prelude::*;

/// A group of settings and the programs that write it, by `comm` (cut to 15 bytes).
struct Owned {
    what: &'static str,
    owners: &'static [&'static str],
    severity: crate::rule::Severity,
}

const OWNED: [Owned; 3] = [
    Owned {
        what: "sysctls of buffers, backlog and budget",
        owners: &["tuned", "bpftune", "ktune"],
        severity: Warn,
    },
    Owned {
        what: "governor and energy preference",
        owners: &["tuned", "power-profiles-", "thermald"],
        severity: Warn,
    },
    // Each may be told to leave the other's links alone, and often is.
    Owned {
        what: "MTU and ethtool settings of links",
        owners: &["NetworkManager", "systemd-network"],
        severity: Info,
    },
];

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "two-owners",
        area: Area::Surroundings,
        kind: Kind::Judge,
        what: "Has each setting one owner at most?",
        applies: "hosts on which a manager of settings runs",
        weight: Weight::always(Warn),
        effect: Effect::Measure,
        check: Check::Host(owners),
        text: Text {
            why: "Two programs that write one setting undo each other, and each reports that all is well.",
            mechanism: "irqbalance moves interrupts every 10 s, whatever pinned them at boot (irqaffinity=, udev rules and \
                        rc.local are looked at); tuned writes its profile when it starts, bpftune on events of its tracepoints, NetworkManager \
                        and networkd when a link comes up, power-profiles-daemon and thermald when load or heat change.",
            not_when: "one of them was told to leave these settings alone: suppress the finding with that reason",
            side_effects: "what the stopped one did stays until somebody sets it back",
            set_now: "systemctl stop UNIT of all but one",
            persist: "systemctl disable UNIT of all but one, or take the settings out of its configuration",
            undo: "systemctl enable --now UNIT",
            verify: "rxpath check says nothing more; the values are the same after an hour",
            since: "any",
            sources: &[
                "redhat-performance/tuned issue 78",
                "oracle/bpftune issue 178",
                "power-profiles-daemon: README, conflicts with tuned",
            ],
        },
    },
    Rule {
        id: "env-fingerprint",
        area: Area::Surroundings,
        kind: Kind::Record,
        what: "What is this host set to, in one number?",
        applies: "every host, for benchmarks",
        weight: Weight::by_goal().when(Benchmark, Info),
        effect: Effect::Measure,
        check: Check::Host(fingerprint),
        text: Text {
            why: "Two results compare only when what they depend on was the same. One number tells at a glance \
                  whether it was.",
            mechanism: "SHA-256 over the settings that are read here, by name: kernel and its options and parameters, \
                        CPUs and their clocks, sysctls, devices with their features, rings, queues, coalescing, RSS \
                        and steering. Counters, times and what comes and goes are left out.",
            not_when: NO_SETTING,
            side_effects: "none",
            set_now: NO_SETTING,
            persist: NO_SETTING,
            undo: NOTHING_CHANGED,
            verify: "the same number before and after a run; `rxpath compare` names what differs between two runs",
            since: "any",
            sources: &[
                "rxpath: crates/rxpath-tune/src/facts/fingerprint.rs lists what is left out",
            ],
        },
    },
];

fn owners(ask: &Ask<'_>) -> Checked {
    let processes = (&ask.facts.processes).known()?;
    let mut twice = Vec::new();
    let mut worst = Info;
    let mut any = false;
    for owned in &OWNED {
        let run: Vec<&str> =
            owned.owners.iter().copied().filter(|name| processes.runs(name)).collect();
        any |= !run.is_empty();
        if run.len() > 1 {
            worst = worst.max(owned.severity);
            twice.push(format!("{}: {}", owned.what, run.join(" and ")));
        }
    }
    if processes.runs("irqbalance") {
        any = true;
        let pins = pins(ask);
        if !pins.is_empty() {
            worst = worst.max(Warn);
            let pins = pins.join(", ");
            twice.push(format!("affinities of interrupts: irqbalance and static pins ({pins})"));
        }
    }
    if twice.is_empty() {
        processes.complete()?;
    }
    if !any {
        return Answer::silent("no known manager of settings runs");
    }
    if twice.is_empty() {
        return Answer::fine("no two of the known ones write the same settings");
    }
    Found::new(twice.join("; "), "one owner of each", "what one sets the other sets back")
        .severity(worst)
        .advice("stop all but one, or tell each what to leave alone")
        .answer()
}

/// What pins interrupts for good: a boot parameter, udev rules and start scripts that write affinities.
///
/// **Caveat** a unit or script elsewhere is not found, and masks alone do not tell who wrote them.
fn pins(ask: &Ask<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(list) = ask.facts.kernel.parameter("irqaffinity") {
        found.push(format!("irqaffinity={list}"));
    }
    let rules = "/etc/udev/rules.d";
    let names = ask.facts.list(rules).into_value().unwrap_or_default();
    let files = names.iter().map(|name| format!("{rules}/{name}"));
    for file in files.chain(["/etc/rc.local".to_owned(), "/etc/rc.d/rc.local".to_owned()]) {
        let text = ask.facts.text(&file).into_value().unwrap_or_default();
        let writes =
            |line: &str| !line.trim_start().starts_with('#') && line.contains("smp_affinity");
        if text.lines().any(writes) {
            found.push(file);
        }
    }
    found
}

fn fingerprint(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.release).known()?;
    let print = ask.facts.fingerprint();
    Answer::recorded(format!("settings {} over {} facts", print.short(), print.facts_count))
}
