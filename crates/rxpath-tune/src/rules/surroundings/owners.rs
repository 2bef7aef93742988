//! Settings with two owners, and the fingerprint of all settings.

use rxpath_host::Group;
use rxpath_host::glob;
use rxpath_host::startup::Sets;

use super::persistent::{self, Claim};
use crate::facts::{Fits, LinkFile};
use crate::persist::LINK_KEYS;
use crate::prelude::*;
use crate::rule::Severity;

/// A group of settings and the programs that write it, by `comm` (cut to 15 bytes).
struct Owned {
    what: &'static str,
    owners: &'static [&'static str],
    severity: Severity,
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
    // Each may be configured to ignore the other's links, and often is.
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
        what: "Does each setting have at most one owner?",
        applies: "hosts on which a manager of settings runs, or whose start-up files name one setting twice",
        weight: Weight::always(Warn),
        effect: Effect::Measure,
        check: Check::Host(owners),
        text: Text {
            why: "Two programs that write one setting undo each other, and each reports success.",
            mechanism: "rxpath compares sysctl.d, udev rules and rc.local line by line, and their ethtool lines with \
                        the active .link file; it does not read scripts that they call. irqbalance moves interrupts \
                        every 10 s, whatever pinned them at boot (irqaffinity=, udev rules, rc.local); tuned writes \
                        its profile when it starts, bpftune on tracepoint events, NetworkManager and networkd when a \
                        link comes up, power-profiles-daemon and thermald when load or heat change.",
            not_when: "one of them is configured to leave these settings alone: suppress the finding with that reason",
            side_effects: "values set by the stopped program stay until they are changed",
            set_now: "systemctl stop UNIT of all but one",
            persist: "systemctl disable UNIT of all but one, or take the settings out of its configuration",
            undo: "systemctl enable --now UNIT",
            verify: "rxpath check reports it no more; the values are the same after an hour",
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
        what: "What is the fingerprint of this host's settings?",
        applies: "every host, for benchmarks",
        weight: Weight::by_goal().when(Benchmark, Info),
        effect: Effect::Measure,
        check: Check::Host(fingerprint),
        text: Text {
            why: "Two results are comparable only with the same settings. One number shows at a glance whether the \
                  settings were the same.",
            mechanism: "SHA-256 over the settings that are read here, by name: kernel and its options and parameters, \
                        CPUs and their clocks, sysctls, devices with their features, rings, queues, coalescing, RSS \
                        and steering. Counters, times and transient values are left out.",
            not_when: NO_SETTING,
            side_effects: "none",
            set_now: NO_SETTING,
            persist: NO_SETTING,
            undo: NOTHING_CHANGED,
            verify: "the same number before and after a run; `rxpath compare A B` names what differs between two runs",
            since: "any",
            sources: &[
                "rxpath: crates/rxpath-tune/src/facts/fingerprint.rs lists what is left out",
            ],
        },
    },
];

fn owners(ask: &Ask<'_>) -> Checked {
    let mut twice = files(ask);
    let mut worst = if twice.is_empty() { Info } else { Warn };
    let processes = match (&ask.facts.processes).known() {
        Ok(processes) => processes,
        Err(_) if !twice.is_empty() => return found(&twice, worst),
        Err(gap) => return Err(gap),
    };
    let mut any = !twice.is_empty();
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
        return Answer::silent(
            "no known manager of settings runs, and no two start-up files differ",
        );
    }
    if twice.is_empty() {
        return Answer::fine("no two of the known ones write the same settings");
    }
    found(&twice, worst)
}

fn found(twice: &[String], worst: Severity) -> Checked {
    Found::new(twice.join("; "), "one owner of each", "each overwrites the other's value")
        .severity(worst)
        .advice("stop all but one, or configure each to leave the others' settings alone")
        .answer()
}

/// Settings that two files keep with different values, and groups of a device's settings that a .link file and a line of
/// a start-up file both set.
fn files(ask: &Ask<'_>) -> Vec<String> {
    let claims = persistent::claims(ask).into_iter();
    let mut twice: Vec<String> =
        claims.filter_map(|(path, claims)| contradiction(&path, &claims)).collect();
    let tools: Vec<(&str, &str, &str, Group)> = ask
        .facts
        .startup()
        .iter()
        .filter_map(|step| match &step.sets {
            Sets::Device { device, command } => Some((
                step.place.as_str(),
                device.as_str(),
                command.as_str(),
                ethtool_group(command)?,
            )),
            Sets::File { .. } => None,
        })
        .collect();
    let devices = ask.facts.devices.iter().filter(|_| !tools.is_empty());
    for (device, file) in devices.filter_map(|device| Some((device, link_file(ask, device)?))) {
        for (place, _, command, group) in
            tools.iter().filter(|(_, pattern, ..)| glob::is_match(pattern, &device.name))
        {
            let mut keys = LINK_KEYS.iter().filter(|(of, _, _)| of == group);
            if let Some((_, _, key)) = keys.find(|(_, _, key)| file.settings.contains_key(*key)) {
                twice.push(format!(
                    "{}: {} ({key}=) and {place} ({command})",
                    device.name, file.file
                ));
            }
        }
    }
    twice
}

/// Two files that keep different values of one setting.
fn contradiction(path: &str, claims: &[Claim]) -> Option<String> {
    let file = |claim: &Claim| claim.place.split(':').next().map(str::to_owned);
    // Within one file the last line is meant.
    let mut last: Vec<(&Claim, &String)> = Vec::new();
    for claim in claims {
        last.retain(|(before, _)| file(before) != file(claim));
        last.extend(claim.value.as_ref().map(|value| (claim, value)));
    }
    let (first, value) = last.first()?;
    let (other, differs) = last.iter().find(|(_, to)| !persistent::is_same(path, value, to))?;
    let name = persistent::called(path);
    Some(format!("{name}: {} says {value}, {} says {differs}", first.place, other.place))
}

/// The active .link file of a device; `None` if it is not known.
fn link_file(ask: &Ask<'_>, device: &Device) -> Option<LinkFile> {
    let first =
        ask.facts.link_files().into_iter().find_map(|file| match ask.facts.fits(&file, device) {
            Fits::No => None,
            Fits::Yes => Some(Some(file)),
            Fits::Unknown(_) => Some(None),
        });
    first.flatten()
}

/// The group of settings that an option of ethtool(8) changes.
fn ethtool_group(command: &str) -> Option<Group> {
    match command.split(' ').nth(1)? {
        "-A" | "--pause" => Some(Group::Pause),
        "-C" | "--coalesce" => Some(Group::Coalesce),
        "-G" | "--set-ring" => Some(Group::Rings),
        "-K" | "--features" | "--offload" => Some(Group::Features),
        "-L" | "--set-channels" => Some(Group::Channels),
        // It changes Wake-on-LAN, the port and messages as well.
        "-s" | "--change" => ["speed", "duplex", "autoneg", "advertise"]
            .iter()
            .any(|word| command.split(' ').any(|said| said == *word))
            .then_some(Group::LinkModes),
        "--set-fec" => Some(Group::Fec),
        "--set-eee" => Some(Group::Eee),
        "-X" | "--set-rxfh-indir" | "--rxfh" => Some(Group::Rss),
        _ => None,
    }
}

/// Permanent interrupt pins: a boot parameter, udev rules and start scripts that write affinities.
///
/// **Caveat** a unit or script elsewhere is not found, and masks alone do not show who wrote them.
fn pins(ask: &Ask<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(list) = ask.facts.kernel.parameter("irqaffinity") {
        found.push(format!("irqaffinity={list}"));
    }
    let lines = ask.facts.startup().iter().filter(
        |step| matches!(&step.sets, Sets::File { path, .. } if path.contains("/smp_affinity")),
    );
    found.extend(lines.map(|step| step.place.clone()));
    found
}

fn fingerprint(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.release).known()?;
    let print = ask.facts.fingerprint();
    Answer::recorded(format!("settings {} over {} facts", print.short(), print.facts_count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_each_file_is_held_against_the_others() {
        let of = |lines: &[(&str, Option<&str>)]| {
            let claim = |(place, value): &(&str, Option<&str>)| Claim {
                place: (*place).to_owned(),
                value: value.map(str::to_owned),
            };
            let claims: Vec<Claim> = lines.iter().map(claim).collect();
            contradiction("/proc/sys/net/a", &claims)
        };
        assert_eq!(of(&[("a", Some("1")), ("b:3", Some("1"))]), None);
        assert_eq!(of(&[("b:3", Some("1")), ("b:4", Some("2"))]), None, "one file");
        let found = of(&[("b:3", Some("1")), ("b:4", Some("2")), ("c:1", Some("1"))]);
        assert_eq!(found.as_deref(), Some("net.a: b:4 says 2, c:1 says 1"));
        assert_eq!(of(&[("a", Some("1")), ("b:3", Some("2")), ("b:9", None)]), None, "not known");
    }
}
