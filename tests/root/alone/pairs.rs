//! Pairs of trials behind the blocks, with the receive softirq moved to another CPU and not.

use rxpath_host::thread;

use crate::bed::may_run;
use crate::bundled::{SMALLEST, holds};
use crate::experiment::run_file;
use crate::skip::skip;

/// A sender that floods shares its CPU with the softirq: which of the two is the limit is asked by moving the softirq.
#[test]
fn pairs_of_trials_follow_the_blocks_unless_they_are_left_out() {
    if !may_run() {
        return;
    }
    if thread::allowed_cpus().unwrap().0.len() < 2 {
        return skip("second_cpu", "one CPU: there is none to move to");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flood.toml");
    // A call for each datagram: the reader is faster, and its buffer takes what it cannot read at once.
    let text = "question = \"?\"\n[serve]\ncpu = \"@receiver\"\nrcvbuf = \"64MiB\"\n[load]\ncpu = \"@sender\"\nbatch = 1\n";
    std::fs::write(&file, text).unwrap();
    let pairs = |sets: &[&str]| {
        let short = ["trials.measure=100ms"];
        let manifest = run_file(&file, &[&SMALLEST[..], &short, sets].concat());
        holds(&manifest);
        let of = |what: &str| {
            let trials = manifest.trials.iter().filter(|trial| trial.variant.ends_with(what));
            trials.filter(|trial| trial.block == 0).count()
        };
        [of(" (softirq moved)"), of(" (softirq not moved)")]
    };
    assert_eq!(pairs(&["trials.paired=true"]), [3, 3]);
    assert_eq!(pairs(&[]), [0, 0]);
}
