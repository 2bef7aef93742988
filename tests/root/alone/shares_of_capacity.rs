//! Rates as shares of what the receiver can take: it is searched first, where no other load makes every rate fail.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::bed::may_run;
use crate::bundled::{OF_CAPACITY, SMALLEST, holds};
use crate::experiment::run_bundled;
use crate::program::said;

#[test]
fn the_rates_of_a_run_are_shares_of_the_capacity_that_it_finds_first() {
    if !may_run() {
        return;
    }
    // 5,000 datagrams/s at most, and a bound that also holds where other load takes a third of the receiver's CPU. Half of the
    // time limit is for the search: a lower bound is enough.
    let slow = ["serve.work=200us", "serve.rcvbuf=64KiB", "load.capacity_slo=loss<40%"];
    let sets = [&SMALLEST[..], &slow, &["trials.time_limit=50s"]].concat();
    let manifest = run_bundled(OF_CAPACITY, &sets);
    holds(&manifest);
    let capacity = manifest.capacity.as_ref().unwrap();
    let lower = capacity.lower_per_s.unwrap();
    let rates: Vec<f64> = manifest.resolved["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variant| variant["load"]["options"]["rate"].as_f64().unwrap() / lower)
        .collect();
    assert!((rates[0] - 0.25).abs() < 0.01 && (rates[2] - 2.0).abs() < 0.01, "{rates:?}");
    let measured = manifest.warnings.iter().any(|warning| warning.code == "capacity-measured");
    assert!(measured, "{:?}", manifest.warnings);
    // Blocks begin within the time limit, however long a search wants to go on.
    assert!(manifest.trials.len() >= 3, "{}", manifest.trials.len());
}

/// Programs that leave no CPU alone, until they are dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn new() -> Self {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let spin = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..2 * cpus).map(spin).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_search_that_other_load_disturbs_all_the_time_ends_early_and_says_who() {
    if !may_run() {
        return;
    }
    let busy = Busy::new();
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["run", OF_CAPACITY, "--set", "trials.time_limit=10min", "--out"]).arg(out.path());
    let begun = Instant::now();
    let output = said(&mut command);
    drop(busy);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(
        output.err.contains("6 trials in a row were void") && output.err.contains("(most: "),
        "{output:?}"
    );
    // Three minutes would be the search's.
    assert!(begun.elapsed() < Duration::from_secs(170), "{output:?}");
}
