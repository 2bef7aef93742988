//! A program that runs on another host, as the coordinator sees it.

use std::io::{self, PipeWriter, Write};
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{Client, END_LIMIT, PROMPT};
use crate::clock::{HostClock, monotonic_ns};
use crate::endpoint::programs::{Launched, ProgramAsk};
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;
use crate::shared::locked;
use crate::testbed::foreign::ForeignProgram;
use crate::testbed::started::{Process, Started};
use crate::trial::peer::Began;

/// A program that runs there.
pub(super) struct Remote {
    pub stdout: PipeWriter,
    pub stderr: PipeWriter,
    pub end: Arc<End>,
}

/// The end of a program, once it came.
#[derive(Default)]
pub(super) struct End {
    ending: Mutex<Option<Ending>>,
    changed: Condvar,
}

/// How a program ended.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    /// With this wait status.
    Status(ExitStatus),
    /// Unknown: its host was lost.
    Lost,
}

impl Client {
    /// Starts a workload of this program there.
    pub fn launch(
        self: &Arc<Self>,
        words: Vec<String>,
        (host, sender): (String, u16),
        clock: HostClock,
    ) -> Result<Started, LabError> {
        self.started(ProgramAsk::Launch { words, host, sender }, None, clock)
    }

    /// Starts a third-party program there, at once or at an instant of the clock here.
    pub fn launch_foreign(
        self: &Arc<Self>,
        foreign: ForeignProgram,
        at_ns: Option<u64>,
        clock: HostClock,
    ) -> Result<Started, LabError> {
        let at_ns = at_ns.map(|at| clock.to_host_ns(at));
        self.started(ProgramAsk::LaunchForeign { foreign, at_ns }, at_ns, clock)
    }

    /// `at_ns` is an instant of the clock there.
    fn started(
        self: &Arc<Self>,
        what: ProgramAsk,
        at_ns: Option<u64>,
        clock: HostClock,
    ) -> Result<Started, LabError> {
        let pipe = || io::pipe().map_err(|error| LabError::io("make a pipe", error));
        let ((from_stdout, stdout), (from_stderr, stderr)) = (pipe()?, pipe()?);
        let number = self.next_program.fetch_add(1, Ordering::Relaxed);
        let end = Arc::<End>::default();
        // Before the program can say anything.
        locked(&self.shared.programs)
            .insert(number, Remote { stdout, stderr, end: Arc::clone(&end) });
        // The answer comes after that instant.
        let ahead_ns = at_ns.map_or(0, |at| clock.from_host_ns(at).saturating_sub(monotonic_ns()));
        let limit = PROMPT + Duration::from_nanos(ahead_ns);
        let launched = self.ask::<Launched>(of(number, what), limit).inspect_err(|_| {
            locked(&self.shared.programs).remove(&number);
        })?;
        let began = at_ns.map(|at| Began {
            at_ns: clock.from_host_ns(launched.at_ns),
            late_ns: launched.at_ns.saturating_sub(at),
        });
        let program = Program { client: Arc::clone(self), number, pid: launched.pid, end };
        let orders = Orders { client: Arc::clone(self), program: number, line: Vec::new() };
        Ok(Started {
            stdin: Some(Box::new(orders)),
            stdout: Some(Box::new(from_stdout)),
            stderr: Some(Box::new(from_stderr)),
            process: Box::new(program),
            clock,
            began,
        })
    }
}

fn of(program: u32, what: ProgramAsk) -> HostAsk {
    HostAsk::Program { program, what }
}

impl End {
    pub fn set(&self, ending: Ending) {
        locked(&self.ending).get_or_insert(ending);
        self.changed.notify_all();
    }
}

/// The standard input of a program there, line by line.
struct Orders {
    client: Arc<Client>,
    program: u32,
    line: Vec<u8>,
}

impl Write for Orders {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let ask = of(self.program, ProgramAsk::Order { line });
            self.client.ask::<Value>(ask, PROMPT).map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        let _ = self.client.begin(of(self.program, ProgramAsk::HangUp));
    }
}

/// A program there.
struct Program {
    client: Arc<Client>,
    number: u32,
    pid: u32,
    end: Arc<End>,
}

impl Process for Program {
    fn id(&self) -> u32 {
        self.pid
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match *locked(&self.end.ending) {
            None => Ok(None),
            Some(Ending::Status(status)) => Ok(Some(status)),
            Some(Ending::Lost) => Err(io::Error::other(self.client.shared.lost_error())),
        }
    }

    fn has_ended(&self) -> bool {
        locked(&self.end.ending).is_some()
    }

    fn signal(&mut self, signal: Signal) {
        let what = ProgramAsk::Signal { number: signal as i32 };
        let _ = self.client.begin(of(self.number, what));
    }

    fn has_bound(&self, port: u16) -> bool {
        // The next request says that a host is lost.
        self.client.ask(of(self.number, ProgramAsk::HasBound { port }), PROMPT).unwrap_or(false)
    }

    fn wait(&mut self) {
        let ended = locked(&self.end.ending);
        // A host that does not report the end is lost, and what ran there ends by its own lease.
        let _ = self.end.changed.wait_timeout_while(ended, END_LIMIT, |ending| ending.is_none());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::endpoint::wire::MARKER;

    #[test]
    fn a_launch_has_its_instant_on_the_host_s_clock_and_says_how_late_it_was() {
        // One that is not ordered for that instant gets no answer.
        let script = format!(
            r#"echo '{MARKER}'; while IFS= read -r asked; do
                case $asked in *'"at_ns":1005'*) ;; *) continue ;; esac
                id=${{asked#*:}}; id=${{id%%,*}}
                echo "{{\"answer\":{{\"id\":$id,\"ok\":{{\"pid\":7,\"at_ns\":31001005}}}}}}"
            done"#
        );
        let mut transport = Command::new("sh");
        transport.args(["-c", &script]);
        let client = Arc::new(Client::start("gen1", transport, PROMPT).unwrap().unwrap());
        let clock = HostClock { ahead_ns: 5 };
        let launched = client.launch_foreign(ForeignProgram::default(), Some(1_000), clock);
        let launched = launched.unwrap();
        let began = Began { at_ns: 31_001_000, late_ns: 31_000_000 };
        assert_eq!((launched.process.id(), launched.began), (7, Some(began)));
    }
}
