//! `rxpath report` from outside: where the report goes, what is printed, how it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kept::{self, edit};
use crate::program::said;

fn report() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.arg("report");
    command
}

#[test]
fn the_page_is_written_into_the_run_and_its_path_printed() {
    let dir = tempfile::tempdir().unwrap();
    let runs = [kept::copy("million-pps", dir.path()), kept::copy("one-variant", dir.path())];
    let printed = said(report().args(&runs)).ok();
    let expected: Vec<PathBuf> = runs.iter().map(|run| run.join("report.html")).collect();
    assert_eq!(printed.lines().map(PathBuf::from).collect::<Vec<_>>(), expected);
    let first = fs::read(&expected[0]).unwrap();
    assert!(first.starts_with(b"<!DOCTYPE html>"));
    // Made again beside its own report: the same bytes, and nothing else left behind.
    said(report().arg(&runs[0])).ends(0);
    assert_eq!(fs::read(&expected[0]).unwrap(), first);
    assert_eq!(fs::read_dir(&runs[0]).unwrap().count(), 4);
}

#[test]
fn markdown_goes_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let run = kept::copy("one-variant", dir.path());
    let printed = said(report().args(["--format", "md"]).arg(run)).ok();
    assert!(printed.starts_with("# udp-batching"), "{printed}");
}

#[test]
fn a_run_that_is_not_whole_is_reported_and_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let run = kept::copy("partial", dir.path());
    let out = dir.path().join("here.html");
    said(report().arg(&run).arg("--out").arg(&out)).ends(0).warns("the last line is cut");
    assert!(out.is_file() && !run.join("report.html").exists());
    let printed = said(report().arg("--json").arg(&run)).ends(0).json();
    assert_eq!(printed["schema"], "rxpath/report/1.0");
    assert_eq!(printed["warnings"][0]["code"], "run-not-whole");
    assert!(printed["result"]["reports"][0]["path"].as_str().unwrap().ends_with("report.html"));
}

/// The warnings of a report on a run that `damage` changed; the page is written all the same.
fn damaged(damage: impl Fn(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let run = kept::copy("one-variant", dir.path());
    damage(&run);
    let done = said(report().arg(&run)).ends(0);
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("</html>"));
    done.err
}

#[test]
fn a_run_of_a_newer_version_shows_what_is_known() {
    let told = damaged(|run| {
        edit(&run.join("manifest.json"), "rxpath/run/1.0", "rxpath/run/2.0");
    });
    assert!(told.contains("newer"), "{told}");
}

#[test]
fn events_that_end_in_the_middle_are_told_with_their_line() {
    let told = damaged(|run| {
        let path = run.join("events.jsonl");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    });
    assert!(told.contains("events.jsonl") && told.contains("the last line is cut"), "{told}");
}

#[test]
fn a_manifest_edited_by_hand_is_noticed() {
    let told = damaged(|run| {
        edit(
            &run.join("manifest.json"),
            "\"delivered_packets\":1599883",
            "\"delivered_packets\":1675601",
        );
    });
    assert!(told.contains("the ledger of trial 1 does not add up"), "{told}");
}

#[test]
fn bad_calls_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (kept::copy("one-variant", dir.path()), kept::copy("partial", dir.path()));
    let nothing = dir.path().join("nothing");
    let nowhere = dir.path().join("no/such/dir.html");
    for (arguments, code, sign) in [
        (vec![nothing.as_path()], 2, "no such directory"),
        (vec![dir.path()], 2, "no manifest.json"),
        (vec![&one, &two, Path::new("--out"), &nowhere], 2, "several runs"),
        (vec![&one, Path::new("--json"), Path::new("--format=md")], 2, "--out FILE"),
        (vec![&one, Path::new("--out"), &nowhere], 2, "cannot write"),
    ] {
        said(report().args(&arguments)).ends(code).refuses("", sign);
    }
}
