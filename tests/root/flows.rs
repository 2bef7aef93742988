//! The CPU that each flow's receive softirq runs on, as a trial records it.

use crate::bed::{may_run, tried};
use crate::experiment::{Ended, run};

/// Whether each flow was seen on a CPU: what a busy softirq thread delivers too late for its probe has none.
pub fn are_seen(trials: &[Ended]) -> bool {
    trials.iter().flat_map(|trial| &trial.flow_cpus).all(|flow| flow.cpu.is_some())
}

const FLOWS: [&str; 4] =
    ["load.source_port=40000", "load.flows=8", "lab.addresses=2", "load.rate=20k"];

#[test]
fn every_flow_of_an_unconnected_sender_is_seen_on_a_cpu_of_the_rps_mask() {
    if !may_run() {
        return;
    }
    for (mask, allowed) in [("1", vec![1]), ("0-1", vec![0, 1])] {
        let rps = format!("lab.rps_cpus={mask}");
        let sets = [FLOWS.as_slice(), &["load.unconnected=true", &rps]].concat();
        for trial in tried(|| run("loss-none", &sets), |trials| are_seen(trials)) {
            assert_eq!(trial.flow_cpus.len(), 16, "8 ports to 2 addresses");
            for flow in &trial.flow_cpus {
                assert!(flow.cpu.is_some_and(|cpu| allowed.contains(&cpu)), "{mask}: {flow:?}");
            }
            // The probes were over before the counters were read.
            assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:#?}", trial.ledger);
            assert_eq!(trial.ledger.foreign_packets, 0, "{:#?}", trial.ledger);
        }
    }
}

#[test]
fn nothing_is_said_of_connected_senders_whose_hash_is_their_own() {
    if !may_run() {
        return;
    }
    let sets = [FLOWS.as_slice(), &["lab.rps_cpus=1"]].concat();
    for trial in run("loss-none", &sets) {
        assert!(trial.flow_cpus.is_empty(), "{:?}", trial.flow_cpus);
    }
}
