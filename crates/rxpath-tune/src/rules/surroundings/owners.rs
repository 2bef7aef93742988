//! Settings with two owners, and the fingerprint of all settings.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rxpath_host::read::startup::StartupLine;
use serde::Deserialize;

use super::persistent;
use crate::facts::{Fits, LinkFile};
use crate::persist::LINK_KEYS;
use crate::prelude::*;
use crate::rule_file::table;
use crate::weight::Severity;

/// Groups of settings and the programs that write them.
static OWNED: LazyLock<BTreeMap<String, Owned>> =
    LazyLock::new(|| table("rules/surroundings/owned"));

/// The programs that write a group of settings, by `comm` (cut to 15 bytes).
#[derive(Deserialize)]
struct Owned {
    owners: Vec<String>,
    severity: Severity,
}

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("two-owners", Check::Host(owners)), ("env-fingerprint", Check::Host(fingerprint))];

fn owners(ask: &Ask<'_>) -> Checked {
    let (mut twice, mut worst) = files(ask);
    let processes = match (&ask.facts.processes).known() {
        Ok(processes) => processes,
        Err(_) if !twice.is_empty() => return found(&twice, worst),
        Err(gap) => return Err(gap),
    };
    let mut any = !twice.is_empty();
    for (what, owned) in OWNED.iter() {
        let owners = owned.owners.iter().map(String::as_str);
        let run: Vec<&str> = owners.filter(|name| processes.runs(name)).collect();
        any |= !run.is_empty();
        if run.len() > 1 {
            worst = worst.max(owned.severity);
            twice.push(format!("{what}: {}", run.join(" and ")));
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
        whole(ask)?;
    }
    if !any {
        return Answer::silent(
            "no known manager of settings runs, and no two files name one setting",
        );
    }
    if twice.is_empty() {
        return Answer::fine("no two of the known ones write the same settings");
    }
    found(&twice, worst)
}

fn found(twice: &[String], worst: Severity) -> Checked {
    Answer::observed(twice.join("; "))
        .severity(worst)
        .advice("stop all but one, or configure each to leave the others' settings alone")
}

/// Whether every file was read in which a second owner may be.
fn whole(ask: &Ask<'_>) -> Result<(), Gap> {
    (&ask.facts.kernel.cmdline).known()?;
    ask.facts.startup_whole()?;
    // Only a line with ethtool sets what such a file sets.
    if ask.facts.startup().iter().any(|line| line.has("ethtool")) {
        ask.facts.link_files_whole()?;
    }
    ask.facts.kept_gap.clone().map_or(Ok(()), Err)
}

/// Settings of sysctl.d that a start-up file mentions, and the worst of them; groups of a device's settings that a .link
/// file and a line with `ethtool` both set.
fn files(ask: &Ask<'_>) -> (Vec<String>, Severity) {
    let mut twice = Vec::new();
    for (path, line) in persistent::in_files(ask) {
        for place in persistent::mentions(ask, &path) {
            twice.push(format!(
                "{}: {} sets it, {place} mentions it",
                persistent::called(&path),
                line.file
            ));
        }
    }
    let links = links(ask);
    let worst = if links.is_empty() { Info } else { Warn };
    twice.extend(links);
    (twice, worst)
}

/// Groups of settings that a .link file sets and a line with `ethtool` names.
fn links(ask: &Ask<'_>) -> Vec<String> {
    let mut twice = Vec::new();
    let lines: Vec<_> = ask.facts.startup().iter().filter(|line| line.has("ethtool")).collect();
    let devices = ask.facts.devices.iter().filter(|_| !lines.is_empty());
    for (device, file) in devices.filter_map(|device| Some((device, link_file(ask, device)?))) {
        for group in Group::ALL {
            let options = group.properties().ethtool;
            let keys = LINK_KEYS.iter().filter(|(of, ..)| *of == group).map(|(.., key)| key);
            let Some(key) = keys.into_iter().find(|key| file.settings.contains_key(*key)) else {
                continue;
            };
            let named = lines.iter().filter(|line| line.mentions_ethtool(&device.name, options));
            twice.extend(named.filter(|line| group != Group::LinkModes || is_mode(line)).map(
                |line| {
                    let (name, option) = (&device.name, options[0]);
                    format!("{name}: {} ({key}=) and {} (ethtool {option})", file.file, line.place)
                },
            ));
        }
    }
    twice
}

/// Whether `ethtool -s` changes the link's mode: it changes Wake-on-LAN, the port and messages, too.
fn is_mode(line: &StartupLine) -> bool {
    ["speed", "duplex", "autoneg", "advertise"].iter().any(|word| line.has(word))
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

/// Permanent interrupt pins: a boot parameter, udev rules and start scripts that write affinities.
///
/// **Caveat** a unit or script elsewhere is not found, and masks alone do not show who wrote them.
fn pins(ask: &Ask<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(list) = ask.facts.kernel.parameter("irqaffinity") {
        found.push(format!("irqaffinity={list}"));
    }
    let lines = ask.facts.startup().iter().filter(|line| line.mentions_irq("smp_affinity"));
    found.extend(lines.map(|line| line.place.clone()));
    found
}

fn fingerprint(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.release).known()?;
    let print = ask.facts.fingerprint();
    Answer::recorded(format!("settings {} over {} facts", print.short(), print.facts_count))
}
