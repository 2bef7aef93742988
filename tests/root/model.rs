//! Calibration and validation in the lab, at their smallest: what they say is whole, whatever this machine's speed and
//! noise.

use std::path::Path;
use std::process::Command;

use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunReader;
use serde_json::Value;
use tempfile::TempDir;

use crate::bed::{may_run, tried};
use crate::bundled::holds;
use crate::experiment::has_rates;
use crate::program::{Said, said};
use crate::skip::skip;

/// Some 0.6 s a trial, of which eight intervals of the workloads: enough that a prediction stands beside each measurement, not that it is right.
const SMALLEST: [&str; 8] = [
    "--set",
    "trials.ramp=50ms",
    "--set",
    "trials.settle=0s",
    "--set",
    "trials.measure=400ms",
    "--set",
    "trials.paired=false",
];

fn rxpath(words: &[&str], directory: &Path) -> Said {
    said(Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).current_dir(directory))
}

fn a_calibration() -> String {
    let file = "../../fuzz/corpus/model_calibration/whole";
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file).display().to_string()
}

#[test]
fn a_calibration_is_written_whole_or_refused_with_the_reason() {
    if !may_run() {
        return;
    }
    let words = [&["model", "calibrate", "--json", "--keep-noisy"], &SMALLEST[..]].concat();
    let (base, done) = with_rates(&words);
    let told = &done.err;
    holds(manifests(base.path()).first().unwrap_or_else(|| panic!("{told}")));
    let file = base.path().join("rxpath-runs/calibration.json");
    match done.code {
        Some(0) => {
            let text = std::fs::read_to_string(&file).unwrap();
            let kept: Value = serde_json::from_str(&text).unwrap();
            for key in ["reader.packet_ns", "rps.packet_ns", "rps.ipi_ns", "socket.truesize"] {
                let [low, high] =
                    [0, 1].map(|end| kept["parameters"][key]["interval"][end].as_f64().unwrap());
                let value = kept["parameters"][key]["value"].as_f64().unwrap();
                assert!(low <= value && value <= high, "{key}: {low} {value} {high}");
            }
            let from = ["model", "simulate", "--from", "rxpath-runs/calibration.json"];
            let sets = ["--set", "arrivals.rate=10k", "-d", "20ms", "--json"];
            rxpath(&[&from[..], &sets[..]].concat(), base.path()).ends(0);
            its_runs_keep_it(&kept, base.path());
        }
        Some(4) => {
            assert!(told.contains("no calibration: ") || told.contains("too noisy"), "{told}");
            assert!(!file.exists(), "nothing is written of a refused calibration");
            skip("quiet_machine", "other load kept the calibration from its intervals");
        }
        other => panic!("{other:?}: {told}"),
    }
}

/// A command in a directory of its own, and how it ended; again where a program of one of its trials had no CPU for a window.
fn with_rates(words: &[&str]) -> (TempDir, Said) {
    let attempt = || {
        let base = tempfile::tempdir().unwrap();
        let done = rxpath(words, base.path());
        (base, done)
    };
    tried(attempt, |(base, _)| manifests(base.path()).iter().all(has_rates))
}

/// The manifests of the runs that were made in a directory.
fn manifests(base: &Path) -> Vec<Manifest> {
    let runs = std::fs::read_dir(base.join("rxpath-runs")).into_iter().flatten();
    let runs = runs.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    runs.map(|run| RunReader::open(&run).unwrap().manifest).collect()
}

/// What a run's predictions were made from is in its directory.
fn its_runs_keep_it(calibration: &Value, directory: &Path) {
    let words =
        [&["run", "udp-batching", "--trials", "1", "--keep-noisy", "--json"], &SMALLEST[..]];
    let got = rxpath(&words.concat(), directory).json();
    let run = directory.join(got["settings"]["run"].as_str().unwrap());
    let text = std::fs::read_to_string(run.join("calibration.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap()["parameters"],
        calibration["parameters"]
    );
    let manifest = RunReader::open(&run).unwrap().manifest;
    assert!(manifest.files.contains_key("calibration.json"), "{:?}", manifest.files);
    assert!(!manifest.predictions.is_empty());
}

#[test]
fn every_variant_of_the_models_scenarios_is_predicted_and_their_ledgers_close() {
    if !may_run() {
        return;
    }
    let file = a_calibration();
    let with = ["--calibration", file.as_str(), "--foreign", "--json", "--keep-noisy"];
    let validate = ["model", "validate", "--trials", "1"];
    let (base, done) = with_rates(&[&validate[..], &SMALLEST[..], &with[..]].concat());
    assert!(matches!(done.code, Some(0 | 1)), "{done:?}");
    let got = done.json();
    let warnings = got["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|it| it["code"] == "foreign-calibration"), "{warnings:?}");
    let scenarios = got["result"]["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 5, "{scenarios:?}");
    for scenario in scenarios {
        whole(scenario);
        let run = scenario["run"].as_str().unwrap();
        holds(&RunReader::open(&base.path().join(run)).unwrap().manifest);
    }
    // The same run again, read from its directory.
    let run = scenarios[1]["run"].as_str().unwrap();
    let again =
        rxpath(&[&["model", "validate", "--run", run], &with[..]].concat(), base.path()).json();
    assert_eq!(again["result"]["scenarios"][0]["variants"], scenarios[1]["variants"]);
    what_if(run, &with, base.path());
}

/// A prediction beside each measurement, of the whole and of each stage.
fn whole(scenario: &Value) {
    let variants = scenario["variants"].as_array().unwrap();
    assert!(variants.len() >= 6, "{variants:?}");
    for variant in variants {
        let loss = |value: &Value| value.as_f64().filter(|loss| (0.0..=1.0).contains(loss));
        let predicted = loss(&variant["predicted_loss"]);
        assert!(predicted.is_some(), "{variant}");
        let stages = variant["stages"].as_object().unwrap();
        assert!(stages.contains_key("socket"), "{variant}");
        let measured: f64 = stages.values().map(|both| loss(&both["measured"]).unwrap()).sum();
        let all = loss(&variant["measured_loss"][0]).unwrap();
        assert!(measured <= all + 1e-9, "the stages lose no more than the whole: {variant}");
    }
    assert!(scenario["goals"].as_array().unwrap().len() >= 2, "{scenario}");
}

/// A change before it is made, from the same run.
fn what_if(run: &str, with: &[&str], directory: &Path) {
    let change = ["model", "simulate", "--from", run, "--set", "socket.rcvbuf=4MiB"];
    let with: Vec<&str> = with.iter().copied().filter(|word| *word != "--keep-noisy").collect();
    let done = rxpath(&[&change[..], &with[..]].concat(), directory).ends(0);
    let result = &done.json()["result"];
    let delivered = |figures: &Value| figures["delivered_pps"].as_f64().unwrap();
    // A larger socket never loses more.
    assert!(delivered(result) >= delivered(&result["before"]) * 0.999, "{result}");
    // A run that kept its calibration needs no other, of whatever host it is.
    let bare = rxpath(&[&change[..], &["--json"]].concat(), directory);
    assert_eq!(bare.code, Some(2), "no calibration here: {bare:?}");
    std::fs::copy(a_calibration(), directory.join(run).join("calibration.json")).unwrap();
    let own = rxpath(&[&change[..], &["--json"]].concat(), directory).json();
    assert_eq!(own["result"]["delivered_pps"], result["delivered_pps"]);
    let warnings = own["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(|it| it["code"] != "foreign-calibration"), "{own}");
}
