//! `rxpath model`: arithmetic over the command line.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn rxpath(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).display().to_string()
}

#[test]
fn eval_prints_every_case_of_a_file() {
    let done = rxpath(&["model", "eval", &repository("testdata/model/cases.json"), "--json"]);
    assert_eq!(done.status.code(), Some(0));
    let got = json(&done);
    assert_eq!(got["schema"], "rxpath/model-eval/1.0");
    let cases = got["result"]["cases"].as_array().unwrap();
    let one = cases.iter().find(|case| case["id"] == "mm1k_rho1_K64").unwrap();
    assert_eq!(one["outputs"]["mean_number"], 32.0);
}

#[test]
fn eval_lists_problems_by_case_and_is_partial() {
    let file = repository("fuzz/corpus/model_cases/bad-inputs");
    let done = rxpath(&["model", "eval", &file, "--json"]);
    assert_eq!(done.status.code(), Some(5));
    let got = json(&done);
    assert_eq!(got["result"]["cases"][1]["problem"]["code"], "bad-input");
    assert_eq!(got["result"]["cases"][3]["problem"]["code"], "no-value");
    assert_eq!(got["warnings"].as_array().unwrap().len(), 4);
    let done = rxpath(&["model", "eval", &repository("fuzz/corpus/model_cases/broken")]);
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn bounds_answer_in_sentences_with_formula_and_assumption() {
    let words = "model bounds --arrival-rate 400k --size 32 --service-ns 2000 --stall 10ms";
    let words: Vec<&str> = words.split(' ').collect();
    let done = rxpath(&words);
    let text = String::from_utf8(done.stdout).unwrap();
    let wanted = "At 400k datagrams/s the socket queue of 256 datagrams overflows 640us after the reader stops";
    assert!(text.contains(wanted), "{text}");
    assert!(
        text.contains("by N >= ceil(lambda T)") && text.contains("if regular arrivals"),
        "{text}"
    );
    assert!(text.contains("ring_capacity (packet_ns)"), "what is missing: {text}");
    let got = json(&rxpath(&[words.as_slice(), &["--json"]].concat()));
    assert_eq!(got["settings"]["arrival_rate_pps"], 400_000);
    assert_eq!(got["result"]["bounds"]["stall"]["min_queue_packets"], 4000);
}

#[test]
fn flags_win_over_the_file_and_nonsense_is_usage() {
    let file = repository("fuzz/corpus/model_parameters/full");
    let got =
        json(&rxpath(&["model", "bounds", &file, "--ring", "512", "--rx-usecs", "20", "--json"]));
    assert_eq!(got["settings"]["ring_packets"], 512);
    assert_eq!(got["settings"]["rx_usecs"], 20);
    assert_eq!(got["settings"]["size_bytes"], 32);
    for (words, wanted) in [
        (vec!["model", "bounds"], "bound nothing"),
        (vec!["model", "bounds", "--share", "2"], "`share` must be above 0"),
        (vec!["model", "bounds", "--stall", "3"], "unit is missing"),
        (vec!["model", "bounds", "/no/such.toml"], "/no/such.toml"),
    ] {
        let done = rxpath(&words);
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.starts_with("rxpath: ") && stderr.contains(wanted), "{words:?}: {stderr}");
    }
}
