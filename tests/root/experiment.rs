//! Runs the built program on a scenario file, as a user does, and reads what it prints.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::run::RunReader;

use crate::bed::tried;
use crate::bundled::SMALLEST;

/// A trial that has ended.
pub type Ended = Trial;

/// What scenarios for tests have in common: one short block. A program that waits 300 ms for its CPU has rates all the same.
const SHORT: [&str; 2] = ["trials.measure=500ms", "trials.time_limit=60s"];

/// The trials of `tests/data/scenarios/NAME.toml`, each variant once, with `--set` for each of `sets`.
pub fn run(name: &str, sets: &[&str]) -> Vec<Ended> {
    kept(name, sets).manifest.trials
}

/// The same, with everything that the run directory holds.
pub fn kept(name: &str, sets: &[&str]) -> RunReader {
    of_tests(name, sets, &[])
}

/// A scenario for tests: with [`SHORT`] trials unless it has a `[trials]` of its own. Of two values the last holds.
fn of_tests(name: &str, sets: &[&str], words: &[&str]) -> RunReader {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/scenarios")
        .join(format!("{name}.toml"));
    let has_own = std::fs::read_to_string(&file).unwrap().contains("\n[trials]\n");
    let shared = if has_own { Vec::new() } else { [&SMALLEST[..], &SHORT].concat() };
    read(file.as_os_str(), &[&shared[..], sets].concat(), words)
}

/// Any file.
pub fn run_file(file: &Path, sets: &[&str]) -> Manifest {
    read(file.as_os_str(), sets, &[]).manifest
}

/// Any file with `--observe WHAT`.
pub fn observed_file(file: &Path, what: &str) -> Manifest {
    read(file.as_os_str(), &[], &["--observe", what]).manifest
}

/// The same with `--observe WHAT`.
pub fn observed(name: &str, sets: &[&str], what: &str) -> RunReader {
    of_tests(name, sets, &["--observe", what])
}

/// A bundled scenario, each variant once, with `--set` for each of `sets`.
pub fn run_bundled(name: &str, sets: &[&str]) -> Manifest {
    read(OsStr::new(name), sets, &[]).manifest
}

/// The same with `--observe WHAT`.
pub fn observed_bundled(name: &str, sets: &[&str], what: &str) -> Manifest {
    read(OsStr::new(name), sets, &["--observe", what]).manifest
}

/// A program that had no CPU for nearly a whole window has no rates, and says so: then the run is made again.
fn read(scenario: &OsStr, sets: &[&str], words: &[&str]) -> RunReader {
    tried(|| once(scenario, sets, words), |run| has_rates(&run.manifest))
}

/// Whether each program of each trial printed enough in its window.
pub fn has_rates(manifest: &Manifest) -> bool {
    let mut warnings = manifest.trials.iter().flat_map(|trial| &trial.warnings);
    warnings.all(|warning| warning.code != "no-rates")
}

/// A run of a scenario for tests in each of whose windows something was delivered: a sender may have no CPU in one.
pub fn delivering(name: &str, sets: &[&str]) -> RunReader {
    let is_moving = |trial: &Trial| trial.evidence.delivered_pps > 0.0;
    tried(|| kept(name, sets), |run| run.manifest.trials.iter().all(is_moving))
}

fn once(scenario: &OsStr, sets: &[&str], words: &[&str]) -> RunReader {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.arg("run").arg(scenario).args(["--trials", "1", "--keep-noisy", "--json", "--out"]);
    command.arg(out.path()).args(words).args(["--set", "trials.paired=false"]);
    command.args(sets.iter().flat_map(|set| ["--set", set]));
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // Why a run has no trials: shown where its test fails.
    eprintln!("{errors}");
    // Whether the machine was quiet, or has CPUs for every variant, is nothing to this test: counts are counts.
    assert!(matches!(output.status.code(), Some(0 | 4 | 5)), "{}: {errors}", output.status);
    let envelope: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let directory = envelope["settings"]["run"].as_str().unwrap();
    let reader = RunReader::open(Path::new(directory)).unwrap();
    let problems: Vec<String> = reader.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{problems:?}");
    reader
}
