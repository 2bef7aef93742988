//! `rxpath diagnose --selftest`: cases that no other load can turn into others are recognised, and judged again from
//! the run directory.

use std::process::Command;

use serde_json::Value;

use crate::bed::may_run;
use crate::experiment::in_turn;

fn rxpath(args: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    let output = in_turn(command.args(args).arg("--json"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{text}"));
    (output.status.code(), value)
}

#[test]
fn what_was_made_is_recognised_and_the_same_from_the_run() {
    if !may_run() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().to_str().unwrap();
    let cases = ["--case", "filter", "--case", "checksum", "--case", "no-listener"];
    let base = ["diagnose", "--selftest", "--draws", "2", "--seed", "11", "--out", dir];
    let (code, value) = rxpath(&[&base[..], &cases[..]].concat());
    // 4: other load voided all trials of a case. Which case it was is counted below.
    assert!(matches!(code, Some(0 | 4)), "{code:?}: {value}");
    let result = &value["result"];
    assert_eq!(result["made_count"], result["recognised_count"], "{result}");
    assert_eq!(result["cases"].as_array().unwrap().len(), 3);
    assert!(!result["not_made"].as_array().unwrap().is_empty());
    let run = value["settings"]["run"].as_str().unwrap();
    let (code, again) = rxpath(&["diagnose", run]);
    assert_eq!(code, Some(0));
    for variant in again["result"]["runs"][0]["variants"].as_array().unwrap() {
        let case = variant["variant"].as_str().unwrap().rsplit_once('-').unwrap().0;
        assert_eq!(variant["verdict"]["stage"], case, "{variant}");
    }
}
