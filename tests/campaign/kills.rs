//! SIGKILL at random times: nothing is left that `cleanup`, `tune undo` or the kernel does not remove.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::RngExt;
use rxpath_bpf::cost::programs_in_kernel;

use crate::arena::Arena;
use crate::bed::until;
use crate::goal;
use crate::place::{Place, WISHES};
use crate::service::Service;
use crate::state::Part;

/// Commands that change nothing: they are killed between their start and their end.
const OBSERVERS: [(&str, &[&str]); 4] = [
    ("steal", &["steal", "-d", "600ms", "--irq-entry", "1"]),
    ("trace", &["trace", "-d", "600ms"]),
    ("watch", &["watch", "--json", "--interval", "200ms", "-d", "600ms"]),
    ("diagnose", &["diagnose", "-d", "600ms"]),
];

/// Goes on until each command was killed its share of KILLS times, those that change settings CHANGE_KILLS times, and searches
/// on real traffic SEARCH_KILLS times.
pub fn go_on(part: &mut Part<'_>) {
    let each = goal("KILLS", 1_000).div_ceil(OBSERVERS.len() as u64 + 2);
    let changing = goal("CHANGE_KILLS", 300);
    let searching = goal("SEARCH_KILLS", 200);
    let rows =
        [("run", each), ("tune apply", changing), ("tune undo", changing), (SEARCH, searching)];
    let rows = rows.into_iter().chain(OBSERVERS.map(|(name, _)| (name, each)));
    let mut missing = true;
    while missing {
        missing = false;
        for (row, goal) in rows.clone() {
            if part.done(row) < goal {
                missing = true;
                part.attempt(row, 1, || {
                    match row {
                        "run" => run(),
                        "tune apply" => killed_change(Killed::Apply),
                        "tune undo" => killed_change(Killed::Undo),
                        SEARCH => search(),
                        name => observer(name),
                    }
                    None
                });
            }
        }
    }
}

fn random(most: Duration) -> Instant {
    Instant::now() + most.mul_f64(rand::rng().random_range(0.0..1.0))
}

/// Waits for the moment, kills, and waits for its end.
fn kill_at(moment: Instant, child: &mut Child) {
    until("the moment to kill", || Instant::now() >= moment || child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Nothing of it is in the kernel after what was there before. Programs are freed some time after their last reference.
fn no_programs_but(before: &BTreeSet<u32>) {
    until("no BPF program of a killed process", || {
        programs_in_kernel().into_iter().all(|id| before.contains(&id))
    });
}

fn run() {
    let arena = Arena::new();
    let mut run = arena.run("out", &["trials.measure=200ms"]);
    kill_at(random(Duration::from_secs(3)), &mut run.child);
    arena.cleanup();
    arena.assert_clean("after a killed run and cleanup");
}

/// Files that a run of an observer may leave: none.
fn files() -> BTreeSet<PathBuf> {
    let entries =
        ["/run", "/tmp"].into_iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.to_string_lossy().contains("rxpath")).collect()
}

fn observer(name: &str) {
    let arena = Arena::new();
    let (programs, before) = (programs_in_kernel().into_iter().collect(), files());
    let (_, words) = OBSERVERS.into_iter().find(|(it, _)| *it == name).unwrap();
    let mut command = arena.inside(env!("CARGO_BIN_EXE_rxpath"));
    let mut child =
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    kill_at(random(Duration::from_millis(1_200)), &mut child);
    no_programs_but(&programs);
    arena.assert_clean("after a killed observer");
    assert_eq!(files(), before, "files of a killed {name}");
}

/// The row of searches on real traffic.
const SEARCH: &str = "tune auto --live";

/// The watchdog undoes what the search had on: nobody else is asked to.
fn search() {
    let service = Service::new().expect("BPF").stream();
    let before = service.settings();
    let words = ["--yes", "--settings", "GRO", "--settings", "deferred*", "--budget", "60s"];
    let mut command = service.search(&words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The start is measured for some seconds, then a slice lasts half a second.
    kill_at(random(Duration::from_secs(8)), &mut child);
    until("the settings of before", || service.settings() == before);
    service.assert_done();
}

#[derive(Clone, Copy)]
enum Killed {
    Apply,
    Undo,
}

fn killed_change(killed: Killed) {
    let place = Place::new().unwrap();
    let before = place.snapshot();
    let plan = place.plan(&WISHES);
    let apply = ["tune", "apply", &plan];
    let words = match killed {
        Killed::Apply => place.words(&apply),
        Killed::Undo => {
            place.rxpath(&apply).ok();
            assert_ne!(place.snapshot(), before, "settings after apply");
            place.words(&["tune", "undo", "--all"])
        }
    };
    let started = place.ns.run(move |_| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        command.args(words).env_remove("SSH_CONNECTION");
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    let mut child = started.unwrap();
    kill_at(random(Duration::from_millis(150)), &mut child);
    place.rxpath(&["tune", "undo", "--all"]).ok();
    assert_eq!(place.snapshot(), before, "settings after undo");
}
