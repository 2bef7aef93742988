//! `rxpath list`: what a stranger sees first.

use std::process::Command;

use crate::printed::rxpath;
use crate::program::said;

#[test]
fn every_experiment_is_listed_with_its_question() {
    let text = rxpath(&["list"]);
    assert!(text.lines().next().unwrap().starts_with("million-pps"), "{text}");
    for line in text.lines().take_while(|line| !line.is_empty()) {
        assert!(line.ends_with('?'), "{line}");
    }
    assert!(!text.contains("\ndemo "), "the tutorial's scenario is hidden:\n{text}");
    assert!(rxpath(&["list", "--all"]).contains("\ndemo "));
}

#[test]
fn the_json_form_has_the_variants() {
    let value: serde_json::Value = serde_json::from_str(&rxpath(&["list", "--json"])).unwrap();
    assert_eq!(value["schema"], "rxpath/list/1.0");
    let all = value["result"]["scenarios"].as_array().unwrap();
    let livelock = all.iter().find(|one| one["name"] == "udp-livelock").unwrap();
    let variants = livelock["variants"].as_array().unwrap();
    assert_eq!(variants[..2], ["rps-off", "rps-to-reader"]);
    assert!(variants[2..].iter().all(|name| name.as_str().unwrap().starts_with("rate-")));
}

#[test]
fn every_key_says_what_it_takes() {
    let text = rxpath(&["list", "--keys"]);
    assert!(text.contains("serve.batch\n    datagrams per recvmmsg"), "{text}");
}

#[test]
fn questions_fit_the_terminal() {
    // The experiments, and the rules of `check`.
    for list in ["list", "explain"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        let text = said(command.arg(list).env("COLUMNS", "80")).ok();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let whole = rxpath(&[list]);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text), words(&whole));
        assert!(text.lines().count() > whole.lines().count());
    }
}

#[test]
fn in_a_pipe_each_rule_is_one_line() {
    let text = rxpath(&["explain"]);
    let rules: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
    assert!(rules.len() > 100, "{text}");
    assert!(rules.iter().all(|line| line.ends_with('?')), "{text}");
}
