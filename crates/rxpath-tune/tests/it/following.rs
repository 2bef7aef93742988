//! Advice that is followed ends: the rule does not ask for the same setting again.

use std::collections::BTreeSet;
use std::fs;

use rxpath_tune::knob::{Knob, Set, Value};
use rxpath_tune::{Ask, Finding, Goal, check};
use serde_json::json;

use crate::cases::cases;
use crate::fixture::{Bench, Overlay, dir, merge};

const LATER: &str = "/later";

fn goals() -> impl Iterator<Item = Option<Goal>> {
    [None].into_iter().chain(Goal::ALL.map(Some))
}

fn findings(bench: &Bench, host: &Overlay, goal: Option<Goal>, rule: &str) -> Vec<Finding> {
    let mut found = bench.with(host, |facts| check(&Ask { facts, goal }).findings);
    found.retain(|finding| finding.id == rule);
    found
}

/// A file of the host with this overlay.
fn text_of(host: &Overlay, path: &str) -> Option<String> {
    host.files
        .get(path)
        .cloned()
        .or_else(|| fs::read_to_string(dir().join("base").join(path.trim_start_matches('/'))).ok())
}

/// `always [madvise] never`: the kernel shows the chosen word among the others.
fn written(before: Option<String>, value: &str) -> String {
    let Some(before) = before.filter(|text| text.contains('[')) else { return value.to_owned() };
    let plain = before.replace(['[', ']'], "");
    plain
        .split_whitespace()
        .map(|word| if word == value { format!("[{word}]") } else { word.into() })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The field of a device's answers that a setting shows in, and its value there.
fn answer(set: &Set) -> Option<(String, serde_json::Value)> {
    let value = match &set.value {
        Value::Switch(on) => json!(on),
        Value::Number(number) => json!(number),
        Value::Numbers(numbers) => json!(numbers),
        Value::Text(text) => json!(text),
    };
    let dev = set.knob.dev()?.to_owned();
    let name = |which: &str| which.replace('-', "_");
    let patch = match &set.knob {
        Knob::Ring { which, .. } => json!({"rings": {"value": {which.as_str(): {"now": value}}}}),
        Knob::Channels { which, .. } => {
            json!({"channels": {"value": {which.as_str(): {"now": value}}}})
        }
        Knob::Coalesce { which, .. } => {
            let field = name(which).replace("_frames", "_max_frames");
            json!({"coalesce": {"value": {field: value}}})
        }
        Knob::Feature { name, .. } => {
            json!({"features": {"value": {name.as_str(): {"active": value, "wanted": value}}}})
        }
        Knob::Pause { which, .. } => json!({"pause": {"value": {which.as_str(): value}}}),
        Knob::Eee { .. } => json!({"eee": {"value": {"enabled": value, "active": value}}}),
        Knob::LinkMode { which, .. } => json!({"link_modes": {"value": {which.as_str(): value}}}),
        Knob::PrivateFlag { name, .. } => {
            json!({"private_flags": {"value": {name.as_str(): value}}})
        }
        Knob::HashFields { flow, .. } => {
            json!({"flow_hash": {flow.as_str(): {"state": "ok", "value": value}}})
        }
        Knob::RssKey { .. } => json!({"rss": {"value": {"key": {"state": "ok", "value": value}}}}),
        Knob::RssTable { .. } => json!({"rss": {"value": {"table": table(&set.value)}}}),
        Knob::Link { which, .. } => {
            let field = if which == "mtu" {
                "mtu_bytes".into()
            } else {
                name(which).replace("_size", "_bytes")
            };
            json!({"link": {"value": {field: value}}})
        }
        Knob::Sysctl { .. } | Knob::Attribute { .. } => return None,
    };
    Some((dev, patch))
}

/// The indirection table that a value makes of the healthy host's 128 entries and 4 queues.
fn table(value: &Value) -> Vec<u64> {
    match value {
        Value::Numbers(numbers) => numbers.clone(),
        Value::Text(text) => {
            let queues = text.split([' ', ':']).nth(1).and_then(|n| n.parse().ok()).unwrap_or(4);
            (0..128).map(|entry| entry % queues).collect()
        }
        other => panic!("{other} is no table"),
    }
}

/// The host once these changes are made; counters stay as they are.
fn follow(host: &mut Overlay, changes: &[Set]) {
    for set in changes {
        match &set.knob {
            Knob::Sysctl { key } => {
                let path = rxpath_host::procfs::sysctl::path(key);
                host.remove.retain(|gone| *gone != path);
                host.files.insert(path, set.value.to_string());
            }
            Knob::Attribute { path } => {
                let now = written(text_of(host, path), &set.value.to_string());
                if let Some(irq) = path.strip_suffix("/smp_affinity_list") {
                    host.files.insert(format!("{irq}/effective_affinity_list"), now.clone());
                }
                if path.ends_with("/smt/control") {
                    host.files.insert(path.replace("control", "active"), "0".into());
                }
                host.remove.retain(|gone| gone != path);
                host.files.insert(path.clone(), now);
            }
            _ => {
                let (dev, patch) = answer(set).expect("a device's setting");
                merge(host.nic.entry(dev).or_insert_with(|| json!({})), &patch);
            }
        }
    }
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
        for goal in goals() {
            let first = findings(&bench, &case.host, goal, &case.rule);
            let changes: Vec<Set> = first.into_iter().flat_map(|one| one.changes).collect();
            if changes.is_empty() {
                continue;
            }
            followed.insert(case.rule.clone());
            let mut host = case.host.clone();
            follow(&mut host, &changes);
            for again in findings(&bench, &host, goal, &case.rule) {
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
    }
    assert!(wrong.is_empty(), "{} loops: {wrong:#?}", wrong.len());
    assert!(followed.len() >= 45, "{} rules were followed: {followed:?}", followed.len());
}

/// What counted long ago is said, and asks for nothing.
#[test]
fn a_counter_that_does_not_rise_asks_for_nothing() {
    let bench = Bench::new();
    let (mut wrong, mut asked) = (Vec::new(), BTreeSet::new());
    for (name, case) in cases() {
        let has_later = case.host.files.keys().any(|path| path.starts_with(LATER));
        let host = quiescent(&case.host);
        for goal in goals() {
            for one in findings(&bench, &host, goal, &case.rule) {
                let Some(counted) = one.counted else { continue };
                asked.insert(case.rule.clone());
                let mildest = if has_later {
                    rxpath_tune::Severity::Info
                } else {
                    rxpath_tune::Severity::Warn
                };
                if !one.changes.is_empty() || one.severity > mildest {
                    wrong.push(format!(
                        "{name} {goal:?} {}: {:?} {counted:?}",
                        case.rule, one.changes
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(asked.len() >= 12, "{} rules rest on a counter: {asked:?}", asked.len());
}
