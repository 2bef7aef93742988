//! A process of a cause: a reader, a sender, a hog. It counts into a file that both sides see.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub struct Actor {
    child: Child,
    count: PathBuf,
    log: PathBuf,
}

/// What an actor counts.
pub const COUNTERS: usize = 4;

impl Actor {
    /// Starts `command` in a network namespace; it ends with this process.
    pub fn start(mut command: Command, namespace: &str, count: PathBuf) -> Result<Self, String> {
        let file = fs::File::open(Path::new("/run/netns").join(namespace))
            .map_err(|error| format!("{namespace}: {error}"))?;
        let log = count.with_extension("log");
        let said = fs::File::create(&log).map_err(|error| error.to_string())?;
        let enter = move || -> io::Result<()> {
            set_pdeathsig(Signal::SIGKILL)?;
            setns(file.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok(())
        };
        command.env("COUNT", &count).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        // SAFETY: two system calls and nothing else between fork and exec.
        unsafe { command.pre_exec(enter) };
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Self { child, count, log })
    }

    /// Waits until it says that it works: its last counter moves.
    pub fn ready(mut self) -> Result<Self, String> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.counts()[COUNTERS - 1] == 0 {
            if self.child.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Err(fs::read_to_string(&self.log).unwrap_or_default().trim().to_owned());
            }
            if Instant::now() > deadline {
                return Err("a program of the cause did not get ready in 10 s".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(self)
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// What it counted so far.
    pub fn counts(&self) -> [u64; COUNTERS] {
        let bytes = fs::read(&self.count).unwrap_or_default();
        let mut all = [0; COUNTERS];
        for (to, from) in all.iter_mut().zip(bytes.chunks_exact(8)) {
            *to = from.try_into().map_or(0, u64::from_ne_bytes);
        }
        all
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.pid()), signal);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
