//! Trials over TCP, end to end: the ledger of segments, the metrics, the queues over time.

use rxpath_core::PathSide;
use rxpath_record::ledger::{LedgerUnit, Place};
use rxpath_record::manifest::Trial;

use crate::bed::may_run;
use crate::experiment;

pub fn named<'a>(trials: &'a [Trial], variant: &str) -> &'a Trial {
    trials.iter().find(|trial| trial.variant == variant).unwrap()
}

/// Every segment is in one place.
pub fn closes(trial: &Trial) {
    let ledger = &trial.ledger;
    assert_eq!(ledger.unit, LedgerUnit::Segment);
    assert_eq!(ledger.unaccounted_packets, Some(0), "{}: {ledger:?}", trial.variant);
    assert!(ledger.delivered_packets > 0, "{ledger:?}");
    let lost: u64 = ledger.drops.iter().map(|drop| drop.packets).sum();
    assert_eq!(ledger.offered_packets, ledger.delivered_packets + lost);
}

#[test]
fn every_segment_is_found_again_whatever_carried_it() {
    if !may_run() {
        return;
    }
    let trials = experiment::delivering("tcp-clean", &[]).manifest.trials;
    assert_eq!(trials.len(), 5);
    trials.iter().for_each(closes);
    for name in ["stream", "napi", "v6"] {
        assert!(named(&trials, name).metrics["delivered_bps"] > 0.0, "{name}");
    }
    for name in ["transactions", "connections"] {
        let metrics = &named(&trials, name).metrics;
        assert!(metrics["achieved_tps"] > 0.0 && metrics["service_time_p50_us"] > 0.0, "{name}");
    }
    // With TSO a buffer is many segments: the ledger is of segments all the same. How many depends on the load.
    let stream = named(&trials, "stream");
    let buffers = stream.moved.get("rx/Tcp.InSegs");
    assert!(buffers < stream.ledger.delivered_packets as i64, "{buffers}: {:?}", stream.ledger);
}

#[test]
fn segments_that_a_queue_dropped_are_accounted_for() {
    if !may_run() {
        return;
    }
    let trials = experiment::run("tcp-qdisc", &[]);
    closes(&trials[0]);
    let ledger = &trials[0].ledger;
    assert!(ledger.lost_at(Place::Qdisc) > 0, "{ledger:?}");
    assert_eq!(ledger.lost_at(Place::Qdisc), ledger.lost_packets());
}

#[test]
fn a_trial_of_http_is_whole() {
    if !may_run() {
        return;
    }
    let run = experiment::delivering("http-clean", &[]);
    let trial = &run.manifest.trials[0];
    closes(trial);
    assert_eq!(run.manifest.main_metric, "achieved_rps");
    for name in [
        "achieved_rps",
        "service_time_p50_us",
        "server_cpu_us_per_request",
        "client_cpu_us_per_request",
    ] {
        assert!(trial.metrics[name] > 0.0, "{name}: {:?}", trial.metrics);
    }
    assert!(run.manifest.headline.contains("requests/s answered"), "{}", run.manifest.headline);
    assert!(run.manifest.files.keys().any(|name| name.contains("load-service_time")));
}

#[test]
fn a_stalling_reader_shows_in_the_sampled_queue() {
    if !may_run() {
        return;
    }
    // Of many stalls one at least meets a sender that has its CPU.
    let run = experiment::kept("tcp-stall", &["trials.measure=2s"]);
    closes(&run.manifest.trials[0]);
    let samples = &run.samples[0];
    assert!(samples.cost.samples_count > 0 && samples.cost.cpu_s > 0.0);
    let unread = samples.series.iter().find(|series| {
        series.side == PathSide::Rx && series.entity == "all" && series.metric == "unread_bytes"
    });
    let unread: Vec<u64> = unread.unwrap().values.iter().flatten().copied().collect();
    let most = unread.iter().copied().max().unwrap();
    // 50 Mb/s for 60 ms are 375 kB; half of it is enough to tell it from a reader that reads.
    assert!(most > 187_500, "{most} bytes at most");
    assert!(unread.iter().any(|bytes| *bytes < most / 10), "and it is emptied again");
}
