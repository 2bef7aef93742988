//! `rxpath watch` without a terminal and without root: frames, recordings, and what is refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn rxpath(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn schema() -> jsonschema::Validator {
    let text = rxpath(&["schema", "watch"]).stdout;
    jsonschema::validator_for(&serde_json::from_slice(&text).unwrap()).unwrap()
}

#[test]
fn one_look_is_text_or_an_object_of_its_schema() {
    let output = rxpath(&["watch", "--once", "--no-bpf", "--interval", "200ms", "--json"]);
    assert!(output.status.success(), "{}", told(&output));
    let look: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<String> = schema().iter_errors(&look).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let stages: Vec<&str> = look["result"]["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["nic", "irq", "gro", "backlog", "ip", "socket", "application"]);
    assert!(look["result"]["gaps"]["BPF probes"].as_str().unwrap().contains("not asked for"));
    let window = look["result"]["window_s"].as_f64().unwrap();
    assert!(window >= 0.2, "{window}");
    let text = rxpath(&["watch", "--once", "--no-bpf", "--interval", "200ms"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for word in ["NIC/ring", "filter/IP", "CPUs", "tasks", "not known: BPF probes"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn what_is_recorded_is_what_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.jsonl");
    let path = file.to_str().unwrap();
    let words = ["watch", "--no-bpf", "--interval", "100ms", "-d", "1s", "--record", path];
    let recorded = rxpath(&words);
    assert!(recorded.status.success(), "{}", told(&recorded));
    assert!(told(&recorded).contains("frames in"), "{}", told(&recorded));
    let replayed = lines(&rxpath(&["watch", "--replay", path, "--json"]));
    let kept: Vec<Value> = fs::read_to_string(&file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(replayed, kept);
    assert_eq!(kept[0]["type"], "settings");
    assert_eq!(kept[0]["schema"], "rxpath/watch/1.0");
    let numbers: Vec<u64> =
        kept[1..].iter().map(|frame| frame["number"].as_u64().unwrap()).collect();
    assert!(!numbers.is_empty() && numbers.iter().zip(1..).all(|(n, at)| *n == at), "{numbers:?}");
    let last = rxpath(&["watch", "--replay", path, "--once"]);
    assert!(String::from_utf8_lossy(&last.stdout).contains("NIC/ring"));
    let again = rxpath(&words);
    assert_eq!(again.status.code(), Some(2), "a recording is not written over");
    assert!(told(&again).contains("exists"), "{}", told(&again));
}

#[test]
fn a_recorder_that_is_killed_leaves_what_it_saw() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.jsonl");
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["watch", "--no-bpf", "--interval", "100ms", "--record", file.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let frames = |file: &Path| fs::read_to_string(file).unwrap_or_default().lines().count();
    while frames(&file) < 3 {
        assert!(Instant::now() < deadline, "no frames within 30 s");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Killed in the middle of a line, or a disk that was full.
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend(br#"{"type":"interval","number":99,"win"#);
    fs::write(&file, &bytes).unwrap();
    let replayed = rxpath(&["watch", "--replay", file.to_str().unwrap(), "--json"]);
    assert_eq!(replayed.status.code(), Some(5));
    assert!(lines(&replayed).len() >= 3);
    assert!(told(&replayed).contains("is cut at line"), "{}", told(&replayed));
}

#[test]
fn what_cannot_be_shown_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let foreign = write("foreign", "{\"type\":\"settings\",\"schema\":\"rxpath/trace/1.0\"}\n");
    let newer = write("newer", "{\"type\":\"settings\",\"schema\":\"rxpath/watch/2.0\"}\n");
    let empty = write("empty", "");
    let head = write("head", "{\"type\":\"settings\",\"schema\":\"rxpath/watch/1.0\"}\n");
    let missing = dir.path().join("missing").to_str().unwrap().to_owned();
    for (words, told_word) in [
        (vec!["watch"], "no terminal"),
        (vec!["watch", "--interval", "1ms", "--once"], "--interval 1ms"),
        (vec!["watch", "--replay", &foreign, "--json"], "rxpath/trace/1.0"),
        (vec!["watch", "--replay", &newer, "--json"], "rxpath/watch/2.0"),
        (vec!["watch", "--replay", &empty, "--json"], "no recording"),
        (vec!["watch", "--replay", &head, "--json"], "no whole frame"),
        (vec!["watch", "--replay", &missing, "--json"], "No such file"),
        (vec!["watch", "--replay", dir.path().to_str().unwrap(), "--json"], "no regular file"),
        (vec!["watch", "--replay", &head, "--record", "x"], "--record"),
    ] {
        let output = rxpath(&words);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains(told_word), "{words:?}: {told}");
        assert!(told.lines().count() <= 3, "{words:?}: {told}");
    }
}
