//! Host facts that differ between two runs.

use std::collections::BTreeSet;

use rxpath_core::{Fact, moving};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::environment::{Environment, RecordedFacts};

/// Longer values are cut in text and JSON: the run directories have the full values.
const LONGEST: usize = 120;

/// One fact.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// Host and fact: `local kernel.release`.
    pub fact: String,
    /// Its value in the base run, or why there is none.
    pub base: String,
    /// Its value in the other run.
    pub other: String,
}

/// The facts that differ, by name; a missing environment counts as a difference.
pub fn changed(base: Option<&Environment>, other: Option<&Environment>) -> Vec<Changed> {
    let (Some(base), Some(other)) = (base, other) else {
        let there = |run: Option<&Environment>| run.map_or("not readable", |_| "there").to_owned();
        let fact = "environment.json".into();
        return vec![Changed { fact, base: there(base), other: there(other) }];
    };
    let hosts: BTreeSet<&String> = base.hosts.keys().chain(other.hosts.keys()).collect();
    let none = RecordedFacts::new();
    let of = |run: &Environment, host: &str| run.hosts.get(host).unwrap_or(&none).clone();
    hosts.iter().flat_map(|host| facts(host, &of(base, host), &of(other, host))).collect()
}

fn facts(host: &str, base: &RecordedFacts, other: &RecordedFacts) -> Vec<Changed> {
    let names: BTreeSet<&String> = base.keys().chain(other.keys()).collect();
    let lasting = |name: &&&String| !moving::is_moving(name);
    let changed = |name: &&String| {
        let [before, after] = [base, other].map(|run| lasting_part(run.get(*name)));
        let [before, after] = [before.as_ref(), after.as_ref()];
        let fact = format!("{host} {name}");
        match (before.and_then(Fact::value), after.and_then(Fact::value)) {
            _ if before == after => Vec::new(),
            (Some(before), Some(after)) => leaves(&fact, Some(before), Some(after)),
            _ => vec![Changed { fact, base: told(before), other: told(after) }],
        }
    };
    names.iter().filter(lasting).flat_map(changed).collect()
}

/// The parts in which two values differ: members of objects and lists by path; any other value whole.
pub(super) fn leaves(path: &str, base: Option<&Value>, other: Option<&Value>) -> Vec<Changed> {
    if base == other {
        return Vec::new();
    }
    match (base, other) {
        (Some(Value::Object(one)), Some(Value::Object(two))) => {
            let names: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
            let inner = |name: &String| match name.as_str() {
                // For a fact inside a fact, the inner fact differs.
                "value" | "state" if one.contains_key("state") => path.to_owned(),
                _ => format!("{path}.{name}"),
            };
            names
                .iter()
                .flat_map(|name| leaves(&inner(name), one.get(*name), two.get(*name)))
                .collect()
        }
        (Some(Value::Array(one)), Some(Value::Array(two))) if one.len() == two.len() => {
            let pairs = one.iter().zip(two).enumerate();
            pairs
                .flat_map(|(at, (a, b))| leaves(&format!("{path}[{at}]"), Some(a), Some(b)))
                .collect()
        }
        _ => {
            let fact = path.to_owned();
            vec![Changed { fact, base: shown(base), other: shown(other) }]
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "not there".into(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => {
            let text = value.to_string();
            match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}...", &text[..end]),
                None => text,
            }
        }
    }
}

fn lasting_part(fact: Option<&Fact<Value>>) -> Option<Fact<Value>> {
    let without = |mut value: Value| {
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !moving::MEMBERS.contains(&name.as_str()));
        }
        value
    };
    fact.map(|fact| fact.clone().map(without))
}

fn told(fact: Option<&Fact<Value>>) -> String {
    let Some(fact) = fact else { return "not recorded".into() };
    fact.gap().unwrap_or_else(|| shown(fact.value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(facts: &[(&str, Fact<Value>)]) -> Environment {
        let facts = facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
        Environment { schema: String::new(), hosts: [("local".to_owned(), facts)].into() }
    }

    #[test]
    fn of_a_large_fact_the_part_that_differs_is_named() {
        let device = |ifindex: u32, offloads: &[&str]| {
            let long = "x".repeat(2 * LONGEST);
            let index = serde_json::json!({"state": "ok", "value": ifindex});
            let traffic = serde_json::json!({"rx_packets": 1000 * ifindex});
            Fact::ok(serde_json::json!({
                "name": long, "ifindex": index, "offloads": offloads, "statistics": traffic,
            }))
        };
        let base = environment(&[("device.eth0", device(2, &["gro", "tso"]))]);
        let other = environment(&[("device.eth0", device(7, &["gro", "gso"]))]);
        let found = changed(Some(&base), Some(&other));
        let told: Vec<_> = found
            .iter()
            .map(|it| (it.fact.as_str(), it.base.as_str(), it.other.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("local device.eth0.ifindex", "2", "7"),
                ("local device.eth0.offloads[1]", "tso", "gso")
            ]
        );
    }

    #[test]
    fn what_differs_is_named_with_both_values_and_gaps_are_no_zeros() {
        let base = environment(&[
            ("kernel.release", Fact::ok("6.1".into())),
            ("cpu.count", Fact::ok(2.into())),
            ("cpu.turbo", Fact::absent("no cpufreq")),
            ("boot.id", Fact::ok("a1".into())),
            ("boot.uptime_s", Fact::ok(5.into())),
            ("daemons", Fact::ok(serde_json::json!({"found": [], "processes_seen_count": 5}))),
        ]);
        let other = environment(&[
            ("kernel.release", Fact::ok("6.18".into())),
            ("cpu.count", Fact::ok(2.into())),
            ("boot.id", Fact::ok("b2".into())),
            ("boot.uptime_s", Fact::ok(9.into())),
            ("daemons", Fact::ok(serde_json::json!({"found": [], "processes_seen_count": 6}))),
        ]);
        let found = changed(Some(&base), Some(&other));
        let names: Vec<&str> = found.iter().map(|change| change.fact.as_str()).collect();
        assert_eq!(names, ["local cpu.turbo", "local kernel.release"]);
        assert!(found[0].base.contains("no cpufreq") && found[0].other == "not recorded");
        assert_eq!((found[1].base.as_str(), found[1].other.as_str()), ("6.1", "6.18"));
        assert!(changed(Some(&base), Some(&base)).is_empty());
        assert_eq!(changed(Some(&base), None)[0].fact, "environment.json");
    }
}
