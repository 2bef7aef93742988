//! `rxpath reproduce` as a program, on a small experiment over loopback.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const SMALL: &str = r#"
question = "Is twice the rate twice as much?"
[topology]
kind = "local"
[load]
rate = "1k"
[[variant]]
name = "one"
[[variant]]
name = "two"
load.rate = "2k"
[[compare]]
base = "one"
variant = "two"
expected = "up"
published = { ratio = 2.0, figures = "2,000 against 1,000", source = "Somebody 2020", machine = "a small one" }
[trials]
blocks = 1
max_blocks = 1
aa = false
ramp = "20ms"
settle = "0s"
measure = "100ms"
"#;

fn reproduce(words: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    // Other tests have this machine's lab meanwhile.
    command.args(["reproduce", "--wait=120s"]).args(words).arg("--out").arg(out).output().unwrap()
}

fn scenario(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn runs(out: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(out.join("reproduce")).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_book_has_the_published_figure_beside_the_measured_one() {
    let dir = tempfile::tempdir().unwrap();
    let small = scenario(dir.path(), "small.toml", SMALL);
    let output = reproduce(&["--only", &small, "--json"], dir.path());
    let value: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    assert_eq!(value["result"]["experiments"][0]["name"], "small");
    let read =
        |name: &str| std::fs::read_to_string(dir.path().join("reproduce").join(name)).unwrap();
    for text in [read("book.html"), read("book.md")] {
        assert!(
            text.contains("2.00 times (2,000 against 1,000; Somebody 2020; a small one)"),
            "{text}"
        );
        assert!(
            text.contains("Is twice the rate twice as much?") || text.contains("small"),
            "{text}"
        );
    }
    assert!(read("book.html").contains("/report.html"));
    // One block has no interval: nobody knows whether it came as expected.
    assert_eq!(value["result"]["undecided_count"], 1, "{value}");
    let first = runs(dir.path());
    assert_eq!(first.len(), 1);
    // A complete run is kept.
    let again = reproduce(&["--only", &small, "--check"], dir.path());
    assert!(said(&again).contains("small: kept"), "{}", said(&again));
    assert_eq!(runs(dir.path()), first);
    assert_eq!(again.status.code(), Some(4), "undecided: {}", said(&again));
}

#[test]
fn what_cannot_run_here_is_named_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let small = scenario(dir.path(), "small.toml", SMALL);
    let odd = SMALL.replace("load.rate = \"2k\"", "serve.cpu = \"@other-node-than-softirq\"");
    let odd = scenario(dir.path(), "odd.toml", &odd);
    let both = format!("{odd},{small}");
    let output = reproduce(&["--only", &both, "--json"], dir.path());
    let value: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let problem = value["result"]["experiments"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("not available"), "{problem}");
    assert!(said(&output).contains(&format!("rxpath: odd: {problem}\n")), "{}", said(&output));
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let alone = reproduce(&["--only", &odd], dir.path());
    assert_eq!(alone.status.code(), Some(3), "{}", said(&alone));
}

#[test]
fn an_unknown_experiment_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let output = reproduce(&["--only", "udp-pining"], dir.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("did you mean `udp-pinning`"), "{}", said(&output));
}
