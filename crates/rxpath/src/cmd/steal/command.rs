//! The user's command as a victim: started on its CPU, its output passed on and read.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use rxpath_bpf::steal::probe::StealVictim;
use rxpath_bpf::steal::{TaskTaken, openssl};
use rxpath_core::CpuList;
use rxpath_host::read::thread;
use rxpath_host::write::sched;

use crate::exit::{Failure, OrUsage};

/// Output that is kept for reading; the rest is only passed on.
const KEPT: usize = 1 << 20;

/// How long to wait for the rest of the output after the command has ended: processes it left running may keep the
/// pipes open.
const REST: Duration = Duration::from_millis(200);

/// The running command.
pub struct Child {
    what: String,
    child: std::process::Child,
    begun: Instant,
    status: Option<(ExitStatus, Duration)>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Nothing is sent: the channel closes when the threads that read the pipes have ended.
    readers: Receiver<()>,
}

/// The command that ended.
pub struct Ended {
    what: String,
    pid: u32,
    wall: Duration,
    status: ExitStatus,
    said: String,
}

impl Child {
    /// Starts the command in its own process group, on this CPU if one is given. Its output goes to our standard error,
    /// because our standard output is for the result.
    pub fn start(words: &[String], cpu: Option<u32>) -> Result<Self, Failure> {
        let what = words.join(" ");
        let program = words.first().map_or("", String::as_str);
        let before = thread::affinity(0)?;
        if let Some(cpu) = cpu {
            // The command inherits the CPU affinity of the thread that starts it.
            sched::set_affinity(0, &CpuList(vec![cpu]))?;
        }
        let begun = Instant::now();
        let started = Command::new(program)
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        sched::set_affinity(0, &before)?;
        let mut child = started.or_usage(|| format!("cannot start {program}"))?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ];
        let (reading, readers) = channel();
        for pipe in pipes.into_iter().flatten() {
            let (said, reading) = (Arc::clone(&said), reading.clone());
            std::thread::spawn(move || pass_on(pipe, &said, &reading));
        }
        Ok(Self { what, child, begun, status: None, said, readers })
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        if self.status.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.status = Some((status, self.begun.elapsed()));
        }
        self.status.is_some()
    }

    /// Waits for the end of the command; after a signal to us, ends it first, with all that it started in its group. If
    /// it ends by itself, processes it left running continue.
    pub fn end(mut self, signal: Option<i32>) -> Result<Ended, Failure> {
        if signal.is_some() && !self.is_over() {
            // Not waited for yet, so its pid is still valid.
            killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL)?;
        }
        let (status, wall) = match self.status {
            Some(ended) => ended,
            None => (self.child.wait()?, self.begun.elapsed()),
        };
        // In both cases, the output so far is read.
        let _ = self.readers.recv_timeout(REST);
        let said = self.said.lock().map(|said| String::from_utf8_lossy(&said).into_owned());
        let pid = self.child.id();
        Ok(Ended { what: self.what, pid, wall, status, said: said.unwrap_or_default() })
    }
}

/// Reading both pipes in sequence would block the command; each pipe has its own thread.
fn pass_on(mut pipe: Box<dyn Read + Send>, said: &Mutex<Vec<u8>>, _reading: &Sender<()>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        let _ = std::io::stderr().write_all(&buffer[..count]);
        if let Ok(mut said) = said.lock() {
            let room = KEPT.saturating_sub(said.len()).min(count);
            said.extend_from_slice(&buffer[..room]);
        }
    }
}

impl Ended {
    /// The request and its result.
    pub fn victim(&self, tasks: &[TaskTaken]) -> StealVictim {
        let mut victim = StealVictim::command(&self.what, self.pid, self.wall, tasks);
        victim.row.claims = openssl::claims(&self.said);
        victim.exit_code = self.status.code();
        victim.ended_by_signal = self.status.signal();
        victim
    }
}
