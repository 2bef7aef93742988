//! `rxpath diagnose --selftest`: limits are made for real, recognised from their evidence, and judged again from the run
//! directory.
//!
//! Here are the limits that no other load can turn into another: what drops every third datagram drops it on a busy machine
//! too. How often the limits of CPU time are recognised is a question for a quiet machine: `bench/selftest.sh`.

use std::path::Path;
use std::process::Command;

use rxpath_record::run::RunReader;
use serde_json::Value;

use crate::bed::{may_run, tried};

/// A cost of rules that other load made implausible is refused (3): then it is measured again.
fn rxpath(args: &[&str]) -> (Option<i32>, Value) {
    let once =
        || Command::new(env!("CARGO_BIN_EXE_rxpath")).args(args).arg("--json").output().unwrap();
    let output = tried(once, |output| output.status.code() != Some(3));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{text}"));
    (output.status.code(), value)
}

/// Makes these cases once each, and reads what it says and the run that it leaves, of which every ledger closes.
fn made(cases: &[&str]) -> (Option<i32>, Value, RunReader, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let named = cases.iter().flat_map(|case| ["--case", case]);
    let base = ["diagnose", "--selftest", "--draws", "1", "--seed", "11", "--out"];
    let words: Vec<&str> = base.into_iter().chain(out.path().to_str()).chain(named).collect();
    let (code, value) = rxpath(&words);
    let run = RunReader::open(Path::new(value["settings"]["run"].as_str().unwrap())).unwrap();
    for trial in &run.manifest.trials {
        let ledger = &trial.ledger;
        assert_eq!(ledger.unaccounted_packets, Some(0), "{}: {ledger:?}", trial.variant);
    }
    (code, value, run, out)
}

#[test]
fn what_drops_datagrams_is_recognised_and_judged_alike_again() {
    if !may_run() {
        return;
    }
    let cases = ["filter", "checksum", "no-listener", "conntrack-full"];
    let (code, value, run, _out) = made(&cases);
    let result = &value["result"];
    // 4: other load voided the only trial of a case.
    assert!(matches!(code, Some(0 | 4)), "{code:?}: {result}");
    assert!(result["rule_cost"].is_null(), "measured for cases that need it alone: {result}");
    let rows = result["cases"].as_array().unwrap();
    assert_eq!(rows.len(), cases.len(), "{result}");
    for trial in &run.manifest.trials {
        let case = trial.variant.rsplit_once('-').unwrap().0;
        let row = rows.iter().find(|row| row["case"] == case).unwrap();
        let verdict = trial.verdict.as_ref().unwrap();
        assert!(!verdict.next.is_empty() && !verdict.evidence.is_empty(), "{verdict:?}");
        let stage = serde_json::to_value(verdict.stage).unwrap();
        // A void trial has lost datagrams at the same place; its load is what was disturbed.
        assert!(row["expected"].as_array().unwrap().contains(&stage), "{case}: {verdict:#?}");
    }
    let (code, again) = rxpath(&["diagnose", run.directory.to_str().unwrap()]);
    // 4: there is nothing to judge in a run whose trials are all void.
    let all_void = run.manifest.trials.iter().all(|trial| trial.void.is_some());
    assert_eq!(code, Some(if all_void { 4 } else { 0 }), "{again}");
    for variant in again["result"]["runs"][0]["variants"].as_array().unwrap() {
        let number = variant["trial"].as_u64().unwrap();
        let trial = run.manifest.trials.iter().find(|trial| u64::from(trial.trial) == number);
        let before = serde_json::to_value(trial.unwrap().verdict.as_ref().unwrap().stage).unwrap();
        assert_eq!(variant["verdict"]["stage"], before, "{variant}");
    }
}

#[test]
fn what_a_rule_costs_is_measured_where_datagrams_must_cost_a_drawn_time() {
    if !may_run() {
        return;
    }
    let (_, value, run, _out) = made(&["victim"]);
    let cost = &value["result"]["rule_cost"];
    for of in ["datagram_ns", "first_rule_ns", "later_rule_ns"] {
        assert!(cost[of].as_f64().is_some_and(|ns| ns > 0.0), "{of} in {value}");
    }
    for variant in &run.manifest.variants {
        let drawn = variant.what.rsplit_once("; ").unwrap().1.strip_suffix(" us each");
        assert!(drawn.unwrap().parse::<f64>().is_ok_and(|us| us > 0.0), "{}", variant.what);
    }
}
