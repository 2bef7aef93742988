//! Every bundled scenario, once at its smallest: it runs, its ledgers close, and what it is about is measured.
//!
//! Nothing here asserts a rate, a time or a direction: a busy machine changes none of this.

use rxpath_lab::scenario::bundled;
use rxpath_record::manifest::Manifest;

use crate::bed::may_run;
use crate::experiment::{run_bundled, run_file};
use crate::skip::skip;

/// One block without A/A and pairs, some 0.6 s a trial.
pub const SMALLEST: [&str; 6] = [
    "trials.aa=false",
    "trials.paired=false",
    "trials.max_blocks=1",
    "trials.ramp=50ms",
    "trials.settle=0s",
    "trials.measure=400ms",
];

/// The scenario whose rates are shares of what the receiver can take.
pub const OF_CAPACITY: &str = "udp-queue";

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
        assert_eq!(ledger.unaccounted_packets, Some(0), "{which}");
        let main = trial.metrics.get(&manifest.main_metric);
        assert!(main.is_some_and(|value| value.is_finite()), "{which}: {:?}", trial.metrics);
    }
}

/// Runs the bundled scenarios of one kind. Those of the model are run by `model validate`, and its tests read their ledgers;
/// those of stolen time, and the one whose rates are shares of a capacity, have tests of their own.
fn run_all(kind: &str) {
    if !may_run() {
        return;
    }
    let of_kind = |name: &str| match name.split('-').next() {
        Some(first @ ("udp" | "tcp" | "http")) => first == kind,
        Some("model" | "steal") => false,
        _ => kind == "other",
    };
    let is_here = |name: &&String| of_kind(name) && *name != OF_CAPACITY;
    let names: Vec<String> = bundled().unwrap().into_iter().map(|file| file.name).collect();
    // To calibrate the cost of an interrupt takes six seconds of both CPUs.
    let sets = [&SMALLEST[..], &["observe.irq_entry=3us"]].concat();
    let mut runs = 0;
    for name in names.iter().filter(is_here) {
        match lacks(name) {
            Some(peer) => skip("bundled_peers", &format!("{name} needs {peer}")),
            None => holds(&run_bundled(name, &sets)),
        }
        runs += 1;
    }
    assert!(runs > 1, "no scenarios of {kind}: {names:?}");
}

#[test]
fn every_udp_scenario_runs_and_its_ledgers_close() {
    run_all("udp");
}

#[test]
fn every_tcp_scenario_runs_and_its_ledgers_close() {
    run_all("tcp");
}

#[test]
fn every_http_scenario_runs_and_its_ledgers_close() {
    run_all("http");
}

#[test]
fn every_other_scenario_runs_and_its_ledgers_close() {
    run_all("other");
}

/// As it stands in the documents.
#[test]
fn the_example_of_other_programs_runs() {
    if !may_run() {
        return;
    }
    if !installed("iperf3") {
        return skip("bundled_peers", "the example of docs/reference/scenarios.md needs iperf3");
    }
    let text = include_str!("../../docs/reference/scenarios.md");
    let (_, section) = text.split_once("## Other programs\n\n").unwrap();
    let lines = section.lines().map_while(|line| line.strip_prefix("    "));
    let example = lines.fold(String::new(), |all, line| all + line + "\n");
    assert!(example.contains("iperf3 -c"), "{example}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("example.toml");
    std::fs::write(&file, example).unwrap();
    let manifest = run_file(&file, &SMALLEST);
    assert_eq!(manifest.trials.len(), 1);
    let ledger = &manifest.trials[0].ledger;
    assert!(ledger.offered_packets > 0 && ledger.delivered_packets > 0, "{ledger:#?}");
    // iperf3 closes its socket with what is unread, which no counter has: at most a buffer full, and told.
    let left = ledger.unaccounted_packets.unwrap();
    assert!((0..=1000).contains(&left), "{ledger:#?}");
    assert!(
        left == 0 || ledger.notes.iter().any(|note| note.contains("and the reader")),
        "{ledger:#?}"
    );
}
