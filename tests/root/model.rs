//! Calibration and validation in the lab: what they say is whole, whatever this machine's speed and noise.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::bed::may_run;

fn rxpath(words: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).current_dir(directory).output().unwrap()
}

#[test]
#[ignore = "takes minutes, and was not seen to end on a busy machine yet"]
fn a_calibration_is_written_whole_or_refused_with_the_reason() {
    if !may_run() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let done = rxpath(&["model", "calibrate", "--json"], base.path());
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    let file = base.path().join("rxpath-runs/calibration.json");
    match done.status.code() {
        Some(0) => {
            let text = std::fs::read_to_string(&file).unwrap();
            let kept: Value = serde_json::from_str(&text).unwrap();
            for key in ["reader.packet_ns", "rps.packet_ns", "rps.ipi_ns", "socket.truesize"] {
                let [low, high] =
                    [0, 1].map(|end| kept["parameters"][key]["interval"][end].as_f64().unwrap());
                let value = kept["parameters"][key]["value"].as_f64().unwrap();
                assert!(low <= value && value <= high, "{key}: {low} {value} {high}");
            }
            let sets = ["--set", "arrivals.rate=10k", "-d", "20ms", "--json"];
            let words =
                [&["model", "simulate", "--from", "rxpath-runs/calibration.json"], &sets[..]]
                    .concat();
            let used = rxpath(&words, base.path());
            assert_eq!(used.status.code(), Some(0), "{}", String::from_utf8_lossy(&used.stderr));
        }
        Some(4) => {
            assert!(told.contains("no calibration: ") || told.contains("too noisy"), "{told}");
            assert!(!file.exists(), "nothing is written of a refused calibration");
        }
        other => panic!("{other:?}: {told}"),
    }
}

#[test]
#[ignore = "takes minutes, and was not seen to end on a busy machine yet"]
fn every_variant_of_a_validated_scenario_is_predicted() {
    if !may_run() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model_calibration/whole");
    let file = file.display().to_string();
    let scenario = ["model", "validate", "model-stalling-reader", "--trials", "1", "--keep-noisy"];
    let with = ["--calibration", file.as_str(), "--foreign", "--json"];
    let done = rxpath(&[&scenario[..], &with[..]].concat(), base.path());
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(matches!(done.status.code(), Some(0 | 1)), "{:?}: {told}", done.status);
    let got: Value = serde_json::from_slice(&done.stdout).unwrap();
    let validated = &got["result"]["scenarios"][0];
    let variants = validated["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 6, "{variants:?}");
    for variant in variants {
        let predicted = variant["predicted_loss"].as_f64();
        assert!(predicted.is_some_and(|loss| (0.0..=1.0).contains(&loss)), "{variant}");
    }
    assert_eq!(got["warnings"][0]["code"], "foreign-calibration");
    // The same run again, read from its directory.
    let run = validated["run"].as_str().unwrap();
    let again = rxpath(&[&["model", "validate", "--run", run], &with[..]].concat(), base.path());
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["result"]["scenarios"][0]["variants"], validated["variants"]);
}
