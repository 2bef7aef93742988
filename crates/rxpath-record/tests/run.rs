//! A run directory: what is written reads back, and what is damaged is read as far as it goes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // clippy excepts #[test] functions only

#[path = "support/run.rs"]
mod support;

use std::fs;
use std::io::Write;
use std::path::Path;

use rxpath_record::manifest::{Manifest, Status};
use rxpath_record::run::{EVENTS, MANIFEST, RunError, RunReader, RunWriter, parse_manifest};
use rxpath_record::samples::TrialSamples;
use serde_json::json;
use support::{RUN_ID, environment, events, manifest};
use tempfile::TempDir;

/// A whole run below `base`.
fn write(base: &Path) -> RunWriter {
    let mut writer = RunWriter::create(base, RUN_ID).unwrap();
    writer.manifest(&manifest()).unwrap();
    writer.environment(&environment()).unwrap();
    for event in events() {
        writer.event(&event).unwrap();
    }
    writer.histogram("delay trial/0", |to| to.write_all(b"#[hdr]\n")).unwrap();
    writer
}

fn finished() -> (TempDir, std::path::PathBuf) {
    let base = TempDir::new().unwrap();
    let writer = write(base.path());
    let mut end = manifest();
    end.status = Status::Complete;
    let directory = writer.finish(end).unwrap();
    (base, directory)
}

fn problems(directory: &Path) -> Vec<String> {
    let run = RunReader::open(directory).unwrap();
    run.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_written_reads_back() {
    let (_base, directory) = finished();
    let run = RunReader::open(&directory).unwrap();
    assert_eq!(run.problems, []);
    assert_eq!(run.partial(), None);
    assert_eq!(run.events, events());
    assert_eq!(run.environment, Some(environment()));
    let files: Vec<&str> = run.manifest.files.keys().map(String::as_str).collect();
    assert_eq!(files, ["environment.json", "events.jsonl", "histograms/delay-trial-0.hlog"]);
    let expected =
        Manifest { status: Status::Complete, files: run.manifest.files.clone(), ..manifest() };
    assert_eq!(run.manifest, expected);
    // The checksum is the one that any other tool computes.
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert!(run.manifest.files.values().all(|sum| sum.len() == 64 && sum != empty));
    assert!(RunReader::open(&directory.join(MANIFEST)).unwrap().problems.is_empty());
}

#[test]
fn checksums_are_sha256() {
    let base = TempDir::new().unwrap();
    let writer = RunWriter::create(base.path(), RUN_ID).unwrap();
    // FIPS 180-2, appendix B.1.
    writer.histogram("abc", |to| to.write_all(b"abc")).unwrap();
    let directory = writer.finish(manifest()).unwrap();
    let run = RunReader::open(&directory).unwrap();
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(run.manifest.files["histograms/abc.hlog"], sum);
}

#[test]
fn the_name_of_a_histogram_may_have_a_host_and_is_one_file() {
    let base = TempDir::new().unwrap();
    let writer = RunWriter::create(base.path(), RUN_ID).unwrap();
    writer.histogram("trial0-serve@sut-a b/c", |to| to.write_all(b"abc")).unwrap();
    let run = RunReader::open(&writer.finish(manifest()).unwrap()).unwrap();
    assert!(run.manifest.files.contains_key("histograms/trial0-serve@sut-a-b-c.hlog"));
}

#[test]
fn nothing_temporary_stays_and_no_run_is_written_twice() {
    let (base, directory) = finished();
    let hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    assert_eq!(
        fs::read_dir(&directory).unwrap().filter(|e| hidden(e.as_ref().unwrap())).count(),
        0
    );
    let again = RunWriter::create(base.path(), RUN_ID).unwrap_err();
    assert!(matches!(again, RunError::Exists { .. }), "{again}");
}

#[test]
fn a_run_is_not_kept_in_what_is_no_directory() {
    for base in ["/dev/full", "/dev/full/below"] {
        let refused = RunWriter::create(std::path::Path::new(base), RUN_ID).unwrap_err();
        assert_eq!(refused.to_string(), format!("{base}: no directory; a run is kept in one"));
    }
}

#[test]
fn a_killed_run_reads_up_to_its_last_event() {
    let base = TempDir::new().unwrap();
    let mut writer = RunWriter::create(base.path(), RUN_ID).unwrap();
    writer.manifest(&manifest()).unwrap();
    for event in &events()[..6] {
        writer.event(event).unwrap();
    }
    let directory = writer.directory().to_owned();
    // No finish: what a SIGKILL leaves, with half a line of the event that was being written.
    let mut file = fs::OpenOptions::new().append(true).open(directory.join(EVENTS)).unwrap();
    file.write_all(br#"{"t_ns":7000000000,"type":"sam"#).unwrap();
    let run = RunReader::open(&directory).unwrap();
    assert_eq!(run.events, events()[..6]);
    let partial = run.partial().unwrap();
    assert!(partial.contains("killed or is still running: 1 valid trials"), "{partial}");
    assert!(partial.contains("5.0 s after its first"), "{partial}");
    let said = problems(&directory);
    assert!(
        said.contains(
            &"events.jsonl:7: the last line is cut: the events before it are shown".into()
        ),
        "{said:?}"
    );
    assert!(said.iter().any(|p| p.starts_with("manifest.json: the run was killed")), "{said:?}");
}

#[test]
fn events_alone_are_a_run() {
    let (_base, directory) = finished();
    fs::remove_file(directory.join(MANIFEST)).unwrap();
    let run = RunReader::open(&directory).unwrap();
    assert_eq!(
        (run.manifest.run_id.as_str(), run.manifest.scenario.as_str()),
        (RUN_ID, "udp-pinning")
    );
    assert_eq!(run.manifest.status, Status::Complete);
    assert!(problems(&directory)[0].contains("manifest.json: is missing"));
}

#[test]
fn damaged_events_are_named_by_line_and_the_others_read() {
    let (_base, directory) = finished();
    let path = directory.join(EVENTS);
    let mut lines: Vec<String> =
        fs::read_to_string(&path).unwrap().lines().map(Into::into).collect();
    lines[1] = "{\"t_ns\":1,\"type\":\"invented-later\"}".into();
    lines[3] = "not json".into();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let run = RunReader::open(&directory).unwrap();
    assert_eq!(run.events.len(), events().len() - 2);
    let said = problems(&directory);
    assert!(said.iter().any(|p| p.starts_with("events.jsonl:2: not an event")), "{said:?}");
    assert!(said.iter().any(|p| p.starts_with("events.jsonl:4: not an event")), "{said:?}");
    assert!(
        said.iter().any(|p| p.starts_with("events.jsonl: does not have the checksum")),
        "{said:?}"
    );
}

/// The runs of `testdata/runs` are of the first version too, and have neither hosts nor samples.
#[test]
fn hosts_and_samples_of_the_first_version_are_read() {
    let mut old = serde_json::to_value(manifest()).unwrap();
    let host = json!({
        "side": "tx", "device": "eth0", "driver": "igb", "mtu_bytes": 1500, "cpus_count": 8,
        "clock_ahead_ns": -7, "clock_error_ns": 9, "round_trip_ns": 18, "has_own_namespace": true,
    });
    old["hosts"] = json!({ "gen1": host });
    old["trials"][0]["hosts"] = json!({ "gen1": { "side": "tx", "grade": "A", "noise": [] } });
    let pair = json!({ "sender": "gen1", "receiver": "sut", "offered_packets": 9 });
    old["trials"][0]["pairs"] = json!([pair]);
    let (read, problems) = parse_manifest(&old.to_string());
    assert_eq!(problems, []);
    assert_eq!((read.hosts.len(), read.trials.len()), (1, 2));
    let cost = json!({
        "cpu_s": 0.1, "span_s": 1.0, "samples_count": 9, "missed_count": 0, "cpus": [1],
        "unfollowed_sockets_count": 0,
    });
    let series = json!({
        "side": "rx", "entity": "socket0", "metric": "rmem_bytes", "counter": false, "values": [1],
    });
    let samples = json!({
        "trial": 0, "variant": "pinned", "interval_ns": 5, "t_ns": [1], "series": [series],
        "cost": cost,
    });
    let samples: Result<TrialSamples, _> = serde_json::from_value(samples);
    assert!(samples.is_ok(), "{samples:?}");
}

/// Replaces `from` by `to` in the manifest of `directory`.
fn edit(directory: &Path, from: &str, to: &str) {
    let path = directory.join(MANIFEST);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_newer_run_is_read_as_far_as_it_is_known() {
    let (_base, directory) = finished();
    edit(&directory, "rxpath/run/1.0", "rxpath/run/2.3");
    edit(&directory, "\"seed\": 42,", "\"seed\": {\"high\": 1, \"low\": 2},\n  \"moods\": [],");
    let run = RunReader::open(&directory).unwrap();
    assert_eq!((run.manifest.trials.len(), run.manifest.seed), (2, 0));
    let said = problems(&directory);
    assert!(
        said.iter().any(|p| p.contains("written by a newer rxpath (`rxpath/run/2.3`")),
        "{said:?}"
    );
    assert!(said.iter().any(|p| p.contains("`seed` cannot be read")), "{said:?}");
}

#[test]
fn an_edited_manifest_shows_what_is_left_and_where_it_is_wrong() {
    let (_base, directory) = finished();
    edit(&directory, "\"grade\": \"A\"", "\"grade\": \"excellent\"");
    let run = RunReader::open(&directory).unwrap();
    assert_eq!(run.manifest.trials.len(), 1, "the readable trial is kept");
    let said = problems(&directory);
    assert!(
        said.iter()
            .any(|p| p.contains("`trials[0]` cannot be read") && p.contains("manifest.json:")),
        "{said:?}"
    );
    assert!(said.iter().any(|p| p.contains("claims 2 trials and 1 are there")), "{said:?}");
}

#[test]
fn a_ledger_that_was_edited_does_not_add_up() {
    let (_base, directory) = finished();
    edit(&directory, "\"delivered_packets\": 900", "\"delivered_packets\": 1000");
    let said = problems(&directory);
    assert!(said.iter().any(|p| p.contains("ledger of trial 1 does not add up: -100")), "{said:?}");
}

#[test]
fn text_that_is_no_json_is_named_by_line() {
    let (_base, directory) = finished();
    edit(&directory, "\"seed\": 42,", "\"seed\": 42");
    let text = fs::read_to_string(directory.join(MANIFEST)).unwrap();
    let line = text.lines().position(|line| line.contains("\"seed\"")).unwrap() + 2;
    let said = problems(&directory);
    assert!(
        said.iter().any(|p| p.starts_with(&format!("manifest.json:{line}: is not JSON"))),
        "{said:?}"
    );
    assert_eq!(RunReader::open(&directory).unwrap().events.len(), events().len());
}

#[test]
fn a_manifest_cannot_name_files_outside_the_run() {
    let (_base, directory) = finished();
    edit(&directory, "\"events.jsonl\":", "\"../../etc/passwd\":");
    let said = problems(&directory);
    assert!(
        said.iter().any(|p| p.contains("`../../etc/passwd` is not a file of the run")),
        "{said:?}"
    );
}

#[test]
fn what_is_no_run_is_refused_in_one_line() {
    let base = TempDir::new().unwrap();
    let error = RunReader::open(base.path()).unwrap_err().to_string();
    assert!(error.contains("no manifest.json and no events.jsonl"), "{error}");
    let error = RunReader::open(&base.path().join("nowhere")).unwrap_err().to_string();
    assert!(error.contains("no such directory"), "{error}");
}

/// `/dev/full` answers every write with ENOSPC.
#[test]
fn a_full_disk_says_what_is_kept() {
    let base = TempDir::new().unwrap();
    let mut writer = RunWriter::create(base.path(), RUN_ID).unwrap();
    for event in &events()[..6] {
        writer.event(event).unwrap();
    }
    let full = |to: &mut dyn Write| {
        to.flush()?;
        fs::OpenOptions::new().write(true).open("/dev/full")?.write_all(b"x")
    };
    let error = writer.histogram("delay", full).unwrap_err();
    assert!(matches!(error, RunError::Full { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("the disk is full: 6 events and 1 whole trials are kept"), "{text}");
    assert_eq!(RunReader::open(writer.directory()).unwrap().events.len(), 6);
}

#[test]
fn a_base_that_is_a_file_is_refused() {
    let base = TempDir::new().unwrap();
    let file = base.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(RunWriter::create(&file, RUN_ID).is_err());
}
