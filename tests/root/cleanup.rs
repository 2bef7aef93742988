//! A run that is killed at any moment leaves nothing behind that the next cleanup does not find.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use chacha20::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};
use rxpath_host::lab::netns::Namespace;
use rxpath_host::lab::owner::{self, Owner};
use rxpath_host::read::process::ProcessId;

use crate::bed::{may_run, random_id, until};

const ROLE: &str = "RXPATH_TEST_VICTIM";

/// Not a test of its own: what the killed process does, started by the tests below.
#[test]
fn victim() {
    let Ok(id) = std::env::var(ROLE) else { return };
    let owner = Owner::register(&id).unwrap();
    let tx = Namespace::create(&owner, "tx").unwrap();
    let rx = Namespace::create(&owner, "rx").unwrap();
    tx.veth_to("veth", &rx, "veth", 2).unwrap();
    let mut command = Command::new("sleep");
    command.arg("1000");
    let child = rx.spawn(command).unwrap();
    eprintln!("made {}", child.id.pid);
    let forever = std::sync::mpsc::channel::<()>();
    let _ = forever.1.recv();
}

fn start(id: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["cleanup::victim", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, id)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Everything on this machine that carries the run's id.
fn traces(id: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in ["/run/netns", "/run/rxpath", "/sys/class/net"] {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains(id) {
                found.push(path);
            }
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(id)).map(PathBuf::from));
    found
}

#[test]
fn what_a_killed_run_made_is_removed_and_nothing_else() {
    if !may_run() {
        return;
    }
    let bystander = Owner::register(&random_id()).unwrap();
    let kept = Namespace::create(&bystander, "kept").unwrap();
    let foreign = format!("foreign-{}", random_id());
    assert!(Command::new("ip").args(["netns", "add", &foreign]).status().unwrap().success());

    let id = random_id();
    let mut victim = start(&id);
    let lines = BufReader::new(victim.stderr.take().unwrap()).lines().map_while(Result::ok);
    let made = lines.into_iter().find_map(|line| line.strip_prefix("made ")?.parse().ok()).unwrap();
    let child = ProcessId::of(made).unwrap();
    assert!(owner::cleanup().unwrap().alive.contains(&id), "its owner lives: nothing is touched");
    assert!(Path::new("/run/netns").join(format!("rxp-{id}-tx")).exists());

    victim.kill().unwrap();
    victim.wait().unwrap();
    until("the child's death by the parent's", || !child.is_alive());
    assert!(!traces(&id).is_empty(), "a killed run leaves things");
    let removed = owner::cleanup().unwrap();
    assert!(removed.failed.is_empty(), "{removed:?}");
    assert!(removed.runs.contains(&id));
    assert!(removed.things.contains(&format!("namespace rxp-{id}-rx")), "{removed:?}");
    assert_eq!(traces(&id), Vec::<PathBuf>::new());

    assert!(Path::new("/run/netns").join(kept.name()).exists(), "of a living run");
    assert!(Path::new("/run/netns").join(&foreign).exists(), "not ours");
    assert!(Command::new("ip").args(["netns", "del", &foreign]).status().unwrap().success());
}

#[test]
fn a_run_killed_at_any_moment_leaves_nothing() {
    if !may_run() {
        return;
    }
    let seed = rand::rng().next_u64();
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // How long the whole takes here, so that the moments fall inside it.
    let begin = Instant::now();
    let id = random_id();
    let mut whole = start(&id);
    let mut lines = BufReader::new(whole.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("made ")));
    let takes = begin.elapsed();
    whole.kill().unwrap();
    whole.wait().unwrap();
    let mut ids = vec![id];
    for _ in 0..10 {
        let id = random_id();
        let mut victim = start(&id);
        let moment = Instant::now() + takes.mul_f64(rng.random_range(0.0..1.1));
        until("the moment to kill", || Instant::now() >= moment);
        victim.kill().unwrap();
        victim.wait().unwrap();
        ids.push(id);
    }
    let removed = owner::cleanup().unwrap();
    assert!(removed.failed.is_empty(), "{removed:?}");
    for id in &ids {
        assert_eq!(traces(id), Vec::<PathBuf>::new(), "seed {seed}");
    }
    let sleepers = || {
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let environs = entries.filter_map(|e| std::fs::read(e.path().join("environ")).ok());
        let texts =
            environs.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect::<Vec<_>>();
        ids.iter().any(|id| texts.iter().any(|text| text.contains(&format!("{ROLE}={id}"))))
    };
    until("no process of a killed run", || !sleepers());
}
