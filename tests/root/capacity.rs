//! `rxpath capacity` in the lab: a receiver whose cost per datagram is known, a rate that nothing holds, a signal.
//!
//! Nothing here asserts what the machine reaches: only what the receiver cannot do.

use std::path::Path;

use nix::sys::signal::Signal;
use rxpath_record::capacity::{Capacity, LoadClass, SearchEnd};
use rxpath_record::run::RunReader;
use serde_json::Value;

use crate::arena::Arena;
use crate::bed::{may_run, tried};
use crate::program::Said;
use crate::schema;

fn capacity(arena: &Arena, out: &str, words: &[&str], sets: &[&str]) -> Said {
    arena.capacity(out, words, sets).wait()
}

fn found(ended: &Said) -> Capacity {
    let result = schema::result("capacity", &ended.out);
    serde_json::from_value(result).unwrap_or_else(|error| panic!("{error}: {}", ended.out))
}

#[test]
fn a_receiver_is_not_found_faster_than_its_work_allows() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    // 200 us for each datagram: 5,000 per second at most.
    let words = ["udp", "--quick", "--width", "20%", "--time", "30s", "--json"];
    let ended = capacity(&arena, "work", &words, &["serve.work=200us", "serve.rcvbuf=64KiB"]);
    // On a busy machine even the lowest rate may fail, or the sender may reach none.
    assert!(matches!(ended.code, Some(0 | 1 | 3 | 4)), "{}", ended.err);
    let found = found(&ended);
    assert!(found.lower_per_s.is_none_or(|lower| lower <= 5_050.0), "{found:#?}");
    assert!(
        found
            .loads
            .iter()
            .all(|load| load.class != LoadClass::LowerBound || load.rate_per_s <= 5_050.0)
    );
    if found.regular {
        let (lower, upper) = (found.lower_per_s.unwrap(), found.upper_per_s.unwrap());
        assert!(lower < upper && upper <= 1.2 * lower + 2.0, "{lower} to {upper}");
        let fresh = found.fresh.unwrap();
        assert!(fresh.good_count > fresh.bad_count, "{fresh:?}");
    }
    let envelope: Value = serde_json::from_str(&ended.out).unwrap();
    let run = envelope["settings"]["run"].as_str().unwrap();
    let reader =
        RunReader::open(&arena.path("work").join(Path::new(run).file_name().unwrap())).unwrap();
    assert!(reader.problems.is_empty(), "{:?}", reader.problems);
    // Every trial is kept, and its ledger closes.
    let trials = &reader.manifest.trials;
    assert_eq!(trials.len(), found.trials_count as usize);
    assert!(trials.iter().all(|trial| trial.ledger.unaccounted_packets == Some(0)));
    arena.assert_clean("after a search");
}

#[test]
fn a_lowest_rate_that_fails_is_a_negative_answer() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    // 50 datagrams per second at most; no rate below 100 is tried.
    let words = ["udp", "--quick", "--max", "200", "--json"];
    let sets = ["serve.work=20ms", "serve.rcvbuf=8KiB", "serve.batch=1"];
    let attempt = || {
        let ended = capacity(&arena, "lowest", &words, &sets);
        // On a busy machine the sender may not reach the rate, and what fails is no answer.
        assert!(matches!(ended.code, Some(1 | 3 | 4)), "{}", ended.err);
        (ended.code, found(&ended))
    };
    let (code, found) = tried(attempt, |(_, found)| found.ended == SearchEnd::LowestFails);
    assert!(matches!(code, Some(1 | 4)), "{code:?}: {found:#?}");
    assert_eq!((found.ended, found.lower_per_s), (SearchEnd::LowestFails, None));
    assert_eq!(found.upper_per_s, Some(100.0));
    assert!(
        found.sentence().starts_with("the lowest rate fails: 100 datagrams/s"),
        "{}",
        found.sentence()
    );
}

#[test]
fn requests_are_searched_under_a_latency_limit() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    for protocol in ["tcp-rr", "http"] {
        // A request takes 10 ms of the server, so at most 100 per second are answered, and 97 % of a rate must be.
        let words =
            [protocol, "--quick", "--max", "400", "--slo", "p50<20ms", "--time", "12s", "--json"];
        let search = || {
            let set = ["serve.work=10ms", "load.connections=4"];
            let ended = capacity(&arena, protocol, &words, &set);
            assert!(matches!(ended.code, Some(0 | 1 | 3 | 4)), "{protocol}: {}", ended.err);
            found(&ended)
        };
        // Other load may make all trials of one void.
        let found = tried(search, |found| !found.loads.is_empty());
        assert_eq!(found.goal.latency.as_deref(), Some("p50<20ms"));
        assert!(found.lower_per_s.is_none_or(|lower| lower <= 104.0), "{found:#?}");
        assert!(found.loads.iter().any(|load| !load.latencies_us.is_empty()), "{found:#?}");
    }
}

#[test]
fn a_signal_prints_what_is_known_and_leaves_nothing() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let mut run = arena.capacity("signal", &["udp", "--json"], &["serve.work=200us"]);
    run.wait_event("\"trial-ended\"");
    run.signal(Signal::SIGINT);
    let ended = run.wait().ends(130);
    let found = found(&ended);
    assert_eq!(found.ended, SearchEnd::Interrupted);
    assert!(!found.regular && found.trials_count > 0);
    assert!(ended.err.contains("rxpath: interrupted; the run up to this point is kept in "));
    arena.assert_clean("after a signal");
}

#[test]
fn a_search_needs_root_and_names_the_way_without() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    arena
        .nobody(&["capacity", "udp", "--out", "/tmp/never"])
        .ends(3)
        .warns("needs CAP_NET_ADMIN")
        .warns("rxpath capacity udp --set topology.kind=local");
}

#[test]
fn the_time_limit_ends_a_search_without_a_verdict() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let words = ["udp", "--time", "4s", "--json"];
    let attempt = || {
        let ended = capacity(&arena, "time", &words, &["serve.work=200us"]);
        (ended.code, found(&ended).ended)
    };
    // A sender that has no CPU ends a search before its time.
    let how = tried(attempt, |(_, ended)| *ended == SearchEnd::Time);
    assert_eq!(how, (Some(4), SearchEnd::Time));
}

#[test]
fn the_highest_rate_allowed_holds_on_loopback() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let words = ["udp", "--quick", "--max", "300", "--time", "15s", "--json"];
    // A port of its own: other tests use loopback too.
    let sets = ["topology.kind=local", "serve.port=4377"];
    let ended = capacity(&arena, "most", &words, &sets);
    let found = found(&ended);
    // Whether the machine was quiet is nothing to this test, nor whether the sender had its CPU.
    if ended.code != Some(0) || found.ended == SearchEnd::SenderLimited {
        return;
    }
    assert_eq!((found.ended, found.lower_per_s), (SearchEnd::MostHolds, Some(300.0)));
    assert!(found.upper_per_s.is_none() && !found.regular && found.limited_by.is_none());
    assert!(found.fresh.is_some_and(|fresh| fresh.good_count >= 4), "{found:#?}");
    assert!(ended.err.contains("trial 1: 300 datagrams/s for 0.33 s: "), "{}", ended.err);
    assert!(ended.err.contains(" s to go"), "{}", ended.err);
    // The run directory has the same record, and the report its figure.
    let envelope: Value = serde_json::from_str(&ended.out).unwrap();
    let run = Path::new(envelope["settings"]["run"].as_str().unwrap()).file_name().unwrap();
    let run = arena.path("most").join(run);
    let reader = RunReader::open(&run).unwrap();
    assert!(reader.problems.is_empty(), "{:?}", reader.problems);
    assert_eq!(reader.manifest.capacity, Some(found));
    assert_eq!(reader.manifest.variants.len(), 1);
    let report = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("The highest rate that holds, datagrams per second"));
}
