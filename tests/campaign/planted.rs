//! Settings that are made wrong on purpose: `rxpath tune auto` finds each and proves it, and keeps nothing where nothing is
//! wrong.

mod host;
mod scenarios;

use std::fs;
use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;

use crate::goal;
use crate::service::Service;
use crate::state::Part;

/// Searches with nothing planted.
const NOTHING: u64 = 10;
const NOTHING_PLANTED: &str = "nothing planted";

/// One wrong setting.
struct Planted {
    /// What is wrong.
    name: &'static str,
    /// The candidates that mend it, each by itself.
    mends: &'static [&'static str],
    /// Searches, and gives what the program printed.
    search: fn(&Self) -> Output,
}

fn all() -> Vec<Planted> {
    let lab = scenarios::ALL.iter().map(|&(name, mends, ..)| Planted {
        name,
        mends,
        search: |planted| in_lab(planted.name, 1),
    });
    let mut all: Vec<Planted> = lab.collect();
    let mut on_host = |name, mends, search| all.push(Planted { name, mends, search });
    on_host("GRO off on a TCP stream", &["GRO"], |_| of_stream(&[]));
    on_host("idle CPUs sleep while latency matters", &["no sleep of idle CPUs"], |_| {
        let objective = ["--objective", "min socket_to_read_p99_us"];
        of_stream(&[&objective[..], &["--allow", "host"]].concat())
    });
    on_host("a budget of one packet a softirq", &["larger budget of a softirq"], |_| {
        host::budget()
    });
    on_host("a backlog of 10 packets behind RPS", &["longer backlog", "backlog-max"], |_| {
        host::backlog()
    });
    all
}

/// Goes on until each whose name has ONLY was searched once, and nothing planted ten times.
pub fn go_on(part: &mut Part<'_>) {
    let only = std::env::var("ONLY").unwrap_or_default();
    for planted in all().into_iter().filter(|planted| planted.name.contains(&only)) {
        let row = format!("{}; peak: seconds", planted.name);
        if part.done(&row) == 0 && !step(part, &row, || (planted.search)(&planted), planted.mends) {
            return;
        }
    }
    if !NOTHING_PLANTED.contains(&only) {
        return;
    }
    let row = format!("{NOTHING_PLANTED}; peak: seconds");
    for seed in part.done(&row)..NOTHING {
        if !step(part, &row, || in_lab(NOTHING_PLANTED, seed + 1), &[]) {
            return;
        }
    }
}

/// Searches; one of `wanted` must be kept, or nothing at all. A search that a signal ended stops the campaign.
fn step(part: &mut Part<'_>, row: &str, search: impl FnOnce() -> Output, wanted: &[&str]) -> bool {
    let begun = Instant::now();
    let done = search();
    let seconds = begun.elapsed().as_secs();
    if done.status.code().is_none_or(|code| code > 128) {
        eprintln!("campaign: planted: {row}: ended by a signal, not counted");
        return false;
    }
    let (kept, gain) = kept(&done);
    eprintln!("campaign: planted: {row}: {seconds} s: kept {kept:?}, {gain}");
    let is_right = match wanted {
        [] => kept.is_empty(),
        wanted => wanted.iter().any(|name| kept.iter().any(|kept| kept == name)),
    };
    let found = (!is_right).then(|| {
        eprintln!("{}\n{}", String::from_utf8_lossy(&done.stderr), listed(&done));
        format!("kept {}: {}", kept.join(", "), said(&done))
    });
    part.step(row, 1, Some(seconds), found);
    true
}

/// Names of what was kept, and the gain in words.
fn kept(done: &Output) -> (Vec<String>, String) {
    let all: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    let found = &all["result"]["found"];
    let names = found["kept"].as_array().into_iter().flatten();
    let names = names.filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect();
    let gain = &found["gain"];
    (names, format!("gain {} {}", gain["ratio"], gain["interval"]))
}

/// What was dropped, why, and the guards.
fn listed(done: &Output) -> String {
    let all: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    let found = &all["result"]["found"];
    let live = &all["result"]["live"];
    format!("{}\n{}\n{}", found["dropped"], found["guards"], live["breaches"])
}

fn said(done: &Output) -> String {
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    let is_error = |line: &&str| line.starts_with("rxpath: ") || line.starts_with("error");
    let last = text.lines().rfind(is_error).or(text.lines().last()).unwrap_or_default();
    format!("exit {:?}, {last}", done.status.code())
}

fn budget() -> String {
    format!("{}min", goal("MINUTES", 10))
}

/// A search over trials of the lab.
fn in_lab(name: &str, seed: u64) -> Output {
    let (.., scenario, words) =
        scenarios::ALL.iter().chain([&scenarios::NOTHING]).find(|(it, ..)| *it == name).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("planted.toml");
    fs::write(&file, scenario).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["tune", "auto", "--json", "--set", "trials.measure=500ms", "--scenario"]);
    command.arg(&file).args(["--seed", &seed.to_string(), "--budget", &budget()]);
    command.args(*words).arg("--out").arg(dir.path()).output().unwrap()
}

/// A search on a stream in segments of one MTU, with GRO off.
fn of_stream(words: &[&str]) -> Output {
    let service = Service::new().expect("BPF").stream();
    let mut command = service.rxpath(&["tune", "auto", "--live", "veth", "--json", "--yes"]);
    // Windows of a tenth of a second break limits by chance.
    command.args(["--slice", "2s", "--settle", "500ms", "--budget", &budget()]);
    let out = tempfile::tempdir().unwrap();
    command.args(words).arg("--out").arg(out.path()).output().unwrap()
}
