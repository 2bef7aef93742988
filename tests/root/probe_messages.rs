//! What the commands with probes say of a host that refuses, of a name that is none, of a process and of a command that end.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::alone::probe_faults::busy;
use crate::bed::{Bed, until};
use crate::program::{rxpath, said};

/// Since 5.11 maps are charged to the control group; the limit of locked memory, which many services have at 64 KiB,
/// is no limit of ours.
#[test]
fn no_locked_memory_is_needed() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let script = format!(
        "ulimit -l 0 && exec {} steal -d 200ms --irq-entry 5 --json",
        env!("CARGO_BIN_EXE_rxpath")
    );
    let output = said(Command::new("bash").args(["-c", &script])).ends(0);
    let document = output.json();
    assert!(!document["result"]["cpus"].as_array().unwrap().is_empty(), "{output:?}");
}

/// Each way in which a host may refuse: the probe says what it needs, ends with 3, and prints no result.
#[test]
fn what_the_host_refuses_is_said_with_what_would_be_needed() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let program = env!("CARGO_BIN_EXE_rxpath");
    // Root without a single capability, and a kernel that shows no types.
    let without_rights = format!("exec setpriv --bounding-set=-all --inh-caps=-all {program}");
    let without_types = format!("mount -t tmpfs none /sys/kernel/btf && exec {program}");
    for (host, needs) in [(without_rights, "CAP_BPF"), (without_types, "BTF")] {
        for words in ["steal -d 100ms --irq-entry 1", "trace -d 100ms"] {
            let script = format!("{host} {words}");
            said(Command::new("unshare").args(["-m", "sh", "-c", &script]))
                .ends(3)
                .warns(needs)
                .prints_nothing();
        }
    }
}

#[test]
fn what_is_no_namespace_is_refused() {
    let Some(_bed) = Bed::with_bpf() else { return };
    for name in ["/etc/passwd", "", "/proc/self/ns/mnt"] {
        rxpath(&["trace", "-d", "100ms", "--netns", name])
            .ends(2)
            .warns("is not a network namespace");
    }
}

#[test]
fn a_victim_in_another_pid_namespace_is_refused() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let mut command = Command::new("unshare");
    command.args(["-pf", "--mount-proc", env!("CARGO_BIN_EXE_rxpath"), "steal", "--probe"]);
    said(command.args(["--irq-entry", "2", "-d", "100ms"])).ends(3).warns("pid namespace");
}

#[test]
fn without_counters_nothing_is_judged() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let script = format!(
        "mount -t tmpfs none /proc && exec {} diagnose -d 200ms --no-bpf",
        env!("CARGO_BIN_EXE_rxpath")
    );
    said(Command::new("unshare").args(["-m", "sh", "-c", &script]))
        .ends(3)
        .warns("the counters of UDP");
}

#[test]
fn a_process_that_ends_in_the_window_is_told() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let mut child = busy();
    let pid = child.id().to_string();
    let mut trace = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    trace.args(["trace", "-d", "10m", "--json", "--pid", &pid]);
    let mut trace = trace.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(trace.stderr.take().unwrap());
    let began = told.lines().map_while(Result::ok).any(|line| line.starts_with("tracing"));
    assert!(began, "it ended before its window began");
    child.kill().unwrap();
    child.wait().unwrap();
    kill(Pid::from_raw(trace.id() as i32), Signal::SIGINT).unwrap();
    let output = trace.wait_with_output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["warnings"].to_string().contains("process-gone"), "{}", answer["warnings"]);
}

#[test]
fn how_a_command_ended_is_said() {
    let Some(_bed) = Bed::with_bpf() else { return };
    for (script, says, code) in
        [("exit 3", "it ended with status 3", 3), ("kill -9 $$", "by signal 9", 137)]
    {
        rxpath(&["steal", "--irq-entry", "2", "--", "sh", "-c", script]).ends(code).prints(says);
    }
}

/// The published victim says itself what it asked for and had.
#[test]
fn what_a_known_victim_prints_stands_beside_what_was_measured() {
    let Some(_bed) = Bed::with_bpf() else { return };
    // As OpenSSL 3.0 prints it, so that a host without it tests the same.
    let script = "echo \"Doing sha256 for 1s on 16384 size blocks: 4321 sha256's in 0.98s\" >&2";
    let command = ["steal", "--irq-entry", "2", "--json", "--", "sh", "-c", script];
    let told = rxpath(&command).json();
    let victim = &told["result"]["victim"];
    let claim = serde_json::json!({
        "what": "sha256, 16384 bytes", "asked_s": 1.0, "got_s": 0.98, "work_count": 4321
    });
    assert_eq!(victim["claims"], serde_json::json!([claim]), "{victim}");
    let plain = rxpath(&["steal", "--irq-entry", "2", "--", "sh", "-c", script])
        .prints("it says itself: sha256, 16384 bytes asked 1.00 s, had 0.98 s");
    // The output is the user's as well.
    assert!(plain.err.contains("Doing sha256"), "{plain:?}");
}

/// What a command leaves running does not hold its result back, and goes with it when it is interrupted.
#[test]
fn a_command_that_leaves_something_running_ends_when_it_ends() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let begun = Instant::now();
    let script = "sleep 600 & echo $!; exit 0";
    let output = rxpath(&["steal", "--irq-entry", "2", "--", "sh", "-c", script]);
    assert!(output.code == Some(0) && begun.elapsed() < Duration::from_secs(400), "{output:?}");
    let left: i32 = output.err.lines().find_map(|line| line.trim().parse().ok()).unwrap();
    kill(Pid::from_raw(left), Signal::SIGKILL).unwrap();

    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    let script = "sleep 600 & echo $!; wait; true";
    command.args(["steal", "--irq-entry", "2", "--", "sh", "-c", script]);
    let mut steal = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(steal.stderr.take().unwrap()).lines().map_while(Result::ok);
    let left: i32 = told.find_map(|line| line.trim().parse().ok()).unwrap();
    kill(Pid::from_raw(steal.id() as i32), Signal::SIGINT).unwrap();
    steal.wait().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{left}/stat"));
    until("what it started is gone", || {
        state().is_err() || state().is_ok_and(|s| s.contains(") Z "))
    });
}

/// The file is tried before the window. A disk may be full after it.
#[test]
fn a_file_that_has_no_space_for_the_timeline_is_status_2() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    said(command.args(["trace", "-d", "50ms", "--perfetto", "/dev/full"]))
        .ends(2)
        .warns("rxpath: cannot write /dev/full: ");
}
