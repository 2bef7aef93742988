//! The workloads that an endpoint runs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::Signal;
use rxpath_host::netns;
use rxpath_load::engine::{clock, hops};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

use super::files;
use super::outlet::Outlet;
use super::strays;
use super::wire::Said;
use crate::error::LabError;
use crate::testbed::foreign::{ForeignProgram, piped};
use crate::testbed::started::is_bound;
use crate::trial::unreaped::{signal_group, wait_for_end};

/// What a coordinator may want of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramAsk {
    /// Starts it with pipes: its process id.
    Launch {
        /// The words after the program's name.
        words: Vec<String>,
        /// The host's name in the experiment; empty for hosts that have one clock.
        host: String,
        /// Its number among the senders, from 0.
        sender: u16,
    },
    /// Starts a third-party program: its process id.
    LaunchForeign {
        /// The program.
        foreign: ForeignProgram,
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

/// All programs of an endpoint by their numbers. Dropping it ends them.
pub struct Programs {
    exe: PathBuf,
    outlet: Arc<Outlet>,
    running: BTreeMap<u32, Running>,
    /// Hops that packets of this program's workloads may take.
    hops: Option<u8>,
}

struct Running {
    pid: u32,
    stdin: Option<ChildStdin>,
    /// Its files, which go with it.
    _files: Option<TempDir>,
    /// Ends after the program's last line and its exit were said.
    waiter: JoinHandle<()>,
}

impl Programs {
    /// None yet; `exe` is this program.
    pub fn new(exe: PathBuf, outlet: Arc<Outlet>) -> Self {
        Self { exe, outlet, running: BTreeMap::new(), hops: None }
    }

    /// Limits the hops that packets of this program's workloads take from now on.
    pub fn limit_hops(&mut self, hops: Option<u8>) {
        self.hops = hops;
    }

    /// The processes of all: none of them is foreign load.
    pub fn pids(&self) -> Vec<i32> {
        self.running.values().map(|running| running.pid as i32).collect()
    }

    /// Does what is wanted of a program. To be called by the main thread: a program dies with the thread that starts it.
    pub fn answer(&mut self, program: u32, ask: &ProgramAsk) -> Result<Value, LabError> {
        match ask {
            ProgramAsk::Launch { words, host, sender } => {
                return Ok(self.launch(program, words, (host, *sender))?.into());
            }
            ProgramAsk::Order { line } => self.order(program, line)?,
            ProgramAsk::HangUp => self.hang_up(program),
            ProgramAsk::LaunchForeign { foreign } => {
                return Ok(self.launch_foreign(program, foreign)?.into());
            }
            ProgramAsk::Signal { number } => {
                let signal = Signal::try_from(*number)
                    .map_err(|_| LabError::Internal { what: format!("{number} is no signal") })?;
                self.signal(program, signal);
            }
            ProgramAsk::HasBound { port } => {
                let running = self.running.get(&program);
                return Ok(running.is_some_and(|it| is_bound(it.pid, *port)).into());
            }
        }
        Ok(Value::Null)
    }

    fn launch(
        &mut self,
        program: u32,
        words: &[String],
        (host, sender): (&str, u16),
    ) -> Result<u32, LabError> {
        let mut command = Command::new(&self.exe);
        command.args(words).env(clock::HOST, host).env(clock::SENDER, sender.to_string());
        command.envs(self.hops.map(|hops| (hops::HOPS, hops.to_string())));
        piped(&mut command);
        self.start(program, command, None)
    }

    fn launch_foreign(&mut self, program: u32, foreign: &ForeignProgram) -> Result<u32, LabError> {
        let files = foreign.needs_dir().then(files::make).transpose()?;
        let dir = files.as_ref().map_or(Path::new(""), TempDir::path);
        let mut command = foreign.command(dir)?;
        strays::mark(&mut command);
        self.start(program, command, files)
    }

    fn start(
        &mut self,
        program: u32,
        mut command: Command,
        files: Option<TempDir>,
    ) -> Result<u32, LabError> {
        netns::die_with_parent(&mut command);
        let path = PathBuf::from(command.get_program());
        let mut child = command.spawn().map_err(|source| LabError::Start { path, source })?;
        let (stdin, pid) = (child.stdin.take(), child.id());
        let outlet = Arc::clone(&self.outlet);
        let waiter = std::thread::spawn(move || follow(program, child, &outlet));
        self.running.retain(|_, other| !other.waiter.is_finished());
        self.running.insert(program, Running { pid, stdin, _files: files, waiter });
        Ok(pid)
    }

    fn order(&mut self, program: u32, line: &str) -> Result<(), LabError> {
        let pipe = self.running.get_mut(&program).and_then(|it| it.stdin.as_mut());
        let pipe = pipe.ok_or_else(|| LabError::Internal {
            what: format!("program {program} takes no orders"),
        })?;
        writeln!(pipe, "{line}")
            .and_then(|()| pipe.flush())
            .map_err(|error| LabError::io("give an order to a workload", error))
    }

    fn hang_up(&mut self, program: u32) {
        if let Some(running) = self.running.get_mut(&program) {
            running.stdin = None;
        }
    }

    /// Sends a signal to it and what it started.
    fn signal(&self, program: u32, signal: Signal) {
        if let Some(running) = self.running.get(&program) {
            running.signal(signal);
        }
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        // Its status is taken by the waiter alone, which ends right after.
        if !self.waiter.is_finished() {
            signal_group(self.pid, signal);
        }
    }
}

impl Drop for Programs {
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

/// Passes on what a program prints, and how it ended.
fn follow(program: u32, mut child: Child, outlet: &Arc<Outlet>) {
    let reader =
        |outlet: Arc<Outlet>, pipe: Option<Box<dyn Read + Send>>, said: fn(u32, String) -> Said| {
            pipe.map(|pipe| {
                std::thread::spawn(move || lines(pipe, |line| outlet.say(said(program, line))))
            })
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
    for reader in readers.into_iter().flatten() {
        let _ = reader.join();
    }
    let status = child.wait().map_or(0, ExitStatusExt::into_raw);
    outlet.say(Said::Exit { program, status });
}

fn lines(pipe: impl Read, say: impl Fn(String)) {
    let mut from = BufReader::new(pipe);
    let mut bytes = Vec::new();
    while matches!(from.read_until(b'\n', &mut bytes), Ok(1..)) {
        say(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned());
        bytes.clear();
    }
}

/// Locks what only short sections hold.
pub fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
