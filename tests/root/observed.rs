//! `run --observe`: the kernel's reasons say the same as the counters that own the places; softirqs, polls and stages of
//! the measured window are in the record.

use rxpath_record::ledger::Place;

use crate::bed::may_run;
use crate::experiment;
use crate::skip::skip;

fn has_bpf() -> bool {
    let can = rxpath_bpf::can_run(&rxpath_host::Root::host()).require("load BPF programs");
    if let Err(reason) = &can {
        skip("bpf_programs", &reason.to_string());
    }
    can.is_ok()
}

#[test]
fn reasons_agree_with_the_counters_that_own_the_place() {
    if !may_run() {
        return;
    }
    if !has_bpf() {
        return;
    }
    for (scenario, place, reason) in [
        ("loss-socket-buffer", Place::SocketBuffer, "SOCKET_RCVBUFF"),
        ("loss-no-listener", Place::NoListener, "NO_SOCKET"),
    ] {
        let run = experiment::observed(scenario, "drops");
        let trial = run.manifest.trials.iter().find(|trial| trial.variant == "plain").unwrap();
        let of = trial.ledger.reasons.iter().filter(|found| found.reason == reason);
        let packets: u64 = of.filter(|found| found.side == "rx").map(|found| found.packets).sum();
        assert_eq!(packets, trial.ledger.lost_at(place), "{:?}", trial.ledger);
        assert!(packets > 0, "{:?}", trial.ledger);
    }
    let unobserved = experiment::run("loss-none", &[]);
    assert!(unobserved.iter().all(|trial| trial.ledger.reasons.is_empty()));
}

#[test]
fn a_traced_trial_has_the_polls_and_stages_of_its_window() {
    if !may_run() || !has_bpf() {
        return;
    }
    let run = experiment::observed("loss-none", "trace,steal");
    for trial in &run.manifest.trials {
        let traced = trial.traced.as_ref().unwrap();
        let window = (trial.window_ns[1] - trial.window_ns[0]) as f64 / 1e9;
        assert!(traced.window_s > 0.0 && traced.window_s < window + 1.0, "{}", traced.window_s);
        let received = traced.stages.iter().find(|stage| stage.stage == "receive-to-socket");
        let received = received.unwrap();
        // The programs were in the kernel for a part of the trial, and counted nobody else's packets.
        let delivered = trial.ledger.delivered_packets;
        assert!((1..=delivered).contains(&received.latencies_count), "{received:?}");
        // Read while packets came: a CPU may have counted one and not yet put it into its bucket.
        assert!(received.latency_ns.count().abs_diff(received.latencies_count) <= 64);
        let polled: u64 = traced.napis.iter().map(|napi| napi.packets).sum();
        // A poll counts its packets at its end, 64 at most, and one is always in progress.
        assert!(
            polled + 64 >= received.latencies_count,
            "{polled} of {}",
            received.latencies_count
        );
        assert!(traced.cpus.iter().any(|cpu| cpu.net_rx_runs_count > 0), "{:?}", traced.cpus);
        let stolen = trial.stolen.as_ref().unwrap();
        assert!(stolen.victim.is_none() && !stolen.cpus.is_empty(), "{stolen:?}");
        assert!(trial.metrics.contains_key("network_cpu_s_per_mpacket"), "{:?}", trial.metrics);
    }
}
