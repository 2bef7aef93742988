//! `rxpath diagnose` on traffic of a lab, and what may happen to it: no root, a namespace that goes, a signal, a kill.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use crate::arena::Arena;
use crate::bed::{Bed, RX_IP, may_run, send, until, without_types};
use crate::program::{Said, said};

/// Watches inside a namespace for so long.
fn diagnose(rx: &Namespace, length: &str) -> Child {
    watching(rx, &["-d", length])
}

/// Watches inside a namespace.
pub fn watching(rx: &Namespace, words: &[&str]) -> Child {
    Command::new("ip")
        .args(["netns", "exec", rx.name(), env!("CARGO_BIN_EXE_rxpath")])
        .args(["diagnose", "--json"])
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Ids of the BPF programs that a process holds.
fn programs(pid: u32) -> BTreeSet<u32> {
    let id = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten();
    entries.filter_map(|entry| id(fs::read_to_string(entry.ok()?.path()).ok()?)).collect()
}

/// Waits until its programs are attached, which is just before its window begins.
pub fn attached(child: &Child) -> BTreeSet<u32> {
    let mut ids = BTreeSet::new();
    // sched_switch, softirq_entry, softirq_exit and softirq_raise alone are four, the locks' three.
    until("its programs are there", || {
        let now = programs(child.id());
        let settled = now.len() >= 8 && now == ids;
        ids = now;
        settled
    });
    ids
}

/// Waits until its window has begun.
#[expect(clippy::unbuffered_bytes, reason = "what it says later is read at its end")]
pub fn in_window(child: &mut Child) {
    let mut told = String::new();
    for byte in child.stderr.as_mut().unwrap().bytes() {
        told.push(byte.unwrap().into());
        if told.ends_with('\n') && told.lines().any(|line| line.starts_with("watching for ")) {
            return;
        }
    }
    panic!("it ended before its window: {told}");
}

/// Times that its main thread went to sleep: in its window once after each look.
pub fn looks(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

pub fn end(child: Child) -> (Option<i32>, Value) {
    let ended = Said::from(child.wait_with_output().unwrap());
    (ended.code, ended.json())
}

#[test]
fn what_is_lost_while_it_watches_is_named_with_its_counter() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4810)).unwrap()).unwrap();
    let mut child = diagnose(&rx, "600s");
    in_window(&mut child);
    send(&tx, 4811, 20_000);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let (code, value) = end(child);
    assert_eq!(code, Some(130), "{value}");
    let result = crate::schema::result("diagnose", &value.to_string());
    assert_eq!(result["stage"], "no-listener", "{result}");
    assert!(result["evidence"].to_string().contains("Udp.NoPorts"), "{result}");
    assert!(!result["next"].as_array().unwrap().is_empty());
    let probed = &result["evidence_read"]["probed"];
    assert!(!probed["cpus"].as_array().unwrap().is_empty(), "{probed}");
    assert!(probed.get("gaps").is_none(), "{probed}");
}

#[test]
fn a_namespace_that_goes_while_it_is_watched_does_not_end_the_watch() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let mut child = diagnose(&rx, "600s");
    in_window(&mut child);
    send(&tx, 4812, 1_000);
    // Its name and its link go; the watch is inside and keeps what is left.
    drop((tx, rx));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let (code, value) = end(child);
    assert_eq!(code, Some(130), "{value}");
    assert!(value["result"]["stage"].is_string(), "{value}");
}

#[test]
fn killed_it_leaves_no_program_in_the_kernel() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let mut child = diagnose(&rx, "600s");
    let ids = attached(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    until("its programs are gone", || {
        let now = rxpath_bpf::cost::programs_in_kernel();
        !ids.iter().any(|id| now.contains(id))
    });
}

#[test]
fn without_root_it_watches_counters_and_says_what_is_missing() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let value = arena.nobody(&["diagnose", "-d", "200ms", "--json"]).ends(0).json();
    let missing: Vec<&Value> = (value["warnings"].as_array().unwrap().iter())
        .filter(|warning| warning["code"] == "not-measured")
        .collect();
    // One reason for all four.
    assert_eq!(missing.len(), 1, "{value}");
    let text = missing[0].to_string();
    for what in ["CPU time by task", "waits for locks", "drop reasons", "which threads read"] {
        assert!(text.contains(what), "{what}: {text}");
    }
    assert!(text.contains("CAP_"), "{text}");
    let probed = &value["result"]["evidence_read"]["probed"];
    assert!(probed["cpus"].as_array().unwrap().is_empty() && probed.get("locks").is_none());
    arena.nobody(&["diagnose", "--selftest"]).ends(3).warns("needs CAP_NET_ADMIN");
    arena.assert_clean("after a refused self-test");
}

/// On a kernel that shows no types nothing is measured, and everything else is judged.
#[test]
fn without_types_it_watches_counters_and_says_what_is_missing() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let value = without_types(&["diagnose", "-d", "200ms", "--json"]).ends(0).json();
    let all = value["warnings"].as_array().unwrap();
    let missing: Vec<&Value> = all.iter().filter(|one| one["code"] == "not-measured").collect();
    assert!(!missing.is_empty(), "{value}");
    assert!(missing.iter().all(|one| one.to_string().contains("BTF")), "{missing:?}");
    let result = &value["result"];
    assert!(result["stage"].is_string(), "{result}");
    assert!(result["evidence_read"]["window_s"].as_f64() > Some(0.1), "{result}");
    assert_eq!(result["probe_cost"]["gap"], "no BPF program runs", "{result}");
}

#[test]
fn what_looking_costs_stands_beside_the_verdict() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        said(command.args(["diagnose", "-d", "500ms"]).args(words)).ok()
    };
    let value: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let cost = &value["result"]["probe_cost"];
    let number = |of: &str| cost[of].as_f64().unwrap_or_else(|| panic!("{of} in {cost}"));
    // A part was measured, and stands for the whole window.
    assert!(number("measured_s") > 0.0, "{cost}");
    let programs = cost["programs"].as_array().unwrap();
    let ran = |of: &str| programs.iter().filter_map(|one| one[of].as_u64()).sum::<u64>();
    let (runs, ns) = (ran("runs_count"), ran("run_time_ns"));
    assert!(runs > 0 && ns > 0, "{cost}");
    assert!(number("run_time_s") > ns as f64 / 1e9, "{cost}");
    assert!(number("runs_count") > runs as f64, "{cost}");
    assert!(number("map_bytes") > 0.0 && number("reader_cpu_s") > 0.0, "{cost}");
    // The account's, the locks', the drops' and the reads' programs.
    for program in ["sched_switch", "contention_begin", "kfree_skb", "sock_recv_length"] {
        assert!(programs.iter().any(|one| one["program"] == program), "{program} in {cost}");
    }
    let text = run(&[]);
    assert!(
        text.lines().any(|line| line.starts_with("probe: ") && line.contains(" runs (")),
        "{text}"
    );
    let text = run(&["--no-bpf"]);
    assert!(
        text.contains("probe: run time not known (BPF was not asked for); reader 0."),
        "{text}"
    );
}

#[test]
fn a_selftest_that_is_ended_or_killed_leaves_nothing_that_cleanup_does_not_remove() {
    if !may_run() {
        return;
    }
    for (signal, code) in [(Signal::SIGINT, Some(130)), (Signal::SIGKILL, None)] {
        let arena = Arena::new();
        let mut command = arena.inside(env!("CARGO_BIN_EXE_rxpath"));
        command.args(["diagnose", "--selftest", "--draws", "50", "--case", "filter", "--out"]);
        command.arg(arena.dir.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A lab is up; nsenter is the program by now.
        until("a lab is up", || arena.traces().iter().any(|trace| trace.contains("run/netns")));
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), code, "{told}");
        if signal == Signal::SIGKILL {
            arena.cleanup();
        }
        arena.assert_clean(&format!("after {signal}"));
    }
}
