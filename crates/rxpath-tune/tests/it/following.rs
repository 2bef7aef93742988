//! Advice that is followed ends: the rule does not ask for the same setting again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rxpath_host::Knob;
use rxpath_tune::plan::settle::settle;
use rxpath_tune::{Ask, Finding, Goal, HostFacts, Set, check};
use serde_json::json;

use crate::cases::cases;
use crate::fixture::{Bench, Overlay, dir, merge};

const LATER: &str = "/later";

fn goals() -> impl Iterator<Item = Option<Goal>> {
    [None].into_iter().chain(Goal::ALL.map(Some))
}

fn of_rule(facts: &HostFacts, goal: Option<Goal>, rule: &str) -> Vec<Finding> {
    let mut found = check(&Ask { facts, goal }).findings;
    found.retain(|finding| finding.id == rule);
    found
}

/// What is found of which device, by rule.
fn places(facts: &HostFacts, goal: Option<Goal>) -> BTreeMap<(String, Option<String>), String> {
    let found = check(&Ask { facts, goal }).findings;
    found.into_iter().map(|one| ((one.id, one.device), one.observed)).collect()
}

/// A file of the host with this overlay.
fn text_of(host: &Overlay, path: &str) -> Option<String> {
    host.files
        .get(path)
        .cloned()
        .or_else(|| fs::read_to_string(dir().join("base").join(path.trim_start_matches('/'))).ok())
}

/// The same host, on which no counter rose between the two readings.
fn quiescent(host: &Overlay) -> Overlay {
    let mut still = host.clone();
    let later: Vec<String> =
        host.files.keys().filter(|path| path.starts_with(LATER)).cloned().collect();
    for path in later {
        let first = path.trim_start_matches(LATER).to_owned();
        let mut text = text_of(host, &first).expect("a first reading");
        if let Some(dev) =
            first.strip_prefix("/netlink/device/").and_then(|it| it.strip_suffix(".json"))
        {
            let mut nic: serde_json::Value = serde_json::from_str(&text).unwrap();
            host.nic.get(dev).into_iter().for_each(|patch| merge(&mut nic, patch));
            text = nic.to_string();
        }
        if first == "/proc/uptime" {
            text = "4020.25 30001.00".into();
        }
        still.files.insert(path, text);
    }
    still
}

/// Even when the counters go on to rise as before, a setting that was made is not to be made again, further.
#[test]
fn no_rule_asks_for_a_setting_that_was_just_made() {
    let bench = Bench::new();
    let (mut wrong, mut followed) = (BTreeSet::new(), BTreeSet::new());
    for (name, case) in cases() {
        bench.with(&case.host, |facts| {
            for goal in goals() {
                let first = of_rule(facts, goal, &case.rule);
                let changes: Vec<Set> = first.into_iter().flat_map(|one| one.changes).collect();
                if changes.is_empty() {
                    continue;
                }
                followed.insert(case.rule.clone());
                for again in of_rule(&facts.planned(&changes), goal, &case.rule) {
                    for set in again.changes {
                        if changes.iter().any(|made| made.knob == set.knob) {
                            let observed = &again.observed;
                            wrong.insert(format!(
                                "{name} {goal:?} {}: {set} again: {observed}",
                                case.rule
                            ));
                        }
                    }
                }
            }
        });
    }
    assert!(wrong.is_empty(), "{} loops: {wrong:#?}", wrong.len());
    assert!(followed.len() >= 45, "{} rules were followed: {followed:?}", followed.len());
}

/// What the files of the next boot say of a setting is not for a plan to change: it tells of them.
const OF_FILES: [&str; 2] = ["persistent-vs-live", "stale-settings"];

/// A plan is whole: once it is applied, no rule finds what it had not found before.
#[test]
fn no_plan_makes_a_rule_find_something_new() {
    let bench = Bench::new();
    let (mut wrong, mut plans) = (BTreeSet::new(), 0);
    for (name, case) in cases() {
        bench.with(&case.host, |facts| {
            for goal in goals() {
                let before = places(facts, goal);
                let settled = settle(facts, goal, &[]);
                let changes: Vec<&Set> =
                    settled.findings.iter().flat_map(|one| &one.changes).collect();
                plans += usize::from(!changes.is_empty());
                let host = facts.planned(changes.iter().copied());
                for (place, observed) in places(&host, goal) {
                    let is_told = OF_FILES.contains(&place.0.as_str())
                        && settled.left_out.iter().any(|left| left.what == place.0);
                    if !(is_told || before.contains_key(&place)) {
                        wrong
                            .insert(format!("{name} {goal:?}: {place:?}: {observed}: {changes:?}"));
                    }
                }
                let knobs: BTreeSet<&Knob> = changes.iter().map(|set| &set.knob).collect();
                assert_eq!(knobs.len(), changes.len(), "{name} {goal:?}: {changes:?}");
            }
        });
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
    assert!(plans >= 200, "{plans} plans");
}

fn planned(host: serde_json::Value, goal: Goal) -> Vec<String> {
    let overlay: Overlay = serde_json::from_value(host).unwrap();
    Bench::new().with(&overlay, |facts| {
        let settled = settle(facts, Some(goal), &[]);
        settled.findings.iter().flat_map(|one| &one.changes).map(ToString::to_string).collect()
    })
}

#[test]
fn a_nic_that_gets_more_queues_gets_no_rps() {
    let host =
        json!({"nic": {"eth0": {"channels": {"value": {"combined": {"now": 1, "max": 8}}}}}});
    let changes = planned(host, Goal::Throughput);
    assert!(changes.iter().any(|one| one.starts_with("eth0/channels/combined")), "{changes:?}");
    assert!(!changes.iter().any(|one| one.contains("rps_cpus")), "{changes:?}");
}

#[test]
fn a_delay_that_was_the_drivers_is_set_once_it_stands_still() {
    let host =
        json!({"nic": {"eth0": {"coalesce": {"value": {"adaptive_rx": true, "rx_usecs": 100}}}}});
    let changes = planned(host, Goal::Latency);
    let at = |wanted: &str| changes.iter().position(|one| one.starts_with(wanted));
    let (off, delay) = (at("eth0/coalesce/adaptive-rx = off"), at("eth0/coalesce/rx-usecs"));
    assert!(off.is_some() && off < delay, "{changes:?}");
}

/// What counted long ago is said, and asks for nothing.
#[test]
fn a_counter_that_does_not_rise_asks_for_nothing() {
    let bench = Bench::new();
    let (mut wrong, mut asked) = (Vec::new(), BTreeSet::new());
    for (name, case) in cases() {
        let has_later = case.host.files.keys().any(|path| path.starts_with(LATER));
        let host = quiescent(&case.host);
        let mildest =
            if has_later { rxpath_tune::Severity::Info } else { rxpath_tune::Severity::Warn };
        let found = bench.with(&host, |facts| {
            let of = |goal| of_rule(facts, goal, &case.rule).into_iter().map(move |it| (goal, it));
            goals().flat_map(of).collect::<Vec<_>>()
        });
        for (goal, one) in found {
            let Some(counted) = one.counted else { continue };
            asked.insert(case.rule.clone());
            if !one.changes.is_empty() || one.severity > mildest {
                wrong.push(format!("{name} {goal:?} {}: {:?} {counted:?}", case.rule, one.changes));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(asked.len() >= 12, "{} rules rest on a counter: {asked:?}", asked.len());
}
