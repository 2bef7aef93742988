//! The workloads that an endpoint runs.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command};
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::sys::signal::Signal;
use rxpath_host::lab::netns;
use rxpath_load::engine::{clock, hops};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

use super::files;
use super::outlet::{Outlet, json};
use super::said::Said;
use super::strays;
use crate::clock::{monotonic_ns, sleep_until};
use crate::error::LabError;
use crate::testbed::foreign::{ForeignProgram, piped};
use crate::testbed::started::is_bound;
use crate::trial::unreaped::{signal_group, wait_for_end};

/// The longest line of a program that is passed on: as JSON it has at most six times as many bytes, which must be less than
/// [`super::said::LONGEST_LINE`].
const LINE_BYTES: u64 = 2 << 20;
/// The most that is passed on of each stream of a third-party program: it is kept in memory while a window is measured.
const FOREIGN_BYTES: u64 = 16 << 20;

/// What a coordinator may want of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramAsk {
    /// Starts it with pipes: a [`Launched`].
    Launch {
        /// The words after the program's name.
        words: Vec<String>,
        /// The host's name in the experiment; empty for hosts that have one clock.
        host: String,
        /// Its number among the senders, from 0.
        sender: u16,
    },
    /// Starts a third-party program: a [`Launched`].
    LaunchForeign {
        /// The program.
        foreign: ForeignProgram,
        /// When, of the host's clock; else at once.
        at_ns: Option<u64>,
    },
    /// Writes a line to its standard input.
    Order {
        /// The line, without its end.
        line: String,
    },
    /// Closes its standard input.
    HangUp,
    /// Sends a signal to its group.
    Signal {
        /// The signal. **Source** signal(7).
        number: i32,
    },
    /// Whether a socket of its network namespace is bound to a port: true or false.
    HasBound {
        /// The port.
        port: u16,
    },
}

/// A program that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// Its process id.
    pub pid: u32,
    /// When, of the host's clock.
    pub at_ns: u64,
}

/// All programs of an endpoint by their numbers. Dropping it ends them.
pub struct EndpointPrograms {
    exe: PathBuf,
    outlet: Arc<Outlet>,
    running: BTreeMap<u32, Running>,
    /// Hops that packets of this program's workloads may take from now on.
    pub(super) hops: Option<u8>,
}

struct Running {
    pid: u32,
    stdin: Option<ChildStdin>,
    /// Its files, which go with it.
    _files: Option<TempDir>,
    /// Ends after the program's last line and its exit were said.
    waiter: JoinHandle<()>,
}

impl EndpointPrograms {
    /// None yet; `exe` is this program.
    pub fn new(exe: PathBuf, outlet: Arc<Outlet>) -> Self {
        Self { exe, outlet, running: BTreeMap::new(), hops: None }
    }

    /// The processes of all: none of them is foreign load.
    pub fn pids(&self) -> Vec<i32> {
        self.running.values().map(|running| running.pid as i32).collect()
    }

    /// Does what is wanted of a program. To be called by the main thread: a program dies with the thread that starts it.
    pub fn answer(&mut self, program: u32, ask: &ProgramAsk) -> Result<Value, LabError> {
        match ask {
            ProgramAsk::Launch { words, host, sender } => {
                let mut command = Command::new(&self.exe);
                command.args(words).env(clock::HOST, host).env(clock::SENDER, sender.to_string());
                command.envs(self.hops.map(|hops| (hops::HOPS, hops.to_string())));
                piped(&mut command);
                return json(&self.start(program, command, (None, u64::MAX))?);
            }
            ProgramAsk::Order { line } => self.order(program, line)?,
            ProgramAsk::HangUp => {
                if let Some(running) = self.running.get_mut(&program) {
                    running.stdin = None;
                }
            }
            ProgramAsk::LaunchForeign { foreign, at_ns } => {
                return json(&self.launch_foreign(program, foreign, *at_ns)?);
            }
            ProgramAsk::Signal { number } => {
                let signal = Signal::try_from(*number)
                    .map_err(|_| LabError::internal(format!("{number} is no signal")))?;
                if let Some(running) = self.running.get(&program) {
                    running.signal(signal);
                }
            }
            ProgramAsk::HasBound { port } => {
                let running = self.running.get(&program);
                return Ok(running.is_some_and(|it| is_bound(it.pid, *port)).into());
            }
        }
        Ok(Value::Null)
    }

    fn launch_foreign(
        &mut self,
        program: u32,
        foreign: &ForeignProgram,
        at_ns: Option<u64>,
    ) -> Result<Launched, LabError> {
        let files = foreign.needs_dir().then(files::make).transpose()?;
        let dir = files.as_ref().map_or(Path::new(""), TempDir::path);
        let mut command = foreign.command(dir)?;
        strays::mark(&mut command);
        // In this thread: a program dies with the one that starts it. The lead is at most some seconds, the lease is longer.
        if let Some(at_ns) = at_ns {
            sleep_until(at_ns);
        }
        self.start(program, command, (files, FOREIGN_BYTES))
    }

    /// Starts it with its files, and passes on so many bytes of each of its streams.
    fn start(
        &mut self,
        program: u32,
        mut command: Command,
        (files, most_bytes): (Option<TempDir>, u64),
    ) -> Result<Launched, LabError> {
        netns::die_with_parent(&mut command);
        let path = PathBuf::from(command.get_program());
        let at_ns = monotonic_ns();
        let mut child = command.spawn().map_err(|source| LabError::Start { path, source })?;
        let (stdin, pid) = (child.stdin.take(), child.id());
        let outlet = Arc::clone(&self.outlet);
        let waiter = std::thread::spawn(move || follow((program, child), &outlet, most_bytes));
        self.running.retain(|_, other| !other.waiter.is_finished());
        self.running.insert(program, Running { pid, stdin, _files: files, waiter });
        Ok(Launched { pid, at_ns })
    }

    fn order(&mut self, program: u32, line: &str) -> Result<(), LabError> {
        let pipe = self.running.get_mut(&program).and_then(|it| it.stdin.as_mut());
        let none = || LabError::internal(format!("program {program} takes no orders"));
        let pipe = pipe.ok_or_else(none)?;
        writeln!(pipe, "{line}")
            .and_then(|()| pipe.flush())
            .map_err(|error| LabError::io("give an order to a workload", error))
    }
}

impl Running {
    /// Sends a signal to it and what it started.
    fn signal(&self, signal: Signal) {
        // Its status is taken by the waiter alone, which ends right after.
        if !self.waiter.is_finished() {
            signal_group(self.pid, signal);
        }
    }
}

impl Drop for EndpointPrograms {
    fn drop(&mut self) {
        for running in self.running.values() {
            running.signal(Signal::SIGKILL);
        }
        for (_, running) in std::mem::take(&mut self.running) {
            drop(running.stdin);
            let _ = running.waiter.join();
        }
    }
}

/// Passes on what a program prints, at most so many bytes of each stream, and how it ended.
fn follow((program, mut child): (u32, Child), outlet: &Arc<Outlet>, most_bytes: u64) {
    let reader =
        |outlet: Arc<Outlet>, pipe: Option<Box<dyn Read + Send>>, said: fn(u32, String) -> Said| {
            let say = move |line| outlet.say(said(program, line));
            pipe.map(|pipe| std::thread::spawn(move || lines(pipe, most_bytes, say)))
        };
    let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let readers = [
        reader(Arc::clone(outlet), stdout, |program, line| Said::Out { program, line }),
        reader(Arc::clone(outlet), stderr, |program, line| Said::Err { program, line }),
    ];
    wait_for_end(child.id());
    // What it forked holds its pipes; its status is not taken yet, so its group is its own.
    signal_group(child.id(), Signal::SIGKILL);
    let mut is_cut = false;
    for reader in readers.into_iter().flatten() {
        is_cut |= reader.join().unwrap_or(false);
    }
    if is_cut {
        outlet.say(Said::Err { program, line: CUT.to_owned() });
    }
    let status = child.wait().map_or(0, ExitStatusExt::into_raw);
    outlet.say(Said::Exit { program, status });
}

/// What stands for the rest of an output, on the program's standard error.
const CUT: &str =
    "rxpath: a line of more than 2 MiB or output beyond 16 MiB was left out of what it printed";

/// Passes on the lines of a stream: of each at most [`LINE_BYTES`], and at most `most_bytes` of all. Reads the rest too, so
/// that the program goes on; whether there was any.
fn lines(pipe: impl Read, most_bytes: u64, say: impl Fn(String)) -> bool {
    let mut from = BufReader::new(pipe);
    let (mut left, mut bytes, mut is_cut) = (most_bytes, Vec::new(), false);
    loop {
        let most = left.min(LINE_BYTES);
        if !matches!(from.by_ref().take(most).read_until(b'\n', &mut bytes), Ok(1..)) {
            break;
        }
        left -= bytes.len() as u64;
        if !bytes.ends_with(b"\n") && bytes.len() as u64 == most {
            // Its last byte may be the end of the line.
            is_cut |= from.skip_until(b'\n').is_ok_and(|skipped| skipped > 1);
        }
        say(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned());
        bytes.clear();
    }
    is_cut | matches!(io::copy(&mut from, &mut io::sink()), Ok(1..))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_third_party_program_is_started_at_its_instant_and_it_is_known_when() {
        let outlet = Arc::new(Outlet::new(Box::new(io::sink())));
        let mut programs = EndpointPrograms::new(PathBuf::new(), outlet);
        let foreign = ForeignProgram { words: vec!["true".into()], ..ForeignProgram::default() };
        let at_ns = monotonic_ns() + 30_000_000;
        let ask = ProgramAsk::LaunchForeign { foreign, at_ns: Some(at_ns) };
        let launched = programs.answer(1, &ask).unwrap();
        let launched: Launched = serde_json::from_value(launched).unwrap();
        assert!(launched.at_ns >= at_ns && launched.pid > 0, "{launched:?}, not before {at_ns}");
    }

    /// The lengths of the lines that are passed on, and whether something was left out.
    fn passed(printed: &str, most_bytes: u64) -> (Vec<usize>, bool) {
        let said = RefCell::new(Vec::new());
        let say = |line: String| said.borrow_mut().push(line.len());
        let is_cut = lines(printed.as_bytes(), most_bytes, say);
        (said.into_inner(), is_cut)
    }

    #[test]
    fn output_without_an_end_is_cut_and_read_on() {
        assert_eq!(passed("", 100), (vec![], false));
        assert_eq!(passed("one\n\nthree", 100), (vec![3, 0, 5], false));
        let longest = LINE_BYTES as usize;
        let long = "x".repeat(longest);
        assert_eq!(passed(&format!("{long}\nnext\n"), u64::MAX), (vec![longest, 4], false));
        assert_eq!(passed(&format!("{long}xx\nnext\n"), u64::MAX), (vec![longest, 4], true));
        // A line that is not whole, and nothing of the rest.
        assert_eq!(passed("one\ntwo\nthree\n", 6), (vec![3, 2], true));
        assert_eq!(passed("one\ntwo\n", 8), (vec![3, 3], false));
        assert_eq!(passed("one\ntwo\nthree\n", 8), (vec![3, 3], true));
    }
}
