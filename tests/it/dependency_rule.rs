//! Who may use whom: the data flows one way, and `cargo metadata` proves it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The rule. A crate that is not listed fails the test, and so does an edge that is not.
const MAY_USE: &[(&str, &[&str])] = &[
    ("rxpath-core", &[]),
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
    ("rxpath-tune", &["host", "stats", "core"]),
    ("rxpath-live", &["bpf", "diagnose", "record", "host", "core"]),
    (
        "rxpath-lab",
        &["live", "remote", "load", "bpf", "diagnose", "record", "host", "stats", "core"],
    ),
    (
        "rxpath",
        &[
            "lab", "live", "remote", "report", "export", "tune", "load", "bpf", "model", "diagnose",
            "record", "host", "stats", "core",
        ],
    ),
];

/// Direct dependencies on other crates of the workspace, by crate; build and test dependencies count too.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
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
            let used =
                package["dependencies"].as_array().expect("dependencies").iter().filter_map(name);
            (
                name(package).expect("a name"),
                used.filter(|crate_name| crate_name.starts_with("rxpath")).collect(),
            )
        })
        .collect()
}

#[test]
fn crates_use_only_what_the_rule_allows() {
    let rule: BTreeMap<&str, BTreeSet<String>> = MAY_USE
        .iter()
        .map(|(name, used)| (*name, used.iter().map(|short| format!("rxpath-{short}")).collect()))
        .collect();
    let edges = edges();
    assert_eq!(edges.len(), rule.len(), "crates: {:?}", edges.keys());
    for (name, used) in edges {
        let allowed =
            rule.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not in the rule"));
        let wrong: Vec<_> = used.difference(allowed).collect();
        assert!(wrong.is_empty(), "{name} must not use {wrong:?}");
    }
}
