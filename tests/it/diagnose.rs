//! `rxpath diagnose` as a program: this host, runs, refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::handlers::catches;
use crate::kept::{self, edit};
use crate::program::{Said, said};

fn diagnose(args: &[&str]) -> Said {
    said(Command::new(env!("CARGO_BIN_EXE_rxpath")).arg("diagnose").args(args))
}

fn answer(args: &[&str]) -> Value {
    diagnose(args).ends(0).json()
}

#[test]
fn this_host_gets_a_verdict_with_the_evidence_beside_it() {
    let value = answer(&["-d", "200ms", "--json"]);
    assert_eq!(value["schema"], "rxpath/diagnose/1.0");
    let result = &crate::schema::result("diagnose", &value.to_string());
    for key in ["stage", "confidence", "sentence"] {
        assert!(result[key].is_string(), "{key}: {result}");
    }
    let ledger = &result["evidence_read"]["ledger"];
    let lost = ledger["drops"].as_array().unwrap().iter().map(|d| d["packets"].as_u64().unwrap());
    let delivered = ledger["delivered_packets"].as_u64().unwrap();
    assert_eq!(ledger["offered_packets"].as_u64().unwrap(), delivered + lost.sum::<u64>());
    assert!(value["settings"]["duration_s"].as_f64().unwrap() >= 0.2);
}

/// The verdicts of a run that `damage` changed, and its warnings.
fn damaged(name: &str, damage: impl Fn(&Path)) -> (Vec<Value>, String) {
    let dir = tempfile::tempdir().unwrap();
    let run = kept::copy(name, dir.path());
    damage(&run);
    let output = diagnose(&["--json", run.to_str().unwrap()]);
    let value = output.json();
    // A part of the answer is 5, none of it 4.
    let judged =
        value["result"]["runs"][0]["variants"].as_array().is_some_and(|all| !all.is_empty());
    let problems = !value["warnings"].as_array().unwrap().is_empty();
    let expected = if !judged {
        4
    } else if problems {
        5
    } else {
        0
    };
    assert_eq!(output.code, Some(expected), "{value}");
    assert_ne!(value["result"]["runs"][0]["run"], "", "{value}");
    let variants = value["result"]["runs"][0]["variants"].as_array().unwrap().clone();
    (variants, value["warnings"].to_string())
}

#[test]
fn a_whole_run_is_judged_without_a_warning() {
    let (variants, warnings) = damaged("one-variant", |_| ());
    assert!(!variants.is_empty() && warnings == "[]", "{warnings}");
    for variant in &variants {
        assert!(variant["verdict"]["next"].as_array().is_some_and(|next| !next.is_empty()));
    }
}

/// The record has two trials of the A/A block in front of the six of `naive`.
#[test]
fn a_variant_is_judged_by_the_trials_of_its_medians() {
    let (variants, _) = damaged("million-pps", |_| ());
    let naive = variants.iter().find(|variant| variant["variant"] == "naive").unwrap();
    assert_eq!(naive["trials_count"], 6, "{naive}");
}

#[test]
fn a_run_that_is_cut_is_judged_as_far_as_it_goes_and_said_to_be_cut() {
    let (_, warnings) = damaged("partial", |_| ());
    assert!(warnings.contains("the last line is cut"), "{warnings}");
    let cut = |name: &str, from_end: u64| {
        let name = name.to_owned();
        damaged("one-variant", move |run| {
            let file = fs::OpenOptions::new().write(true).open(run.join(&name)).unwrap();
            let length = file.metadata().unwrap().len();
            file.set_len(length - from_end.min(length)).unwrap();
        })
    };
    let (variants, warnings) = cut("events.jsonl", 7);
    assert!(!variants.is_empty() && warnings.contains("events.jsonl"), "{warnings}");
    // Without its manifest's end nothing can be judged, and nothing is.
    for from_end in [40, u64::MAX] {
        let (variants, warnings) = cut("manifest.json", from_end);
        assert!(variants.is_empty() && warnings.contains("manifest.json"), "{warnings}");
    }
}

#[test]
fn a_run_of_a_newer_version_is_judged_by_what_is_known_of_it() {
    let (variants, warnings) = damaged("one-variant", |run| {
        let manifest = run.join("manifest.json");
        edit(&manifest, "rxpath/run/1.0", "rxpath/run/2.0");
        // A word for a stage that this version has not heard of.
        let text = fs::read_to_string(&manifest).unwrap();
        let at = text.find("\"stage\":").unwrap() + "\"stage\":".len();
        let (head, tail) = text.split_at(at);
        let end = tail.find([',', '}']).unwrap();
        fs::write(&manifest, format!("{head}\"quantum-foam\"{}", &tail[end..])).unwrap();
    });
    assert!(!variants.is_empty() && warnings.contains("newer"), "{warnings}");
}

#[test]
fn a_port_says_that_the_counters_are_those_of_all_ports() {
    // Nobody is bound to it: a test that asks for any port gets a higher one.
    let value = answer(&["-d", "200ms", "--json", "--no-bpf", "--port", "9"]);
    let warnings = value["warnings"].to_string();
    assert!(warnings.contains("all-ports") && warnings.contains("no-socket"), "{warnings}");
    let window = &value["result"]["window"];
    assert!(window["duration_s"].as_f64() >= Some(0.2), "{window}");
    assert!(window["began_after_s"].as_f64() > Some(0.0), "{window}");
    assert!(window["began"].as_str().unwrap().ends_with('Z'), "{window}");
    assert_eq!(value["result"]["evidence_read"]["watched"], true);
}

#[test]
fn nobody_needs_to_read_the_warnings() {
    let (reader, closed) = nix::unistd::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["diagnose", "-d", "200ms", "--no-bpf", "--port", "9"]);
    assert!(!said(command.stderr(Stdio::from(closed))).ok().is_empty());
}

#[test]
fn without_bpf_the_answer_says_that_it_was_not_wanted() {
    let value = answer(&["-d", "200ms", "--json", "--no-bpf"]);
    assert_eq!(value["settings"]["probes"], false);
    assert!(value["result"]["evidence_read"].get("probed").is_none());
    assert!(!value["warnings"].to_string().contains("not-measured"));
}

/// A watch that is interrupted as soon as a signal no longer kills it, before all who want to hear of it may have
/// said so.
fn interrupted_at_once() -> Said {
    let child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["diagnose", "-d", "20s", "--json", "--no-bpf"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(child.id() as i32);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !catches(pid.as_raw(), Signal::SIGINT) {
        assert!(Instant::now() < deadline, "it never caught the signal");
        std::hint::spin_loop();
    }
    kill(pid, Signal::SIGINT).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_signal_ends_the_watch_with_what_was_seen() {
    // More than once, because the moment at which it could be lost is short.
    for _ in 0..20 {
        let value = interrupted_at_once().ends(130).json();
        assert!(value["result"]["sentence"].is_string());
        assert!(value["settings"]["duration_s"].as_f64().unwrap() < 20.0);
    }
}

#[test]
fn bad_input_has_one_clear_line_a_hint_and_exit_2() {
    for (args, says) in [
        (&["-d", "1ms"][..], "--duration 1ms: 100ms to"),
        (&["--draws", "3"], "about --selftest"),
        (&["--selftest", "--case", "ringg"], "--case ringg: there is no such case"),
        (&["--selftest", "--draws", "0"], "--draws"),
        (&["/no/such/run"], "/no/such/run"),
        (&["--port", "70000"], "70000"),
        (&["--no-bpf", "--selftest"], "--no-bpf"),
    ] {
        diagnose(args).ends(2).refuses("", says).prints_nothing();
    }
}
