//! A third-party program as one side of a trial: started at the order, its output kept and read at the end.
//!
//! It knows nothing of our orders. What it delivered or sent is taken from the kernel's counters; what it says
//! about itself is kept apart from that.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::monotonic_ns;
use nix::sys::signal::Signal;
use rxpath_core::Warning;

use super::kept_output::{keep, said};
use super::line::Line;
use super::peer::{Began, Peer};
use super::phase;
use super::result::{ExternalResult, WorkloadResult};
use super::side::SideMeasurements;
use crate::error::LabError;
use crate::output;
use crate::scenario::spec::Parser;
use crate::testbed::Started;

/// Time between two signals when a program does not end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Starts the program: at once, or at an instant of the testbed's clock.
pub type Starter<'a> = Box<dyn FnMut(Option<u64>) -> Result<Started, LabError> + 'a>;

/// How a server is known to be ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Its output contains this text.
    Line(String),
    /// A TCP or UDP socket of its network namespace is bound to this port. Either will do: a server of datagrams
    /// such as `iperf3 -s` binds its control socket first, and the other when its client comes.
    Bound(u16),
}

/// A foreign program.
pub struct External<'a> {
    name: &'static str,
    starter: Starter<'a>,
    /// Of a server, which starts when it is asked to be ready; a generator starts at the order.
    ready: Option<Ready>,
    parser: Parser,
    /// After that time it ends by itself; the others are asked to.
    length: Option<Duration>,
    running: Option<Running>,
}

struct Running {
    child: Started,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
    /// On the testbed's clock.
    began_ns: u64,
}

impl<'a> External<'a> {
    /// A server: started when it is asked to be ready.
    pub fn server(ready: Ready, parser: Parser, starter: Starter<'a>) -> Self {
        Self { name: "serve", starter, ready: Some(ready), parser, length: None, running: None }
    }

    /// A generator: started at the instant of the start. One with a length has a duration and ends by itself.
    pub fn generator(parser: Parser, length: Option<Duration>, starter: Starter<'a>) -> Self {
        Self { name: "load", starter, ready: None, parser, length, running: None }
    }

    fn launch(&mut self, at_ns: Option<u64>) -> Result<(), LabError> {
        let mut child = (self.starter)(at_ns)?;
        let began_ns = child.began.map_or_else(monotonic_ns, |began| began.at_ns);
        drop(child.stdin.take());
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let mut readers = Vec::new();
        readers.extend(child.stdout.take().map(|pipe| keep(pipe, &stdout)));
        readers.extend(child.stderr.take().map(|pipe| keep(pipe, &stderr)));
        self.running = Some(Running { child, stdout, stderr, readers, began_ns });
        Ok(())
    }

    fn text(&self) -> String {
        self.running.as_ref().map_or(String::new(), |running| {
            format!("{}{}", said(&running.stdout), said(&running.stderr))
        })
    }

    fn has_bound(&self, port: u16) -> bool {
        self.running.as_ref().is_some_and(|running| running.child.process.has_bound(port))
    }

    fn ended(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.child.process.has_ended())
    }

    /// Signals the program and all that it forked: it leads a process group of its own.
    fn signal(&mut self, signal: Signal) {
        if let Some(running) = &mut self.running {
            running.child.process.signal(signal);
        }
    }

    fn wait_end(&self, limit: Duration, stop: &AtomicBool) -> Result<bool, LabError> {
        phase::within(limit, stop, || Ok(self.ended()))
    }
}

impl Peer for External<'_> {
    fn wait_ready(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), LabError> {
        let Some(ready) = self.ready.clone() else { return Ok(()) };
        self.launch(None)?;
        let mut is_ready = false;
        phase::within(limit, stop, || {
            is_ready = match &ready {
                Ready::Line(wanted) => self.text().contains(wanted),
                Ready::Bound(port) => self.has_bound(*port),
            };
            Ok(is_ready || self.ended())
        })?;
        if is_ready {
            return Ok(());
        }
        self.check_alive("set-up")?;
        Err(LabError::Silent {
            program: self.name,
            what: match ready {
                Ready::Bound(_) => "a socket on its port (serve.ready names a line to wait for)",
                Ready::Line(_) => "its ready line",
            },
            after_s: limit.as_secs_f64(),
            last_words: self.text(),
        })
    }

    fn start(&mut self, at_ns: u64, _: Option<u64>) -> Result<(), LabError> {
        if self.ready.is_some() {
            return Ok(());
        }
        self.launch(Some(at_ns))
    }

    fn check_alive(&mut self, phase: &'static str) -> Result<(), LabError> {
        if !self.ended() || self.ended_ns().is_some() {
            return Ok(());
        }
        // What it forked goes with it: afterwards its status is taken.
        self.signal(Signal::SIGKILL);
        let how = self
            .running
            .as_mut()
            .and_then(|running| running.child.process.try_wait().ok().flatten());
        Err(LabError::Died {
            program: self.name,
            phase,
            code: how.and_then(|status| status.code()),
            how: how.map_or("it was not started".into(), |status| status.to_string()),
            last_words: self.text(),
        })
    }

    fn stop(&mut self, limit: Duration, stop: &AtomicBool) -> Result<SideMeasurements, LabError> {
        // A generator with a duration of its own ends by itself and prints its summary; the others are asked to.
        let patience = if self.length.is_some() { limit } else { Duration::ZERO };
        if !self.wait_end(patience, stop)? {
            for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
                self.signal(signal);
                if self.wait_end(PATIENCE, stop)? {
                    break;
                }
            }
        }
        // Forked processes outlive their parent and hold its pipes: the readers below would wait for them.
        self.signal(Signal::SIGKILL);
        let Some(running) = self.running.as_mut() else {
            return Ok(self.left(WorkloadResult::None));
        };
        for reader in running.readers.drain(..) {
            let _ = reader.join();
        }
        let (stdout, stderr) = (said(&running.stdout), said(&running.stderr));
        let (metrics, problem) = match output::read(&self.parser, &stdout) {
            Ok(metrics) => (Some(metrics), None),
            Err(problem) => (None, Some(problem)),
        };
        Ok(self.left(WorkloadResult::External(ExternalResult { metrics, problem, stdout, stderr })))
    }

    fn close(self: Box<Self>) -> Result<Vec<Warning>, LabError> {
        Ok(Vec::new())
    }

    fn began(&self) -> Vec<Vec<Began>> {
        vec![self.running.iter().filter_map(|running| running.child.began).collect()]
    }

    fn ended_ns(&self) -> Option<u64> {
        let (running, length) = self.running.as_ref().zip(self.length)?;
        let until_ns = running.began_ns + length.as_nanos() as u64;
        (self.ended() && until_ns <= monotonic_ns()).then_some(until_ns)
    }

    fn ids(&self) -> (u32, &[i32]) {
        (self.running.as_ref().map_or(0, |running| running.child.process.id()), &[])
    }

    fn intervals(&self) -> Vec<Line> {
        Vec::new()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.process.signal(Signal::SIGKILL);
        self.child.process.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::testbed::foreign::piped;

    /// A generator that has ended, and was to end after this time.
    fn ended(length: Option<Duration>) -> External<'static> {
        let starter = |_: Option<u64>| {
            let mut command = Command::new("true");
            piped(&mut command);
            let child = command.spawn().map_err(|error| LabError::io("start it", error))?;
            Ok(Started::local(Box::new(child)))
        };
        let mut load = External::generator(Parser::default(), length, Box::new(starter));
        load.start(0, None).unwrap();
        assert!(load.wait_end(Duration::from_secs(60), &AtomicBool::new(false)).unwrap());
        load
    }

    #[test]
    fn a_generator_that_ended_at_its_time_did_not_die_and_one_that_ended_before_did() {
        let mut load = ended(Some(Duration::ZERO));
        assert_eq!(load.ended_ns(), load.running.as_ref().map(|running| running.began_ns));
        load.check_alive("measure").unwrap();
        for length in [None, Some(Duration::from_secs(3_600))] {
            let mut load = ended(length);
            assert_eq!(load.ended_ns(), None);
            let error = load.check_alive("measure").unwrap_err().to_string();
            assert!(error.starts_with("load died during measure"), "{error}");
        }
    }
}
