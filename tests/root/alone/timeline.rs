//! `rxpath trace --timeline`: in order, each entry with its exit from the first on, and as a file for a viewer.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::alone::arrived::until_arrived;
use crate::alone::probes::{number, probe, rows};
use crate::bed::{Bed, send};

#[test]
fn the_timeline_is_in_order_and_opens_in_a_viewer() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.json");
    let words = ["trace", "-d", "10m", "--timeline", "--perfetto", file.to_str().unwrap()];
    let trace = probe(&words);
    send(&tx, 4600, 300);
    until_arrived(&rx, 300);
    let result = trace.end();
    let events = rows(&result, "timeline");
    let times: Vec<u64> = events.iter().map(|event| event["t_ns"].as_u64().unwrap()).collect();
    assert!(times.is_sorted());
    // Each device is the sum of its NAPIs.
    for device in rows(&result, "devices") {
        let of =
            |row: &&Value| row["netns"] == device["netns"] && row["ifindex"] == device["ifindex"];
        let napis = rows(&result, "napis").iter().filter(of);
        let packets: f64 = napis.map(|napi| number(napi, "packets")).sum();
        assert!((packets - number(device, "packets")).abs() < 0.5, "{device}");
    }
    let polls: Vec<&Value> = events.iter().filter(|event| event["what"] == "napi-poll").collect();
    assert!(polls.iter().all(|poll| poll["work"].as_i64() <= poll["budget"].as_i64()));
    let work: i64 = polls.iter().map(|poll| poll["work"].as_i64().unwrap()).sum();
    let lost = result["timeline_lost_count"].as_u64().unwrap();
    assert!(work >= 300 || lost > 0, "{work} packets in {} polls, {lost} events lost", polls.len());
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let spans = || rows(&written, "traceEvents").iter().filter(|event| event["ph"] == "X");
    assert!(spans().any(|span| span["cat"] == "softirq" && number(span, "dur") >= 0.0));
    let polls = spans().filter(|span| span["cat"] == "napi");
    let work = |span: &Value| (number(&span["args"], "work"), number(&span["args"], "budget"));
    let some = |(work, budget): &(f64, f64)| *work > 0.0 && work <= budget;
    assert!(polls.map(work).any(|of| some(&of)), "no poll with packets is in the file");
}

/// What attaching does itself, and what was under way then, is not in it: the first entries have their exits too.
#[test]
fn each_entry_before_the_end_has_its_exit() {
    let Some((_bed, tx, _rx)) = Bed::wired_with_bpf() else { return };
    let sending = std::sync::atomic::AtomicBool::new(true);
    let result = std::thread::scope(|scope| {
        // Softirqs come while the programs are attached.
        scope.spawn(|| {
            while sending.load(std::sync::atomic::Ordering::Relaxed) {
                send(&tx, 4601, 20);
            }
        });
        let trace = probe(&["trace", "-d", "10m", "--timeline", "--events", "1M"]);
        sending.store(false, std::sync::atomic::Ordering::Relaxed);
        trace.end()
    });
    let events = rows(&result, "timeline");
    assert!(events.iter().any(|event| event["what"] == "softirq-entry"), "{} events", events.len());
    let lost = result["timeline_lost_count"].as_u64().unwrap();
    let alone = alone(events);
    assert!(alone.is_empty() || lost > 0, "of {} events: {alone:?}", events.len());
}

/// Entries that are followed by another of the same kind on their CPU, without an exit between them, and exits that follow none.
fn alone(events: &[Value]) -> Vec<&Value> {
    let mut open: BTreeMap<(u64, &str, u64), &Value> = BTreeMap::new();
    let mut alone = Vec::new();
    for event in events {
        let Some((kind, end)) = event["what"].as_str().unwrap().rsplit_once('-') else { continue };
        let of = |key: &str| event[key].as_u64().unwrap();
        let key = (of("cpu"), kind, of("number"));
        match end {
            "entry" => alone.extend(open.insert(key, event)),
            "exit" if open.remove(&key).is_none() => alone.push(event),
            _ => {}
        }
    }
    alone
}
