//! The verdicts of a running exporter, compared with those of `rxpath diagnose --selftest` on the same traffic.
//!
//! Here are limits that no other load on the machine can turn into another. All that an exporter judges:
//! `bench/export-verdict.sh`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rxpath_record::event::{RunEvent, What};
use rxpath_record::run::{EVENTS, RunReader};
use serde_json::Value;

use crate::bed::Bed;

/// Each limit is there for so long that an exporter, which takes a moment to start, sees some windows of it.
const HOLD: &str = "4700ms";
/// Everything: a trial takes a few seconds more than its limit is held, and one that is disturbed is repeated.
const LONGEST: Duration = Duration::from_secs(300);

/// An exporter in the receiver's namespace of the lab that is up, writing its page into a file.
struct Exporter {
    child: Child,
    page: PathBuf,
}

impl Exporter {
    fn start(page: PathBuf) -> Self {
        let names = fs::read_dir("/run/netns").unwrap().map(|entry| entry.unwrap().file_name());
        let is_receiver = |name: &String| name.starts_with("rxp-") && name.ends_with("-rx");
        let receiver =
            names.map(|name| name.into_string().unwrap()).find(is_receiver).expect("a lab is up");
        let child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
            .args(["export", "--netns", &receiver, "--interval", "200ms", "--check-every", "0s"])
            // Above its budget windows would get longer.
            .args(["--irq-entry", "5us", "--budget", "50%", "--textfile"])
            .arg(&page)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, page }
    }

    /// Its last page; empty if no window has ended.
    fn end(self) -> String {
        let page = self.page.clone();
        drop(self);
        fs::read_to_string(page).unwrap_or_default()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What happened in the run so far, in the order of time.
fn events(out: &Path) -> Vec<What> {
    let mut runs = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path().join(EVENTS));
    let text = runs.find_map(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    // The last line may be cut.
    text.lines()
        .filter_map(|line| serde_json::from_str::<RunEvent>(line).ok())
        .map(|of| of.what)
        .collect()
}

/// Runs an exporter in each trial's measured time, until the self-test ends: the pages by trial.
fn pages(selftest: &mut Child, out: &Path, files: &Path) -> BTreeMap<u32, String> {
    let (deadline, mut seen) = (Instant::now() + LONGEST, 0);
    let (mut running, mut pages) = (None, BTreeMap::new());
    loop {
        let is_over = selftest.try_wait().unwrap().is_some();
        let events = events(out);
        for what in &events[seen..] {
            let What::Phase { trial, phase } = what else { continue };
            if phase == "measure" {
                let page = files.join(format!("{trial}.prom"));
                running = Some((*trial, Exporter::start(page)));
            } else if let Some((trial, exporter)) = running.take() {
                pages.insert(trial, exporter.end());
            }
        }
        seen = events.len();
        if is_over {
            return pages;
        }
        assert!(Instant::now() < deadline, "the self-test goes on and on: {:?}", events.last());
        // why: the pace of looking for events; the deadline above ends it.
        sleep(Duration::from_millis(20));
    }
}

/// The seconds in which a page has this stage as the verdict.
fn limited_s(page: &str, stage: &str) -> f64 {
    let series = format!("rxpath_path_limited_seconds_total{{stage=\"{stage}\"}} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&series));
    value.map_or(0.0, |value| value.parse().unwrap())
}

#[test]
fn the_stage_of_the_selftests_verdict_gets_its_seconds() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let (out, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cases = ["filter", "checksum", "no-listener"];
    let mut selftest = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["diagnose", "--selftest", "--draws", "1", "--seed", "11", "--hold", HOLD, "--json"])
        .args(cases.iter().flat_map(|case| ["--case", case]))
        .arg("--out")
        .arg(out.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pages = pages(&mut selftest, out.path(), files.path());
    let output = selftest.wait_with_output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = RunReader::open(Path::new(value["settings"]["run"].as_str().unwrap())).unwrap();
    assert!(run.manifest.trials.len() >= cases.len(), "{value}");
    for trial in &run.manifest.trials {
        let stage = serde_json::to_value(trial.verdict.as_ref().unwrap().stage).unwrap();
        let stage = stage.as_str().unwrap();
        assert!(trial.variant.starts_with(stage), "{}: the self-test said {stage}", trial.variant);
        let page = &pages[&trial.trial];
        assert!(limited_s(page, stage) > 0.0, "{}: no second of {stage}: {page}", trial.variant);
        // The windows of the traffic are whole ones: nothing else is found for longer.
        let others = ["socket-queue", "ring", "softirq", "application", "backlog"];
        for other in others {
            let (found, of_it) = (limited_s(page, other), limited_s(page, stage));
            assert!(found < of_it, "{}: {other} {found} s, {stage} {of_it} s", trial.variant);
        }
    }
}
