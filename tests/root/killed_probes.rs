//! What is killed while its BPF programs count leaves none of them in the kernel, and nothing else that `cleanup` does not remove.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_bpf::cost::programs_in_kernel;

use crate::alone::diagnose::{in_window, watching};
use crate::alone::probes::probe;
use crate::alone::watch::{next, watch};
use crate::arena::Arena;
use crate::bed::{Bed, may_run, until};
use crate::exporter::{QUICK, Running};
use crate::skip::skip;

/// Ids of the BPF programs that a process holds.
fn programs(pid: u32) -> BTreeSet<u32> {
    let id = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten();
    entries.filter_map(|entry| id(fs::read_to_string(entry.ok()?.path()).ok()?)).collect()
}

fn kill_at_once(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Ends a process that has loaded all its programs, at least so many: each is in the kernel before, and none after.
fn kill_whole(pid: u32, least: usize, end: impl FnOnce()) {
    let ids = programs(pid);
    assert!(ids.len() >= least, "{} programs", ids.len());
    let there = || {
        let now = programs_in_kernel();
        ids.iter().filter(|id| now.contains(id)).count()
    };
    assert_eq!(there(), ids.len());
    end();
    // The kernel frees them in the background.
    until("its programs are gone", || there() == 0);
}

#[test]
fn a_killed_probe_leaves_no_program_in_the_kernel() {
    let Some(_bed) = Bed::with_bpf() else { return };
    for words in [["steal", "-d", "10m", "--irq-entry=1"], ["trace", "-d", "10m", "--top=1"]] {
        let mut probe = probe(&words);
        kill_whole(probe.child.id(), 6, || kill_at_once(&mut probe.child));
    }
}

#[test]
fn a_killed_diagnosis_leaves_no_program_in_the_kernel() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let mut child = watching(&rx, &["-d", "600s"]);
    in_window(&mut child);
    // sched_switch, softirq_entry, softirq_exit and softirq_raise alone are four, the locks' three.
    kill_whole(child.id(), 8, || kill_at_once(&mut child));
}

#[test]
fn a_killed_view_leaves_no_program_in_the_kernel() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let (mut child, mut lines) = watch(&rx);
    next(&mut lines);
    kill_whole(child.id(), 8, || kill_at_once(&mut child));
}

/// In a namespace of its own, of which it is the only exporter.
#[test]
fn a_killed_exporter_leaves_no_program_in_the_kernel() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", rx.name()]).args(QUICK);
    let running = Running::of(command);
    until("its probes count", || running.value("rxpath_probe_up") == Some(1.0));
    // Dropping it kills it.
    kill_whole(running.child.id(), 21, || drop(running));
}

#[test]
fn a_killed_run_that_observed_leaves_no_program_in_the_kernel() {
    if !may_run() {
        return;
    }
    if rxpath_bpf::can_run(&rxpath_host::Root::host()).require("load BPF programs").is_err() {
        skip("bpf_programs", "no BPF here");
        return;
    }
    let arena = Arena::new();
    let observe = ["observe.steal=true", "observe.trace=true", "observe.drops=true"];
    let long = ["observe.irq_entry=1us", "trials.measure=60s"];
    let mut run = arena.run("observed", &[&observe[..], &long].concat());
    run.wait_event("\"measure\"");
    let pid = run.child.id();
    // Each of the three has links on its programs.
    until("its programs are attached", || programs(pid).len() > 30);
    kill_whole(pid, 8, || {
        run.signal(Signal::SIGKILL);
        run.wait();
    });
    arena.cleanup();
    arena.assert_clean("after a killed run that observed");
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
