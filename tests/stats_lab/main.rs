//! Are two equal variants called different on a real machine? `make stats-lab` runs a short scenario of two equal variants
//! RUNS times (100), and writes what was said of them to `docs/results/unchanged.md`. It goes on where it was stopped: a
//! run that is whole is not run again (`target/stats-lab/`).
//!
//! Then it replays the same trials: all blocks of all runs in the order of time, judged from every tenth block on as if a run
//! began there. Neighbouring runs share blocks, so the replay is no more runs, but no run's place in time is chosen.
//!
//! Usage: `stats_lab go`. Without an argument it does nothing: `cargo test` starts it so. Exit 1: more than 5 of 100 runs
//! found a difference.

// A panic is how it says that it can't go on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rxpath_record::comparison::Outcome;
use rxpath_record::manifest::{Manifest, Status};
use rxpath_record::run::RunReader;
use rxpath_stats::difference::difference;
use rxpath_stats::scale::Good;
use rxpath_stats::{Looks, Scale, proportion, quantile};

const METRIC: &str = "achieved_tps";
/// As in the scenario.
const BLOCKS: (usize, usize) = (5, 20);
const THRESHOLD: f64 = 0.03;
/// Share of runs that may find a difference where there is none.
const MOST_WRONG: f64 = 0.05;
/// Replayed runs begin this many blocks apart.
const STEP: usize = 10;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() != Some("go") {
        println!("stats-lab: nothing to do; `make stats-lab` runs it");
        return ExitCode::SUCCESS;
    }
    let runs: usize = match std::env::var("RUNS").ok().map(|text| text.parse()) {
        None => 100,
        Some(Ok(runs)) => runs,
        Some(Err(_)) => {
            eprintln!("stats-lab: RUNS must be a number");
            return ExitCode::from(2);
        }
    };
    let place = root().join("target/stats-lab");
    let mut failed = 0;
    while whole(&place).len() < runs {
        if !run(&place) {
            failed += 1;
        }
        if failed > 5 {
            eprintln!("stats-lab: rxpath run failed {failed} times");
            return ExitCode::from(3);
        }
    }
    let manifests = whole(&place);
    let (text, wrong) = page(&manifests);
    let path = root().join("docs/results/unchanged.md");
    std::fs::write(&path, text).unwrap();
    println!("{}", path.canonicalize().unwrap().display());
    ExitCode::from(u8::from(wrong as f64 > MOST_WRONG * manifests.len() as f64))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(place: &Path) -> bool {
    let scenario = root().join("tests/stats_lab/unchanged.toml");
    let seed = whole(place).len() + 1;
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["run", "--wait=600s", "--keep-noisy", "--set", &format!("trials.seed={seed}")]);
    command.arg(scenario).arg("--out").arg(place).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().code().is_some_and(|code| code == 0 || code == 4)
}

/// The manifests of the complete runs, in the order of time.
fn whole(place: &Path) -> Vec<Manifest> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let manifests = paths.iter().filter_map(|path| Some(RunReader::open(path).ok()?.manifest));
    manifests.filter(|manifest| manifest.status == Status::Complete).collect()
}

/// Values `(one, other)` of the blocks of a run.
fn pairs(manifest: &Manifest) -> Vec<(f64, f64)> {
    let of = |variant: &str, block: u32| {
        let mut trials = manifest.trials.iter();
        let trial =
            trials.find(|t| t.variant == variant && t.block == block && t.void.is_none())?;
        trial.metrics.get(METRIC).copied()
    };
    let last = manifest.trials.iter().map(|trial| trial.block).max().unwrap_or(0);
    (1..=last).filter_map(|block| Some((of("one", block)?, of("other", block)?))).collect()
}

/// What is said of these blocks by the rules of a run, and after how many.
fn judged(pairs: &[(f64, f64)]) -> (Outcome, usize) {
    let looks = Looks::of(BLOCKS.0, BLOCKS.1);
    let most = pairs.len().min(BLOCKS.1);
    for count in BLOCKS.0..=most {
        let found = difference(&pairs[..count], Scale::Ratio, THRESHOLD, looks).unwrap();
        if count == most || found.settled().is_some() {
            return (found.word(Good::Up), count);
        }
    }
    (Outcome::Inconclusive, pairs.len())
}

/// The page, and how many runs found a difference.
fn page(manifests: &[Manifest]) -> (String, usize) {
    let said: Vec<(Outcome, usize)> = manifests
        .iter()
        .map(|run| (run.comparisons[0].effect.outcome, run.comparisons[0].pairs_count as usize))
        .collect();
    let all: Vec<(f64, f64)> = manifests.iter().flat_map(pairs).collect();
    let starts = (0..all.len().saturating_sub(BLOCKS.1)).step_by(STEP);
    let replayed: Vec<(Outcome, usize)> =
        starts.map(|at| judged(&all[at..at + BLOCKS.1])).collect();
    let noise: Vec<f64> = manifests
        .iter()
        .filter_map(|run| run.comparisons[0].effect.control.as_ref()?.trial_noise_ratio)
        .collect();
    let (least, most) = quantile::range(&noise).unwrap_or_default();
    let median = quantile::median(&noise).unwrap_or_default();
    let begun = |at: Option<&Manifest>| -> String {
        at.map_or_else(String::new, |run| run.started.chars().take(16).collect())
    };
    let mut text = format!(
        "# Two equal variants\n\nWhat `rxpath run` says of two variants that do not differ: {METRIC} of `tcp-rr` over one connection,\n\
         {} to {} blocks, threshold {:.0} %. {} runs, {} to {} UTC; trials scattered by {:.1} % in the median\n\
         run ({:.1} to {:.1} %). `make stats-lab` writes this page again, so its name has no date. No trial is left out for noise.\n\n\
         | | runs | better or worse | same | inconclusive | mean blocks |\n|---|---|---|---|---|---|\n",
        BLOCKS.0,
        BLOCKS.1,
        THRESHOLD * 100.0,
        manifests.len(),
        begun(manifests.first()),
        begun(manifests.last()),
        median * 100.0,
        least * 100.0,
        most * 100.0,
    );
    let wrong = row(&mut text, "as run", &said);
    row(&mut text, "replayed from every tenth block", &replayed);
    text += "\nReplayed runs share blocks with their neighbours. The interval is exact (Clopper and Pearson).\n";
    (text, wrong)
}

fn row(text: &mut String, name: &str, said: &[(Outcome, usize)]) -> usize {
    let count = |of: &[Outcome]| said.iter().filter(|(word, _)| of.contains(word)).count();
    let wrong = count(&[Outcome::Better, Outcome::Worse]);
    let [low, high] = proportion::interval(wrong as u64, said.len() as u64);
    let blocks: usize = said.iter().map(|(_, blocks)| blocks).sum();
    writeln!(
        text,
        "| {name} | {} | {wrong} (95 % interval {:.1} to {:.1} %) | {} | {} | {:.1} |",
        said.len(),
        low * 100.0,
        high * 100.0,
        count(&[Outcome::Same]),
        count(&[Outcome::Inconclusive]),
        blocks as f64 / said.len().max(1) as f64
    )
    .unwrap();
    wrong
}
