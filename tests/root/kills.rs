//! A run that is killed at any moment leaves nothing that `cleanup` or the next run does not remove, and a
//! directory that can be read up to its last event.

use std::time::{Duration, Instant};

use chacha20::ChaCha8Rng;
use nix::sys::signal::Signal;
use rand::{Rng, RngExt, SeedableRng};
use rxpath_record::manifest::Status;
use rxpath_record::run::RunReader;

use crate::arena::Arena;
use crate::bed::{may_run, until_within};

/// Kills a run after this time, or without one in its first trial, and reads what it left: whether it was over.
fn kill_one(arena: &Arena, out: &str, after: Option<Duration>) -> bool {
    let mut run = arena.run(out, &[]);
    match after.map(|after| Instant::now() + after) {
        Some(moment) => {
            let limit = Duration::from_secs(120);
            until_within(limit, "the moment to kill", || Instant::now() >= moment);
        }
        None => run.wait_event("\"ramp\""),
    }
    let over = run.child.try_wait().unwrap().is_some();
    if !over {
        run.signal(Signal::SIGKILL);
    }
    let directory = run.directory();
    run.wait();
    let Some(directory) = directory else { return over };
    match RunReader::open(&directory) {
        Ok(read) if read.manifest.status == Status::Complete => {}
        Ok(read) => {
            let partial = read.partial().expect("a killed run says that it is partial");
            assert!(partial.contains("was killed"), "{partial}");
            let lines = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
            assert_eq!(read.events.len(), lines.matches('\n').count(), "every whole line is read");
        }
        // Killed between making the directory and its first file.
        Err(error) => assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "{error}"),
    }
    over
}

#[test]
fn cleanup_removes_what_runs_killed_at_ten_moments_left_and_nothing_else() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let begin = Instant::now();
    let ended = arena.run("whole", &[]).wait();
    assert!(matches!(ended.code, Some(0 | 4)), "{}", ended.err);
    let whole = begin.elapsed();
    arena.assert_clean("after a whole run");

    let seed = rand::rng().next_u64();
    println!("seed {seed}, a whole run takes {whole:?}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut left = 0;
    for number in 0..10 {
        // One moment at least is surely within a run, however long the whole one took.
        let after = (number > 0).then(|| whole.mul_f64(rng.random_range(0.0..1.0)));
        let over = kill_one(&arena, &format!("killed-{number}"), after);
        left += usize::from(!over && !arena.traces().is_empty());
        let said = arena.cleanup();
        arena.assert_clean(&format!("after kill {number} (seed {seed}) and cleanup: {said}"));
    }
    assert!(left > 0, "no kill left anything to remove: the test proved nothing (seed {seed})");
}

#[test]
fn the_next_run_removes_what_killed_runs_left() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    for out in ["first", "second"] {
        // Long enough to be in it, however late this thread kills it.
        let mut run = arena.run(out, &["trials.measure=60s"]);
        run.wait_event("\"phase\":\"measure\"");
        run.signal(Signal::SIGKILL);
        run.wait();
    }
    let left = arena.traces();
    assert!(left.iter().any(|trace| trace.starts_with("run/netns/rxp-")), "{left:?}");
    let ended = arena.run("third", &[]).wait();
    assert!(matches!(ended.code, Some(0 | 4)), "{}", ended.err);
    arena.assert_clean("after the next run");
    assert_eq!(arena.cleanup(), "nothing to remove\n");
}
