//! Pairs of trials behind the blocks, with the receive softirq moved to another CPU and not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use rxpath_host::read::thread;
use rxpath_host::write::sched;
use rxpath_record::event::What;
use rxpath_record::manifest::{Grade, Trial};
use rxpath_record::run::RunReader;

use crate::arena::Run;
use crate::bed::may_run;
use crate::bundled::{SMALLEST, holds};
use crate::experiment::run_file;
use crate::skip::skip;

/// Whether pairs can be run here.
fn may_pair() -> bool {
    if !may_run() {
        return false;
    }
    let has_two = thread::allowed_cpus().unwrap().0.len() >= 2;
    if !has_two {
        skip("second_cpu", "one CPU: there is none to move to");
    }
    has_two
}

/// Other load on the machine can be the limit, and then no pair is wanted.
const ATTEMPTS: u32 = 12;

/// The first attempt whose verdict asked for pairs; the others give their trials. None where other load disturbed all.
fn with_pairs<T>(attempt: impl Fn(u32) -> Result<T, Vec<Trial>>) -> Option<T> {
    let is_quiet = |trial: &Trial| trial.grade != Grade::D;
    let mut quiet_count = 0;
    for number in 0..ATTEMPTS {
        match attempt(number) {
            Ok(found) => return Some(found),
            Err(trials) => {
                quiet_count += u32::from(!trials.is_empty() && trials.iter().all(is_quiet));
            }
        }
    }
    assert!(quiet_count < ATTEMPTS / 2, "{quiet_count} undisturbed runs asked for no pairs");
    skip("quiet_machine", "other load disturbed every trial that might ask for pairs");
    None
}

/// A sender that floods shares its CPU with the softirq: which of the two is the limit is asked by moving the softirq.
fn flood(dir: &Path) -> PathBuf {
    let file = dir.join("flood.toml");
    // A call for each datagram: the reader is faster, and its buffer takes what it cannot read at once.
    let text = "question = \"?\"\n[serve]\ncpu = \"@receiver\"\nrcvbuf = \"64MiB\"\n[load]\ncpu = \"@sender\"\nbatch = 1\n";
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn pairs_of_trials_follow_the_blocks_unless_they_are_left_out() {
    if !may_pair() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = flood(dir.path());
    let pairs = |sets: &[&str]| {
        let short = ["trials.measure=100ms"];
        let manifest = run_file(&file, &[&SMALLEST[..], &short, sets].concat());
        holds(&manifest);
        let of = |what: &str| {
            let trials = manifest.trials.iter().filter(|trial| trial.variant.ends_with(what));
            trials.filter(|trial| trial.block == 0).count()
        };
        let made = [of(" (softirq moved)"), of(" (softirq not moved)")];
        if made == [0, 0] { Err(manifest.trials) } else { Ok(made) }
    };
    if let Some(made) = with_pairs(|_| pairs(&["trials.paired=true"])) {
        assert_eq!(made, [3, 3]);
    }
    assert!(pairs(&[]).is_err());
}

/// A thread on each CPU that takes what it gets of it, until this is dropped.
struct Busy {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn on_every_cpu() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let spin = |cpu: u32| {
            let ends = Arc::clone(&ends);
            std::thread::spawn(move || {
                sched::pin(cpu).unwrap();
                while !ends.load(Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = thread::allowed_cpus().unwrap().0.into_iter().map(spin).collect();
        Self { ends, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A run whose pairs are disturbed on every CPU; its trials if its verdict asked for no pairs.
fn disturbed(file: &Path, out: &Path, words: &[&str]) -> Result<RunReader, Vec<Trial>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.arg("run").arg(file).args(["--trials", "1", "--out"]).arg(out).args(words);
    let sets = [&SMALLEST[..], &["trials.measure=100ms", "trials.paired=true"]].concat();
    command.args(sets.iter().flat_map(|set| ["--set", set]));
    let mut run = Run::start(command, out.to_owned());
    let others = run.saw_event(" (softirq moved)").then(Busy::on_every_cpu);
    let directory = run.directory().unwrap();
    let ended = run.wait();
    assert!(matches!(ended.code, Some(0 | 4 | 5)), "{ended:?}");
    let run = RunReader::open(&directory).unwrap();
    if others.is_some() { Ok(run) } else { Err(run.manifest.trials) }
}

/// Without `--keep-noisy` the reason is in both, with it in none.
#[test]
fn the_event_of_a_trial_of_a_pair_says_as_the_manifest_whether_it_is_void() {
    if !may_pair() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = flood(dir.path());
    for words in [&[][..], &["--keep-noisy"]] {
        let run = with_pairs(|attempt| {
            let out = dir.path().join(format!("out-{}-{attempt}", words.len()));
            disturbed(&file, &out, words)
        });
        let Some(run) = run else { return };
        for trial in &run.manifest.trials {
            let told = run.events.iter().filter_map(|event| match &event.what {
                What::TrialEnded { trial: number, void } if *number == trial.trial => Some(void),
                _ => None,
            });
            let told: Vec<&Option<String>> = told.collect();
            assert_eq!(told, [&trial.void], "trial {} of {words:?}", trial.trial);
        }
        let mut paired = run.manifest.trials.iter().filter(|trial| trial.block == 0);
        assert_eq!(paired.any(|trial| trial.void.is_some()), words.is_empty(), "{words:?}");
    }
}
