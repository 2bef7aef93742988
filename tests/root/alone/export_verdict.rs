//! The verdicts of a running exporter, compared with those of `rxpath diagnose --selftest` on the same traffic.
//!
//! Here are limits that no other load on the machine can turn into another. All that an exporter judges:
//! `bench/export-verdict.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::Root;
use rxpath_lab::selftest::{Needs, lacking};
use rxpath_record::event::{RunEvent, What};
use rxpath_record::manifest::Trial;
use rxpath_record::run::{EVENTS, RunReader};

use crate::bed::{Bed, until_within};
use crate::skip::skip;

/// Each limit is there for so long that an exporter, which takes a moment to start, sees some windows of it.
const HOLD: &str = "4700ms";
/// Until the next phase of a trial on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);

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

/// Waits until such an event is in the record of the run.
fn wait_for(out: &Path, what: &str, is_it: impl Fn(&What) -> bool) {
    until_within(LONGEST, what, || events(out).iter().any(&is_it));
}

fn wait_for_phase(out: &Path, name: &str) {
    wait_for(out, name, |what| matches!(what, What::Phase { phase, .. } if phase == name));
}

/// The first trial of a case, and the page of an exporter that ran in its measured time.
///
/// The CPU time of the exporter's start makes a trial void, and such a one is repeated: that is not waited for.
fn first_trial(case: &str) -> (Trial, String) {
    let (out, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut selftest = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["diagnose", "--selftest", "--draws", "1", "--seed", "11", "--hold", HOLD])
        .args(["--case", case, "--out"])
        .arg(out.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_phase(out.path(), "measure");
    let exporter = Exporter::start(files.path().join("page.prom"));
    wait_for_phase(out.path(), "drain");
    let page = exporter.end();
    wait_for(out.path(), "the end", |what| matches!(what, What::TrialEnded { .. }));
    kill(Pid::from_raw(selftest.id() as i32), Signal::SIGINT).unwrap();
    selftest.wait().unwrap();
    let directory = fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    (RunReader::open(&directory).unwrap().manifest.trials.swap_remove(0), page)
}

/// The seconds in which a page has this stage as the verdict.
fn limited_s(page: &str, stage: &str) -> f64 {
    let series = format!("rxpath_path_limited_seconds_total{{stage=\"{stage}\"}} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&series));
    value.map_or(0.0, |value| value.parse().unwrap())
}

/// Why no connection table can be filled here, or why an exporter without capabilities would not see it.
fn without_table() -> Option<String> {
    const COUNTERS: &str = "/proc/net/stat/nf_conntrack";
    let root = Root::host();
    let lacks = lacking(&root, 2).into_iter().find(|(needs, _)| *needs == Needs::Conntrack);
    let unseen = || (!root.exists(COUNTERS)).then(|| format!("{COUNTERS} is missing"));
    lacks.map(|(_, why)| why).or_else(unseen)
}

#[test]
fn the_stage_of_the_selftests_verdict_gets_its_seconds() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let mut cases = vec!["ring"];
    match without_table() {
        None => cases.push("conntrack-full"),
        Some(why) => skip("conntrack_full", &why),
    }
    for case in cases {
        let (trial, page) = first_trial(case);
        let stage = serde_json::to_value(trial.verdict.as_ref().unwrap().stage).unwrap();
        let stage = stage.as_str().unwrap();
        assert!(trial.variant.starts_with(stage), "{}: the self-test said {stage}", trial.variant);
        assert!(limited_s(&page, stage) > 0.0, "{}: no second of {stage}: {page}", trial.variant);
        // The windows of the traffic are whole ones: nothing else is found for longer.
        let others = ["socket-queue", "ring", "softirq", "application", "backlog", "filter"];
        for other in others.into_iter().filter(|other| *other != stage) {
            let (found, of_it) = (limited_s(&page, other), limited_s(&page, stage));
            assert!(found < of_it, "{}: {other} {found} s, {stage} {of_it} s", trial.variant);
        }
    }
}
