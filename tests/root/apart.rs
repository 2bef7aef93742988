//! `tools/apart.sh`: however it ends, nothing of what it ran is left.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bed::{may_run, random_id, until};
use crate::program::said;

fn apart(script: &str) -> Command {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/apart.sh");
    let mut command = Command::new("env");
    // A shell cannot trap what was ignored when it began, as SIGINT is in what another shell started in the background.
    command.arg("--default-signal=INT").arg(tool).args(["sh", "-c", script]);
    command
}

/// Whether a process has this word in its command line.
fn runs(word: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()))
}

#[test]
fn a_program_has_namespaces_of_its_own_and_its_status_is_passed_on() {
    if !may_run() {
        return;
    }
    let output = said(&mut apart("echo $$; ls -A /run; ip -o link; exit 7")).ends(7);
    // The first process, nothing in /run, and one device.
    let [first, link] = output.out.lines().collect::<Vec<_>>()[..] else { panic!("{output:?}") };
    assert!(first == "1" && link.contains(" lo: ") && link.contains(",UP"), "{output:?}");
}

#[test]
fn whatever_it_started_ends_with_it_however_it_is_killed() {
    if !may_run() {
        return;
    }
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        // A time that no other process sleeps. One of its programs has left its session.
        let time = format!("1000000{}", u32::from_str_radix(&random_id(), 16).unwrap());
        let mut child = apart(&format!("setsid sleep {time} & sleep {time}")).spawn().unwrap();
        until("its programs run", || runs(&time));
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        until("it has ended", || child.try_wait().unwrap().is_some());
        let status = child.wait().unwrap();
        if signal == Signal::SIGKILL {
            assert_eq!(status.signal(), Some(signal as i32));
        } else {
            assert_eq!(status.code(), Some(128 + signal as i32));
            assert!(!runs(&time), "{signal}: all have ended before it");
        }
        until("its programs have ended", || !runs(&time));
    }
}
