//! `rxpath diagnose` as a program: this host, runs, refusals.

use std::process::{Command, Output};

use serde_json::Value;

fn diagnose(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxpath")).arg("diagnose").args(args).output().unwrap()
}

fn answer(args: &[&str]) -> Value {
    let output = diagnose(args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn this_host_gets_a_verdict_with_the_evidence_beside_it() {
    let value = answer(&["-d", "200ms", "--json"]);
    assert_eq!(value["schema"], "rxpath/diagnose/1.0");
    let result = &value["result"];
    for key in ["stage", "confidence", "sentence"] {
        assert!(result[key].is_string(), "{key}: {result}");
    }
    let ledger = &result["evidence_read"]["ledger"];
    let lost = ledger["drops"].as_array().unwrap().iter().map(|d| d["packets"].as_u64().unwrap());
    let delivered = ledger["delivered_packets"].as_u64().unwrap();
    assert_eq!(ledger["offered_packets"].as_u64().unwrap(), delivered + lost.sum::<u64>());
    assert!(value["settings"]["duration_s"].as_f64().unwrap() >= 0.2);
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
    ] {
        let output = diagnose(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.starts_with("rxpath: ") && text.contains(says), "{args:?}: {text}");
        assert!(output.stdout.is_empty());
    }
}
