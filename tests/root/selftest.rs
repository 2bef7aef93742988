//! `rxpath diagnose --selftest`: each limit is made for real and recognised from its evidence, and judged again from the
//! run directory.
//!
//! Cases of CPU time are made beside whatever else the machine does. Trials that this disturbs are void, and a case of
//! which every trial is void says nothing; but what was made and counted must be recognised.

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

/// Makes these cases, twice each, and demands that each that counts is recognised; judges the run again.
fn recognised(cases: &[&str]) {
    if !may_run() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().to_str().unwrap();
    let named = cases.iter().flat_map(|case| ["--case", case]);
    let base = ["diagnose", "--selftest", "--draws", "2", "--seed", "11", "--out", dir];
    let words: Vec<&str> = base.into_iter().chain(named).collect();
    let (code, value) = rxpath(&words);
    let result = &value["result"];
    // 4: other load voided all trials of a case. Which case it was is counted below.
    assert!(matches!(code, Some(0 | 4)), "{code:?}: {result}");
    assert_eq!(result["made_count"], result["recognised_count"], "{result}");
    let rows = result["cases"].as_array().unwrap();
    assert_eq!(rows.len() + result["not_made"].as_array().unwrap().len(), cases.len(), "{result}");
    let run = value["settings"]["run"].as_str().unwrap();
    let (code, again) = rxpath(&["diagnose", run]);
    assert_eq!(code, Some(0));
    for variant in again["result"]["runs"][0]["variants"].as_array().unwrap() {
        let case = variant["variant"].as_str().unwrap().rsplit_once('-').unwrap().0;
        let row = rows.iter().find(|row| row["case"] == case).unwrap();
        let (stage, expected) = (&variant["verdict"]["stage"], row["expected"].as_array().unwrap());
        assert!(expected.contains(stage), "{case}: {variant}");
        assert!(!variant["verdict"]["next"].as_array().unwrap().is_empty(), "{variant}");
    }
}

#[test]
fn drops_on_purpose_damage_and_a_closed_port() {
    recognised(&["filter", "checksum", "no-listener"]);
}

#[test]
fn a_full_connection_table() {
    recognised(&["conntrack-full"]);
}

#[test]
fn a_sender_that_could_not_offer_more_and_nothing_at_all() {
    recognised(&["sender", "nothing"]);
}

#[test]
fn queues_before_the_softirq() {
    recognised(&["ring", "backlog", "softirq"]);
}

#[test]
fn a_load_that_is_not_spread() {
    recognised(&["one-cpu", "rps-missing", "rps-pointless"]);
}

#[test]
fn readers_that_stall_are_slow_or_do_not_get_their_cpu() {
    recognised(&["socket-queue", "application", "descheduled", "livelock"]);
}

#[test]
fn several_readers_of_one_socket_and_of_one_group() {
    recognised(&["socket-lock", "reuseport"]);
}

#[test]
fn a_path_that_is_well_and_somebody_who_pays_or_is_told_wrong() {
    recognised(&["victim", "tick-artefact"]);
}
