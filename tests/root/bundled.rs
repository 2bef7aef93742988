//! Every bundled scenario, once at its smallest: it runs, its ledgers close, and what it is about is measured.
//!
//! Nothing here asserts a rate, a time or a direction: a busy machine changes none of this.

use rxpath_lab::scenario::bundled;
use rxpath_record::manifest::Manifest;

use crate::bed::may_run;
use crate::experiment::run_bundled;
use crate::skip::skip;

/// One block without A/A, some 0.6 s a trial.
pub const SMALLEST: [&str; 5] = [
    "trials.aa=false",
    "trials.max_blocks=1",
    "trials.ramp=50ms",
    "trials.settle=0s",
    "trials.measure=400ms",
];

/// Programs of others that bundled scenarios start.
const PEERS: [&str; 3] = ["nginx", "wrk", "iperf3"];

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The program that a scenario needs and this machine lacks; its name ends with the program's.
pub fn lacks(scenario: &str) -> Option<&'static str> {
    PEERS.into_iter().find(|peer| scenario.ends_with(peer) && !installed(peer))
}

/// The ledgers of a run's trials close, and its main metric is a number.
pub fn holds(manifest: &Manifest) {
    let name = &manifest.scenario;
    assert!(!manifest.trials.is_empty(), "{name}: no variant can run here");
    for trial in &manifest.trials {
        let ledger = &trial.ledger;
        let which = format!("{name}, {}: {ledger:#?}", trial.variant);
        assert!(ledger.offered_packets > 0, "{which}");
        assert_eq!(ledger.unaccounted_packets, 0, "{which}");
        let main = trial.metrics.get(&manifest.main_metric);
        assert!(main.is_some_and(|value| value.is_finite()), "{which}: {:?}", trial.metrics);
    }
}

#[test]
fn every_bundled_scenario_runs_and_its_ledgers_close() {
    if !may_run() {
        return;
    }
    // Those of the model are run by `model validate`, and its tests look at their ledgers; those of stolen time have
    // tests of their own.
    let elsewhere = |name: &str| name.starts_with("model-") || name.starts_with("steal-");
    for file in bundled().unwrap().into_iter().filter(|file| !elsewhere(&file.name)) {
        match lacks(&file.name) {
            Some(peer) => skip("bundled_peers", &format!("{} needs {peer}", file.name)),
            None => holds(&run_bundled(&file.name, &SMALLEST)),
        }
    }
}
