//! Faults in the middle of a run: one clear line, the right exit status, what was measured kept, nothing left.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use rxpath_host::HostError;
use rxpath_host::lab::netns::Namespace;
use rxpath_record::manifest::Status;
use rxpath_record::run::RunReader;

use crate::arena::{Arena, Run};
use crate::bed::{Bed, may_run};
use crate::program::{self, Said};

/// The line that says what went wrong.
fn said(ended: &Said) -> String {
    let lines: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("rxpath: ")).collect();
    assert_eq!(lines.len(), 1, "one clear line:\n{}", ended.err);
    lines[0].to_owned()
}

#[test]
fn a_signal_in_each_phase_keeps_the_run_and_leaves_nothing() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let phases = ["trial-started", "ramp", "settle", "measure", "drain", "read", "trial-ended"];
    for (number, phase) in phases.into_iter().enumerate() {
        let (signal, code) =
            if number % 2 == 0 { (Signal::SIGINT, 130) } else { (Signal::SIGTERM, 143) };
        let mut run = arena.run(phase, &["trials.blocks=20", "trials.max_blocks=20"]);
        run.wait_event(&format!("\"{phase}\""));
        let directory = run.directory().unwrap();
        // Twice, as timeout(1) does: to its child, then to the child's group.
        run.signal(signal);
        run.signal(signal);
        let ended = run.wait();
        assert_eq!(ended.code, Some(code), "{phase}: {}", ended.err);
        let line = said(&ended);
        assert!(
            line.contains("interrupted; the run up to this point is kept in "),
            "{phase}: {line}"
        );
        let read = RunReader::open(&directory).unwrap();
        assert_eq!(read.manifest.status, Status::Interrupted, "{phase}");
        assert!(read.partial().unwrap().contains("was interrupted"), "{phase}");
        assert!(read.problems.is_empty(), "{phase}: {:?}", read.problems);
        let is_empty = read.manifest.trials.is_empty();
        let lines = ended.out.lines().count();
        assert_eq!(lines == 1, is_empty, "without a trial only the report: {}", ended.out);
        arena.assert_clean(&format!("after {signal} in {phase}"));
    }
}

#[test]
fn a_workload_that_dies_is_told_with_how_and_ends_the_run() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    for verb in ["serve", "load"] {
        let mut run = arena.run(verb, &["trials.measure=20s"]);
        run.wait_event("\"measure\"");
        let directory = run.directory().unwrap();
        kill(run.workload(verb), Signal::SIGKILL).unwrap();
        let ended = run.wait().ends(5);
        let wanted = format!("rxpath: {verb} died during measure: it was ended by signal 9");
        assert_eq!(said(&ended), wanted);
        assert!(ended.err.contains("hint: earlier measurements are kept in "));
        assert_eq!(RunReader::open(&directory).unwrap().manifest.status, Status::Failed);
        arena.assert_clean(&format!("after the death of {verb}"));
    }
}

#[test]
fn a_full_disk_keeps_the_trials_before_it() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let mut run = arena.run("small/runs", &["trials.blocks=20", "trials.max_blocks=20"]);
    run.wait_event("\"trial-ended\"");
    let directory = run.directory().unwrap();
    let mut filler = std::fs::File::create(arena.path("small/filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    let ended = run.wait().ends(5);
    let line = said(&ended);
    assert!(
        line.contains("the disk is full: ") && line.contains("whole trials are kept"),
        "{line}"
    );
    arena.assert_clean("after a full disk");
    let read = RunReader::open(&directory).unwrap();
    assert!(read.partial().is_some());
    let ends = read.events.iter().filter(|event| format!("{event:?}").contains("TrialEnded"));
    assert!(ends.count() >= 1, "{:?}", read.problems);
}

#[test]
fn a_directory_that_takes_no_writes_is_refused_before_anything_is_made() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let ended = arena.run("read-only", &[]).wait().ends(2);
    assert!(said(&ended).contains("not writable; give a directory of your own with --out"));
    arena.assert_clean("after a read-only directory");
}

#[test]
fn a_second_lab_is_refused_and_told_who_is_first_or_waits() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let mut first = arena.run("first", &["trials.measure=30s"]);
    first.wait_event("\"measure\"");
    let ended = arena.run("second", &[]).wait().ends(3);
    let line = said(&ended);
    let holder = format!("process {} (", first.child.id());
    assert!(line.contains("one lab at a time; ") && line.contains(&holder), "{line}");
    assert!(ended.err.contains("hint: "), "{}", ended.err);
    let mut third = arena.run_with("third", &["--wait=10m"], &[]);
    let line = third.said_line();
    assert!(line.starts_with("waiting: ") && line.contains(&holder), "{line}");
    for words in [&["demo"][..], &["diagnose", "--selftest", "--case", "filter"]] {
        let mut command = arena.inside(env!("CARGO_BIN_EXE_rxpath"));
        command.args(words).arg("--wait=2500ms").arg("--out").arg(arena.dir.path().join("more"));
        program::said(&mut command).ends(3).warns("waiting: ");
    }
    first.signal(Signal::SIGINT);
    assert_eq!(first.wait().code, Some(130));
    let ended = third.wait();
    // 4: it ran, beside tests that disturbed it.
    assert!(matches!(ended.code, Some(0 | 4)), "{}", ended.err);
    arena.assert_clean("after all three");
}

/// The program as somebody without any privilege.
fn nobody(arena: &Arena, sets: &[&str]) -> Said {
    let dir = arena.dir.path();
    let program = dir.join("rxpath");
    if !program.exists() {
        crate::executable::copy(env!("CARGO_BIN_EXE_rxpath"), &program);
    }
    let out = dir.join("nobody");
    std::fs::create_dir_all(&out).unwrap();
    for path in [dir, program.as_path()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = arena.inside("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]);
    command.arg(&program).args(["run", "udp-pinning", "--keep-noisy", "--out"]).arg(&out);
    let quick =
        ["load.rate=2k", "trials.ramp=100ms", "trials.settle=100ms", "trials.measure=200ms"];
    for set in quick.iter().chain(["trials.blocks=1", "trials.max_blocks=1"].iter()).chain(sets) {
        command.args(["--set", set]);
    }
    Run::start(command, out).wait()
}

#[test]
fn without_root_a_lab_is_refused_and_loopback_works() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let ended = nobody(&arena, &[]).ends(3);
    let line = said(&ended);
    assert!(line.contains("needs CAP_NET_ADMIN"), "{line}");
    let hint = ended.err.lines().last().unwrap();
    let way = "hint: run as root (sudo), or on loopback without it: rxpath run udp-pinning --set ";
    assert!(hint.starts_with(way) && hint.ends_with("--set topology.kind=local"), "{hint}");
    let ended = nobody(&arena, &["topology.kind=local"]);
    assert!(matches!(ended.code, Some(0 | 4)), "{}", ended.err);
    assert!(ended.out.contains("report: "), "{}", ended.out);
    assert!(said_warning(&arena), "other programs' traffic is said");
    arena.assert_clean("after runs without root");
}

/// A cpuset of CPU 0 alone, in whichever cgroup hierarchy this host has; removed when dropped.
struct Cpuset(std::path::PathBuf);

impl Cpuset {
    fn make() -> Self {
        let base = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"]
            .map(Path::new)
            .into_iter()
            .find(|base| {
                base.join("cpuset.cpus.effective").exists() || base.join("cpuset.cpus").exists()
            })
            .unwrap();
        let group = base.join(format!("rxpath-test-{}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        let made = Self(group);
        std::fs::write(made.0.join("cpuset.cpus"), "0").unwrap();
        std::fs::write(made.0.join("cpuset.mems"), "0").unwrap();
        made
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_cpu_outside_the_cpuset_is_refused_with_those_inside() {
    if !may_run() {
        return;
    }
    let group = Cpuset::make();
    let procs = group.0.join("cgroup.procs");
    let script = format!(
        "echo $$ > {} && exec {} serve udp 127.0.0.1:0 --cpu 1 --duration 1s --idle-exit 1s",
        procs.display(),
        env!("CARGO_BIN_EXE_rxpath")
    );
    program::said(Command::new("sh").args(["-c", &script]))
        .ends(2)
        .warns("--cpu 1")
        .warns("cpuset")
        .warns("allowed: 0");
}

#[test]
fn a_port_in_use_on_loopback_is_a_usage_error_that_names_it() {
    if !may_run() {
        return;
    }
    let arena = Arena::new();
    let taken = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let port = [format!("serve.port={port}"), format!("load.port={port}")];
    let ended = arena.run("port", &["topology.kind=local", port[0].as_str()]).wait().ends(2);
    let line = said(&ended);
    assert!(line.contains("serve died during set-up") && line.contains("in use"), "{line}");
    arena.assert_clean("after a port in use");
}

#[test]
fn a_namespace_name_that_istaken_is_refused_and_left_alone() {
    let Some(bed) = Bed::new() else { return };
    let name = bed.owner.name("taken");
    assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
    let error = Namespace::create(&bed.owner, "taken").unwrap_err();
    assert!(
        matches!(&error, HostError::Kernel { errno, .. } if *errno == nix::errno::Errno::EEXIST as i32),
        "{error:?}"
    );
    assert!(error.to_string().contains(&name), "{error}");
    assert!(Path::new("/run/netns").join(&name).exists(), "it is somebody else's");
    assert!(Command::new("ip").args(["netns", "del", &name]).status().unwrap().success());
}

/// Whether the run of nobody says whose packets its counters hold.
fn said_warning(arena: &Arena) -> bool {
    let entries = std::fs::read_dir(arena.dir.path().join("nobody")).unwrap();
    let mut runs = entries.map(|entry| RunReader::open(&entry.unwrap().path()).unwrap());
    runs.any(|run| run.manifest.warnings.iter().any(|warning| warning.code == "shared-counters"))
}
