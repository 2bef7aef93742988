//! A run of the program, and what it printed however it ends.

use std::fs;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::Said;

/// No run of the tests takes as long.
const LONGEST: Duration = Duration::from_secs(300);
/// From the end of a run to that of its outputs.
const CLOSED: Duration = Duration::from_secs(60);

pub struct Running(pub(super) Child);

impl Running {
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn interrupt(&self) {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT).unwrap();
    }

    /// Sends a signal to its ssh client to a host.
    pub fn signal_ssh(&self, host: &str, signal: Signal) {
        let (own, host) = (format!("\nPPid:\t{}\n", self.0.id()), format!(" -- {host} "));
        let mut found = 0;
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let text = |name: &str| String::from_utf8_lossy(&read(name)).replace('\0', " ");
            if text("status").contains(&own) && text("cmdline").contains(&host) {
                let pid = entry.file_name().to_str().unwrap().parse().unwrap();
                kill(Pid::from_raw(pid), signal).unwrap();
                found += 1;
            }
        }
        assert!(found > 0, "no ssh to {host}");
    }

    /// Holds it: it lives and does nothing.
    pub fn hold(&self) {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGSTOP).unwrap();
    }

    /// Waits until it ends. One that goes on is killed, and what it printed is shown.
    pub fn wait(self) -> Said {
        self.wait_within([LONGEST, CLOSED]).unwrap_or_else(|shown| panic!("{shown}"))
    }

    /// The same with the longest times for its end and for that of its outputs; an error has what it printed until then.
    fn wait_within(mut self, [longest, closed]: [Duration; 2]) -> Result<Said, String> {
        let printed = Output::of(self.0.stdout.take().unwrap());
        let errors = Output::of(self.0.stderr.take().unwrap());
        let deadline = Instant::now() + longest;
        while self.0.try_wait().unwrap().is_none() && Instant::now() < deadline {
            // why: no descriptor says that a child ended.
            std::thread::sleep(Duration::from_millis(10));
        }
        let is_over = self.0.try_wait().unwrap().is_some();
        if !is_over {
            self.0.kill().unwrap();
        }
        let code = self.0.wait().unwrap().code();
        // What it started may have its outputs.
        let are_closed = [printed.is_closed_within(closed), errors.is_closed_within(closed)];
        let ended = Said::new(code, [printed.text(), errors.text()]);
        match (is_over, are_closed) {
            (false, _) => Err(format!("it went on for {longest:?}: {ended:?}")),
            (true, [true, true]) => Ok(ended),
            (true, _) => Err(format!("its outputs were open {closed:?} after its end: {ended:?}")),
        }
    }
}

/// What came out of a pipe so far.
struct Output {
    said: Arc<Mutex<Vec<u8>>>,
    /// Ends with the pipe.
    open: Receiver<()>,
}

/// Where it is kept.
struct Keep(Arc<Mutex<Vec<u8>>>);

impl Write for Keep {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let said = Arc::<Mutex<Vec<u8>>>::default();
        let (is_open, open) = channel();
        let mut keep = Keep(Arc::clone(&said));
        std::thread::spawn(move || {
            io::copy(&mut pipe, &mut keep).unwrap();
            drop(is_open);
        });
        Self { said, open }
    }

    fn is_closed_within(&self, limit: Duration) -> bool {
        self.open.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }
}

#[test]
fn what_a_program_printed_is_shown_if_it_goes_on_and_if_its_outputs_stay_open() {
    let start = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let limits = [Duration::from_secs(2), Duration::from_millis(100)];
    // What is started in the background has the outputs for longer than the limit.
    let goes_on = start("echo here; echo there >&2; sleep 6 & wait").wait_within(limits);
    let shown = goes_on.unwrap_err();
    assert!(shown.starts_with("it went on for 2s") && shown.contains("here"), "{shown}");
    assert!(shown.contains("there"), "{shown}");
    let limits = [Duration::from_secs(60), Duration::from_millis(100)];
    let shown = start("echo here; sleep 6 & exit 3").wait_within(limits).unwrap_err();
    assert!(shown.starts_with("its outputs were open") && shown.contains("here"), "{shown}");
    let ended = start("echo here; exit 3").wait_within([LONGEST, CLOSED]).unwrap();
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), "here\n"));
}
