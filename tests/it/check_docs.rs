//! The table of rules in `docs/check.md` is that of the rules.
//!
//! `RXPATH_WRITE_DOCS=1 cargo test --test it check_docs` writes it anew.

use std::fmt::Write;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const BEGIN: &str = "<!-- rules: begin, written by a test -->\n";
const END: &str = "<!-- rules: end -->\n";

fn table() -> String {
    let done = Command::cargo_bin("rxpath").unwrap().args(["explain", "--json"]).assert().success();
    let value: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    let rules = value["result"].as_array().unwrap();
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().replace('|', "\\|");
    let mut out = format!(
        "{} rules: {} judge, {} record, {} warn about measurements.\n\n| rule | question | kind | for | since | effect |\n|---|---|---|---|---|---|\n",
        rules.len(),
        rules.iter().filter(|rule| rule["kind"] == "judge").count(),
        rules.iter().filter(|rule| rule["kind"] == "record").count(),
        rules.iter().filter(|rule| rule["kind"] == "honesty").count(),
    );
    for rule in rules {
        let goals: Vec<&str> =
            rule["goals"].as_array().unwrap().iter().map(|goal| goal.as_str().unwrap()).collect();
        let goals = if goals.is_empty() { "any goal".to_owned() } else { goals.join(", ") };
        writeln!(
            out,
            "| `{}` | {} | {} | {goals} | {} | {} |",
            text(rule, "id"),
            text(rule, "what"),
            text(rule, "kind"),
            text(rule, "since"),
            text(rule, "effect")
        )
        .unwrap();
    }
    out
}

#[test]
fn the_table_in_the_docs_is_that_of_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/check.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the mark of the table's beginning");
    let (kept, tail) = rest.split_once(END).expect("the mark of the table's end");
    let table = table();
    if std::env::var_os("RXPATH_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        return;
    }
    assert!(
        kept == table,
        "docs/check.md is not up to date: RXPATH_WRITE_DOCS=1 cargo test --test it check_docs"
    );
}
