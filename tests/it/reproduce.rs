//! `rxpath reproduce` as a program, on a small experiment over loopback.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Said, said};

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

fn reproduce(words: &[&str], out: &Path) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    // Other tests have this machine's lab meanwhile.
    said(command.args(["reproduce", "--wait=120s"]).args(words).arg("--out").arg(out))
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

#[test]
fn a_book_has_the_published_figure_beside_the_measured_one() {
    let dir = tempfile::tempdir().unwrap();
    let small = scenario(dir.path(), "small.toml", SMALL);
    let value = reproduce(&["--only", &small, "--json"], dir.path()).json();
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
    let again = reproduce(&["--only", &small, "--check"], dir.path()).warns("small: kept");
    assert_eq!(runs(dir.path()), first);
    assert_eq!(again.code, Some(4), "undecided: {again:?}");
}

#[test]
fn what_cannot_run_here_is_named_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let small = scenario(dir.path(), "small.toml", SMALL);
    let odd = SMALL.replace("load.rate = \"2k\"", "serve.cpu = \"@other-node-than-softirq\"");
    let odd = scenario(dir.path(), "odd.toml", &odd);
    let both = format!("{odd},{small}");
    let output = reproduce(&["--only", &both, "--json"], dir.path());
    let value = output.json();
    let problem = value["result"]["experiments"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("not available"), "{problem}");
    assert!(output.err.contains(&format!("rxpath: odd: {problem}\n")), "{output:?}");
    assert_eq!(output.code, Some(5), "{output:?}");
    reproduce(&["--only", &odd], dir.path()).ends(3);
}

#[test]
fn an_unknown_experiment_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    reproduce(&["--only", "udp-pining"], dir.path()).ends(2).warns("did you mean `udp-pinning`");
}
