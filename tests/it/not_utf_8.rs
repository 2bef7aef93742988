//! Words of the command line that are not UTF-8.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use serde_json::Value;

use crate::program::said;

const SCENARIO: &str = r#"
question = "Is its command kept?"
[topology]
kind = "local"
[load]
rate = "2k"
[trials]
blocks = 1
max_blocks = 1
aa = false
ramp = "20ms"
settle = "0s"
measure = "100ms"
"#;

#[test]
fn a_run_in_a_directory_whose_name_is_not_utf_8_has_its_command() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join(OsStr::from_bytes(b"odd\xff"));
    let shown = out.display().to_string();
    let scenario = dir.path().join("small.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let scenario = scenario.to_str().unwrap();
    let run = ["run", scenario, "--keep-noisy", "--json", "--wait=120s", "--out"];
    let simulate = ["model", "simulate", "simple-path", "-d", "100ms", "--json", "--out"];
    for (words, key) in [(&run[..], "/settings/run"), (&simulate[..], "/result/run")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        let answer = said(command.args(words).arg(&out)).json();
        let place = answer.pointer(key).and_then(Value::as_str).unwrap();
        let name = place.strip_prefix(&format!("{shown}/")).unwrap();
        let manifest = fs::read(out.join(name).join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let recorded = manifest["command"].as_array().unwrap();
        assert_eq!(recorded.last().and_then(Value::as_str), Some(shown.as_str()));
    }
}

#[test]
fn an_answer_has_its_path_that_is_not_utf_8() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(OsStr::from_bytes(b"odd\xff.json"));
    fs::write(&file, r#"{"cases":[{"id":"a","kind":"M/M/1/K","inputs":{"rho":0.8,"K":16}}]}"#)
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    let answer = said(command.args(["model", "eval", "--json"]).arg(&file)).json();
    assert_eq!(answer["settings"]["file"], file.display().to_string());
}

#[test]
fn a_word_for_another_host_that_is_not_utf_8_is_refused() {
    let nothing = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["trace", "--host", "sut", "--perfetto"]).arg(OsStr::from_bytes(b"odd\xff.json"));
    let done = said(command.env("PATH", nothing.path()));
    let text = "rxpath: `odd\u{fffd}.json`: not UTF-8, which --host cannot pass on\n\
                hint: use words in UTF-8 with --host\n";
    assert_eq!((done.code, done.err), (Some(2), text.to_owned()));
}
