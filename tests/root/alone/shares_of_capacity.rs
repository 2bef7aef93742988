//! Rates as shares of what the receiver can take: it is searched first, where no other load makes every rate fail.

use crate::bed::may_run;
use crate::bundled::{OF_CAPACITY, SMALLEST, holds};
use crate::experiment::run_bundled;

#[test]
fn the_rates_of_a_run_are_shares_of_the_capacity_that_it_finds_first() {
    if !may_run() {
        return;
    }
    // 5,000 datagrams/s at most, which no noise of the machine moves far. Half of the time limit is for the search: a lower
    // bound is enough.
    let slow = ["serve.work=200us", "serve.rcvbuf=64KiB", "load.capacity_slo=loss<10%"];
    let sets = [&SMALLEST[..], &slow, &["trials.time_limit=40s"]].concat();
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
