//! Programs that left the process group of their endpoint, and outlive it unless somebody ends them.
//!
//! A third-party program may fork and become a daemon: no signal to a group and no death of a parent reaches it then. It
//! still has its environment, and in it the endpoint that started it. A guard waits next to each endpoint for its end,
//! however that comes, kills those that it left and removes their files. The next endpoint does the same, for guards that were
//! killed too.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::getuid;
use rxpath_host::Root;
use rxpath_host::read::identity::boot_id;
use rxpath_host::read::process::ProcessId;
use rxpath_host::read::procfs::task;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::{self, own_id, owner_of, pid_namespace};
use crate::error::LabError;

/// The variable that names who started a program.
const STARTED_BY: &str = "RXPATH_STARTED_BY";
/// The option of `rxpath endpoint` for the guard.
const GUARD: &str = "--guard";
/// How long the guard waits for an endpoint whose input has ended, and for programs that go on forking.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two scans.
const GLANCE: Duration = Duration::from_millis(50);
/// Of a command line so many characters are shown.
const SHOWN_CHARS: usize = 200;

/// A program that outlived the endpoint that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StrayProgram {
    /// Its process id on the host.
    pub pid: i32,
    /// Its command line, up to 200 characters.
    pub command: String,
}

/// Those of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrayPrograms {
    /// Boot and PID namespace whose process ids they have: equal on hosts that see the same programs.
    pub ids_of: String,
    /// The programs.
    pub programs: Vec<StrayProgram>,
}

/// Notes in a program's environment who starts it, so that it ends with this process wherever it goes.
pub fn mark(command: &mut Command) {
    // Without an identity nobody could know that this process is gone.
    if let Ok(id) = own_id() {
        command.env(STARTED_BY, id);
    }
}

/// Starts the guard of this process, which waits for the end of the pipe that comes with it. Without one, the next endpoint has
/// its work.
pub fn start_guard(exe: &Path) -> Option<Child> {
    let mut command = Command::new(exe);
    // Its identity, and not the guard's parent: that is another one if this process ends before the guard looks.
    let own = own_id().ok()?;
    command.args(["endpoint", GUARD, own.as_str()]);
    // A group of its own: what ends the endpoint's group must not end the guard.
    command.process_group(0);
    // Its output would keep the connection open that ends with the endpoint.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()
}

/// The guard: waits for the end of its input and of the process that started it, kills what that left, and removes its files.
/// `endpoint` is that process, as [`mark`] names it.
pub fn guard(endpoint: &str, mut input: impl Read) {
    let endpoint = owner_of(endpoint);
    let _ = io::copy(&mut input, &mut io::sink());
    let Some(endpoint) = endpoint else { return };
    let deadline = Instant::now() + PATIENCE;
    // Not what others left: `hosts cleanup --dry-run` has a guard, too.
    let left = move || strays().filter(move |stray| stray.owner == endpoint);
    // A program that forks while it is killed is found by the next scan.
    while Instant::now() < deadline && (endpoint.is_alive() || !end(left()).is_empty()) {
        // why: waits for the end of a process that is not this one's child, then for programs that fork.
        std::thread::sleep(GLANCE);
    }
    // No program is left that would write into them.
    files::sweep_of(endpoint);
}

/// Kills programs of this user whose endpoint is no more; those that there were.
pub fn sweep() -> Vec<StrayProgram> {
    end(strays())
}

fn end(strays: impl Iterator<Item = Stray>) -> Vec<StrayProgram> {
    let ended = strays.filter(|stray| stray.process.kill().is_ok_and(|was| was));
    ended.map(|stray| stray.program).collect()
}

/// A program whose endpoint is no more.
struct Stray {
    process: ProcessId,
    /// The endpoint that started it.
    owner: ProcessId,
    program: StrayProgram,
}

/// Programs of this user whose endpoint is no more; with `end` they are killed, and what killed endpoints left of files is
/// removed.
///
/// # Errors
/// If the boot's id cannot be read.
pub fn found(end: bool) -> Result<StrayPrograms, LabError> {
    let ids_of = format!("{} {}", boot_id()?, pid_namespace());
    let programs = if end {
        files::sweep();
        end_all(|_| true)
    } else {
        strays().map(|stray| stray.program).collect()
    };
    Ok(StrayPrograms { ids_of, programs })
}

/// Kills those that are meant, until a scan finds none.
fn end_all(is_meant: impl Fn(&Stray) -> bool) -> Vec<StrayProgram> {
    let deadline = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    loop {
        let ended = end(strays().filter(&is_meant));
        if ended.is_empty() || Instant::now() >= deadline {
            return all;
        }
        for program in ended {
            if !all.contains(&program) {
                all.push(program);
            }
        }
        // why: a program that forks while it is killed is found by the next scan.
        std::thread::sleep(GLANCE);
    }
}

fn strays() -> impl Iterator<Item = Stray> {
    task::processes(&Root::host()).unwrap_or_default().into_iter().filter_map(stray)
}

/// A command line for people: nothing in it may act on a terminal. **Source** proc(5): words end with a zero byte.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let plain = text.trim_end_matches('\0').chars().take(SHOWN_CHARS);
    plain.map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// The process with this pid, if what started it is no more.
fn stray(pid: i32) -> Option<Stray> {
    let uid = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    // Root ends those that changed their user, too.
    if !getuid().is_root() && uid != getuid().as_raw() {
        return None;
    }
    // Before its environment: what is killed is then what was read.
    let process = ProcessId::of(pid).ok()?;
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let owner = owner_of(started_by(&environment)?)?;
    if owner.is_alive() {
        return None;
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Some(Stray { process, owner, program: StrayProgram { pid, command: shown(&line) } })
}

/// Who started a program with this environment. **Source** proc(5): variables end with a zero byte.
fn started_by(environment: &[u8]) -> Option<&str> {
    let mut variables = environment.split(|byte| *byte == 0);
    let prefix = format!("{STARTED_BY}=");
    let found = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    std::str::from_utf8(found).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_started_a_program_is_in_its_environment() {
        let environment = b"HOME=/root\0RXPATH_STARTED_BY=1-2-3\0X=RXPATH_STARTED_BY=4-5-6\0";
        assert_eq!(started_by(environment), Some("1-2-3"));
        assert_eq!(started_by(b"HOME=/root\0"), None);
        assert_eq!(started_by(b""), None);
    }

    #[test]
    fn a_command_line_is_shown_as_words_without_what_acts_on_a_terminal() {
        assert_eq!(shown(b"sh\0-c\0sleep 5\0"), "sh -c sleep 5");
        assert_eq!(shown(b"a\x1b[2Jb\0"), "a [2Jb");
        assert_eq!(shown(&[b'x'; 999]).len(), SHOWN_CHARS);
    }

    /// A program that leaves its group and its parent, started with this environment; waits until it runs.
    fn daemon(prepare: impl FnOnce(&mut Command)) -> ProcessId {
        let mut command = Command::new("sh");
        command.args(["-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"]);
        prepare(&mut command);
        let printed = command.output().unwrap().stdout;
        let pid: i32 = String::from_utf8(printed).unwrap().trim().parse().unwrap();
        let is_sleep = || {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline"));
            line.is_ok_and(|line| line.starts_with("sleep"))
        };
        until("the program runs", is_sleep);
        ProcessId::of(pid).unwrap()
    }

    fn until(what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "not in time: {what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_program_that_left_its_group_ends_once_what_started_it_is_no_more() {
        let living = daemon(mark);
        let strange = daemon(|_| {});
        // The number of a process, and a start at which it did not begin.
        let gone = own_id().unwrap() + "1";
        let left = daemon(|command| {
            command.env(STARTED_BY, &gone);
        });
        // An endpoint on this machine may end it at any time.
        let named =
            found(false).unwrap().programs.into_iter().find(|program| program.pid == left.pid);
        assert!(named.is_none_or(|program| program.command == "sleep 1000"));
        // What other tests left is theirs.
        let owner = owner_of(&gone).unwrap();
        end_all(|stray| stray.owner == owner);
        until("the program is ended", || !left.is_alive());
        assert!(living.is_alive() && strange.is_alive());
        assert!(living.kill().unwrap() && strange.kill().unwrap());
    }

    #[test]
    fn a_guard_sweeps_although_its_endpoint_ended_before_it_looked() {
        let gone = own_id().unwrap() + "2";
        let left = daemon(|command| {
            command.env(STARTED_BY, &gone);
        });
        let files = std::env::temp_dir().join(format!("rxpath-files-{gone}-x"));
        fs::create_dir(&files).unwrap();
        guard(&gone, io::empty());
        assert!(!files.exists());
        // It is killed, and its end takes a moment.
        until("the program is ended", || !left.is_alive());
    }
}
