//! Who may use whom: the data flows one way, and `cargo metadata` proves it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The rule. A crate that is not listed fails the test, and so does an edge that is not.
const MAY_USE: &[(&str, &[&str])] = &[
    ("rxpath-core", &[]),
    ("rxpath-texts", &[]),
    ("rxpath-stats", &["core"]),
    ("rxpath-host", &["core"]),
    ("rxpath-record", &["stats", "core"]),
    ("rxpath-diagnose", &["record", "stats", "core"]),
    ("rxpath-model", &["record", "stats", "core"]),
    ("rxpath-load", &["host", "bpf", "stats", "core"]),
    ("rxpath-bpf", &["host", "core"]),
    ("rxpath-export", &["record", "core"]),
    ("rxpath-remote", &[]),
    ("rxpath-report", &["model", "record", "stats", "core"]),
    ("rxpath-tune", &["host", "stats", "texts", "core"]),
    ("rxpath-live", &["bpf", "diagnose", "record", "host", "core"]),
    (
        "rxpath-lab",
        &[
            "live", "remote", "tune", "load", "bpf", "model", "diagnose", "record", "host",
            "stats", "texts", "core",
        ],
    ),
    (
        "rxpath",
        &[
            "lab", "live", "remote", "report", "export", "tune", "load", "bpf", "model",
            "diagnose", "record", "host", "stats", "texts", "core",
        ],
    ),
];

/// What rxpath-agent does not have: senders, experiments, models, reports, other hosts, a terminal's screen.
const NOT_IN_AGENT: [&str; 6] =
    ["rxpath-load", "rxpath-lab", "rxpath-model", "rxpath-report", "rxpath-remote", "ratatui"];

/// Direct dependencies by crate, of those kinds that `counts` says; build and test dependencies have a `kind`.
fn edges(counts: impl Fn(&serde_json::Value) -> bool) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let name = |value: &serde_json::Value| value["name"].as_str().map(str::to_owned);
    metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| {
            let used = package["dependencies"].as_array().expect("dependencies").iter();
            let used = used.filter(|one| counts(one)).filter_map(name);
            (name(package).expect("a name"), used.collect())
        })
        .collect()
}

#[test]
fn crates_use_only_what_the_rule_allows() {
    let rule: BTreeMap<&str, BTreeSet<String>> = MAY_USE
        .iter()
        .map(|(name, used)| (*name, used.iter().map(|short| format!("rxpath-{short}")).collect()))
        .collect();
    let is_ours =
        |one: &serde_json::Value| one["name"].as_str().is_some_and(|it| it.starts_with("rxpath"));
    let edges = edges(is_ours);
    assert_eq!(edges.len(), rule.len(), "crates: {:?}", edges.keys());
    for (name, used) in edges {
        let allowed =
            rule.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not in the rule"));
        let wrong: Vec<_> = used.difference(allowed).collect();
        assert!(wrong.is_empty(), "{name} must not use {wrong:?}");
    }
}

#[test]
fn the_agent_has_no_sender_no_lab_and_no_screen() {
    let edges = edges(|one| one["optional"] == false && one["kind"].is_null());
    let (mut found, mut open) = (BTreeSet::new(), vec!["rxpath"]);
    while let Some(name) = open.pop() {
        if found.insert(name) {
            open.extend(edges.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    assert!(found.contains("rxpath-live") && found.contains("rxpath-host"), "{found:?}");
    for name in NOT_IN_AGENT {
        assert!(!found.contains(name), "{name} is in every build: make it optional");
    }
}
