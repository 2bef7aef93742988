//! Made-up hosts of many kinds: what an expert would say of each of them for each goal, and nothing beyond it.
//!
//! Each host is a captured tree in a directory of its own (`hosts/tree.rs`), sound where its maker says nothing else. For
//! each goal it says what must be found, what must come first, and what else may be said. What rules would change must
//! not harm the host (`hosts/harm.rs`), whatever the goal.

use std::collections::BTreeSet;

mod bonds;
mod card;
mod cloud;
mod containers;
mod expect;
mod files;
mod harm;
mod isolated;
mod routers;
mod servers;
mod settings;
mod small;
mod sound;
mod steering;
mod tree;
mod virtuals;

use expect::Case;

/// Differences that are known: what is not here must not be, and what is here must be so still.
///
/// `*` stands for every goal.
const PENDING: &[&str] = &[];

/// Whether an entry of the list is this fault.
fn covers(entry: &str, fault: &str) -> bool {
    entry == fault
        || entry.split_once(" *: ").is_some_and(|(host, what)| {
            let rest = fault.strip_prefix(host).and_then(|rest| rest.strip_prefix(' '));
            rest.and_then(|rest| rest.split_once(": ")).is_some_and(|(_, said)| said == what)
        })
}

fn judge(cases: &[Case]) {
    let faults: Vec<String> = cases.iter().flat_map(Case::faults).collect();
    let is_known = |fault: &str| PENDING.iter().any(|entry| covers(entry, fault));
    let new: Vec<&String> = faults.iter().filter(|fault| !is_known(fault)).collect();
    assert!(new.is_empty(), "{} differences: {new:#?}", new.len());
    let own = |entry: &&&str| cases.iter().any(|case| is_of(entry, case.name));
    let is_met = |entry: &str| faults.iter().any(|fault| covers(entry, fault));
    let gone: Vec<_> = PENDING.iter().filter(own).filter(|entry| !is_met(entry)).collect();
    assert!(gone.is_empty(), "right by now: take it out of PENDING: {gone:#?}");
}

/// Whether an entry or a fault is about the host of this name.
fn is_of(entry: &str, name: &str) -> bool {
    let goal = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
    goal.and_then(|rest| rest.split_once(": ")).is_some_and(|(goal, _)| !goal.contains(' '))
}

#[test]
fn servers_are_judged_as_by_an_expert() {
    judge(&servers::hosts());
}

#[test]
fn steering_is_judged_as_by_an_expert() {
    judge(&steering::hosts());
}

#[test]
fn isolated_cpus_are_judged_as_by_an_expert() {
    judge(&isolated::hosts());
}

#[test]
fn virtual_machines_are_judged_as_by_an_expert() {
    judge(&cloud::hosts());
}

#[test]
fn routers_are_judged_as_by_an_expert() {
    judge(&routers::hosts());
}

#[test]
fn hosts_of_containers_are_judged_as_by_an_expert() {
    judge(&containers::hosts());
}

#[test]
fn bonds_are_judged_as_by_an_expert() {
    judge(&bonds::hosts());
}

#[test]
fn small_machines_are_judged_as_by_an_expert() {
    judge(&small::hosts());
}

#[test]
fn settings_are_judged_as_by_an_expert() {
    judge(&settings::hosts());
}

#[test]
fn every_setting_that_starves_is_named() {
    let guide = settings::hosts().into_iter().find(|case| case.name.starts_with("h21")).unwrap();
    let report = guide.report(None);
    let limits = ["starving-settings", "protocol-limits"];
    let found = report.findings.iter().filter(|one| limits.contains(&one.id.as_str()));
    let named: Vec<&String> = found.map(|one| &one.observed).collect();
    for (key, _) in settings::STARVING {
        assert!(named.iter().any(|observed| observed.contains(key)), "{key}: {named:?}");
    }
}

#[test]
fn every_host_has_a_name_of_its_own_and_what_is_pending_is_about_one() {
    let all = [
        servers::hosts(),
        steering::hosts(),
        isolated::hosts(),
        cloud::hosts(),
        routers::hosts(),
        containers::hosts(),
        bonds::hosts(),
        small::hosts(),
        settings::hosts(),
    ];
    let names: Vec<&str> = all.iter().flatten().map(|case| case.name).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!((distinct.len(), names.len() >= 35), (names.len(), true), "{names:?}");
    for entry in PENDING {
        assert!(names.iter().any(|name| is_of(entry, name)), "no host of this name: {entry}");
    }
}
