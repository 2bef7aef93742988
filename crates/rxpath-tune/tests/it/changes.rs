//! What a rule calls a change is one that a plan can take: of a setting that is ours, to a value that it can have.

use std::collections::BTreeSet;
use std::fs;

use rxpath_host::Root;
use rxpath_tune::plan::from_findings;
use rxpath_tune::plan::make::ChangeRequest;
use rxpath_tune::{Ask, Finding, Goal, HostFacts, Scope, check};

use crate::cases::cases;
use crate::fixture::{Bench, dir};

/// What is wrong with the changes of these findings, and which rules had some.
fn untakeable(findings: &[Finding], rules: &mut BTreeSet<String>) -> Vec<String> {
    let changing: Vec<Finding> =
        findings.iter().filter(|finding| !finding.changes.is_empty()).cloned().collect();
    rules.extend(changing.iter().map(|finding| finding.id.clone()));
    let (requests, left_out) = from_findings::requests(&changing, &[]);
    let left = left_out.into_iter().map(|left| format!("{}: {}", left.what, left.why));
    let refused = requests.iter().filter_map(|request| {
        let said = ChangeRequest::parse(&format!("{}={}", request.knob, request.value)).err()?;
        Some(format!("{}: {said}", request.because))
    });
    left.chain(refused).collect()
}

#[test]
fn every_change_of_every_rule_is_one_that_a_plan_takes() {
    let bench = Bench::new();
    let mut rules = BTreeSet::new();
    let mut wrong = BTreeSet::new();
    for (name, case) in cases() {
        // A change may depend on the goal, so a case is asked for each.
        let goals = [None].into_iter().chain(Goal::ALL.map(Some));
        let found = bench.with(&case.host, |facts| {
            let findings = goals.flat_map(|goal| check(&Ask { facts, goal }).findings);
            untakeable(&findings.collect::<Vec<_>>(), &mut rules)
        });
        wrong.extend(found.into_iter().map(|why| format!("{name}: {why}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Held against something: each rule whose own text has a change is among them.
    assert!(rules.len() >= 45, "{} rules have changes: {rules:?}", rules.len());
}

#[test]
fn every_change_on_the_captured_hosts_is_one_that_a_plan_takes() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(dir().join("../hosts")).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let facts = HostFacts::collect(&Root::tree(&path).unwrap(), &Scope::default());
        for goal in [None].into_iter().chain(Goal::ALL.map(Some)) {
            let findings = check(&Ask { facts: &facts, goal }).findings;
            let found = untakeable(&findings, &mut BTreeSet::new());
            wrong.extend(found.into_iter().map(|why| format!("{}: {why}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
