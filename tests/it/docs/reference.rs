//! The generated parts of the reference are those of the code: options, rules, scenario keys, metrics, parameters.
//!
//! `RXPATH_WRITE_DOCS=1 cargo test --test it docs::reference` writes them again.

use std::fmt::Write;
use std::process::Command;

use rxpath_record::metric::{Good, METRICS};
use serde_json::Value;

use crate::commands::root;
use crate::program::said;

const BEGIN: &str = "<!-- begin, written by a test -->\n";
const END: &str = "<!-- end -->\n";

/// What the program prints, as wide as a page.
fn printed(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    said(command.env("COLUMNS", "100").args(words)).ok()
}

/// The `result` of a command with `--json`.
fn result(words: &[&str]) -> Value {
    let mut value: Value = serde_json::from_str(&printed(words)).unwrap();
    value["result"].take()
}

/// A text as a cell of a table, without Markdown or HTML of its own.
fn cell(of: &Value, key: &str) -> String {
    of[key].as_str().unwrap().replace('|', "\\|").replace('<', "\\<")
}

fn rules() -> String {
    let rules = result(&["explain", "--json"]);
    let rules = rules.as_array().unwrap();
    let of_kind = |kind: &str| rules.iter().filter(|rule| rule["kind"] == kind).count();
    let mut out = format!(
        "{} rules: {} judge, {} record, {} warn about measurements.\n\n| rule | question | kind | for | since | effect |\n|---|---|---|---|---|---|\n",
        rules.len(),
        of_kind("judge"),
        of_kind("record"),
        of_kind("honesty"),
    );
    for rule in rules {
        let goals: Vec<&str> =
            rule["goals"].as_array().unwrap().iter().map(|goal| goal.as_str().unwrap()).collect();
        let goals = if goals.is_empty() { "any goal".to_owned() } else { goals.join(", ") };
        let [id, what, kind, since, effect] =
            ["id", "what", "kind", "since", "effect"].map(|key| cell(rule, key));
        writeln!(out, "| `{id}` | {what} | {kind} | {goals} | {since} | {effect} |").unwrap();
    }
    out
}

fn scenario_keys() -> String {
    let mut out = String::from("| key | takes | meaning |\n|---|---|---|\n");
    for key in result(&["list", "--keys", "--json"])["keys"].as_array().unwrap() {
        let [name, takes, meaning] = ["key", "takes", "meaning"].map(|of| cell(key, of));
        writeln!(out, "| `{name}` | {takes} | {meaning} |").unwrap();
    }
    out
}

fn metrics() -> String {
    let mut out = String::from("| metric | unit | better | meaning |\n|---|---|---|---|\n");
    for metric in METRICS {
        let better = if metric.good == Good::Up { "more" } else { "less" };
        writeln!(out, "| `{}` | {} | {better} | {} |", metric.name, metric.unit, metric.what)
            .unwrap();
    }
    out
}

fn exported() -> String {
    let mut out = String::from("| metric | kind | labels | meaning |\n|---|---|---|---|\n");
    for metric in rxpath_export::METRICS {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let labels = metric.labels.join(", ");
        writeln!(out, "| `{}` | {kind} | {labels} | {} |", metric.name, metric.what).unwrap();
    }
    out
}

/// The short help of every command, in the order of the top page.
fn commands() -> String {
    let mut out = String::new();
    for page in pages_of_help(&[]) {
        let words: Vec<&str> = page.iter().map(String::as_str).chain(["-h"]).collect();
        let title = ["rxpath"].into_iter().chain(words[..words.len() - 1].iter().copied());
        let help = printed(&words);
        let help = help.trim_end();
        writeln!(out, "## {}\n\n```text\n{help}\n```\n", title.collect::<Vec<_>>().join(" "))
            .unwrap();
    }
    out
}

/// A command and those below it, as their help lists them: on the top page in groups.
fn pages_of_help(words: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![words.to_vec()];
    let shown: Vec<&str> = words.iter().map(String::as_str).chain(["-h"]).collect();
    let help = printed(&shown);
    let mut listing = false;
    for line in help.split("\nOptions:").next().unwrap_or_default().lines() {
        let Some(entry) = line.strip_prefix("  ") else {
            listing = line.ends_with(':') && (words.is_empty() || line == "Commands:");
            continue;
        };
        let name = entry.split(' ').next().unwrap_or_default();
        if listing && !name.is_empty() && name != "help" {
            let below: Vec<String> = words.iter().cloned().chain([name.to_owned()]).collect();
            all.extend(pages_of_help(&below));
        }
    }
    all
}

/// Compares the marked part of a page with what the code says, or writes it.
fn is_generated(page: &str, wanted: &str) {
    let path = root().join("docs/reference").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the mark of the generated part's beginning");
    let (kept, tail) = rest.split_once(END).expect("the mark of the generated part's end");
    if std::env::var_os("RXPATH_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{wanted}{END}{tail}")).unwrap();
        return;
    }
    assert!(
        kept == wanted,
        "docs/reference/{page} is not up to date: RXPATH_WRITE_DOCS=1 cargo test --test it docs::reference"
    );
}

#[test]
fn the_table_of_rules_is_that_of_the_rules() {
    is_generated("check-rules.md", &rules());
}

#[test]
fn the_table_of_scenario_keys_is_that_of_the_reader() {
    is_generated("scenario-keys.md", &scenario_keys());
}

#[test]
fn the_table_of_metrics_is_that_of_the_comparisons() {
    is_generated("metrics.md", &metrics());
}

#[test]
fn the_table_of_parameters_is_that_of_the_simulator() {
    is_generated("simulator.md", &rxpath_model::sim::values::table());
}

#[test]
fn the_table_of_exported_metrics_is_that_of_the_exporter() {
    is_generated("export.md", &exported());
}

#[test]
fn the_options_of_every_command_are_those_of_its_help() {
    is_generated("commands.md", &commands());
}

#[test]
fn the_table_of_cases_has_the_right_verdicts_of_each() {
    let page = std::fs::read_to_string(root().join("docs/reference/verdicts.md")).unwrap();
    for case in &*rxpath_lab::selftest::CASES {
        let right = serde_json::to_string(&case.expected).unwrap();
        let right = right.replace(['[', ']', '"'], "").replace(',', ", ");
        let (begin, end) = (format!("| `{}` | ", case.id), format!(" | {right} |"));
        let has = page.lines().any(|line| line.starts_with(&begin) && line.ends_with(&end));
        assert!(has, "docs/reference/verdicts.md: {begin}…{end}");
    }
}

#[test]
fn the_number_of_cases_of_the_self_test_is_right() {
    let page = std::fs::read_to_string(root().join("docs/explanation/diagnosis.md")).unwrap();
    let wanted = format!(" creates {} cases in a lab", rxpath_lab::selftest::CASES.len());
    assert!(page.contains(&wanted), "docs/explanation/diagnosis.md:{wanted}");
}
