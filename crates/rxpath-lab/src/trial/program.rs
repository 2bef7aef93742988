//! One workload process of a trial: orders in, JSON Lines out, and the truth about its end.
//!
//! The program is the same binary that users run by hand, steered over its standard input. A reader thread
//! takes its lines as they come; nothing here looks at the numbers inside them.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rxpath_core::Warning;
use rxpath_core::envelope::StreamLine;
use rxpath_load::control::ControlCommand;
use serde_json::Value;

use super::line::Line;
use super::peer::{Began, Peer};
use super::result::WorkloadResult;
use super::side::{SideMeasurements, SliceOfTimes};
use crate::error::LabError;
use crate::scenario::spec::Protocol;
use crate::shared::{LastWords, locked};
use crate::testbed::Started;

/// How often a wait looks at the stop flag.
const GLANCE: Duration = Duration::from_millis(20);
/// How long a program may take to end after the order to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// What a program reports, of which the interval lines are kept apart.
type Message = StreamLine<Value, Value, Value>;

/// A running workload.
pub struct Program {
    /// `serve` or `load`.
    pub name: &'static str,
    /// What it speaks.
    pub protocol: Protocol,
    child: Started,
    stdin: Option<Box<dyn Write + Send>>,
    said: Receiver<Message>,
    intervals: Arc<Mutex<Vec<Line>>>,
    last_words: Arc<LastWords>,
    readers: Vec<JoinHandle<()>>,
    /// Process id and worker thread ids, from `ready`.
    pub pid: u32,
    /// Worker thread ids in the order of `--cpu`.
    pub tids: Vec<i32>,
    /// When it began its load, once it said so.
    began: Option<Began>,
    /// Times behind its quantiles: name and HdrHistogram V2 in base64.
    histograms: Vec<(String, String)>,
    /// Times in slices, in the order of time.
    slices: Vec<SliceOfTimes>,
    /// Effective settings, as the program printed them.
    pub settings: Value,
    /// Warnings so far.
    pub warnings: Vec<Warning>,
    /// Whether it has the order to stop.
    pub is_stopping: bool,
}

impl Program {
    /// Takes over a child that was started with all three streams piped.
    pub fn adopt(
        name: &'static str,
        protocol: Protocol,
        mut child: Started,
    ) -> Result<Self, LabError> {
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(LabError::internal(format!("{name} was started without pipes")));
        };
        let (tell, said) = channel();
        let clock = child.clock;
        let intervals = Arc::new(Mutex::new(Vec::with_capacity(1024)));
        let last_words = Arc::<LastWords>::default();
        let readers = vec![
            std::thread::spawn({
                let intervals = Arc::clone(&intervals);
                let last_words = Arc::clone(&last_words);
                move || {
                    let keep = |it: &Value| match Line::read(protocol, name == "serve", it) {
                        Some(line) => {
                            let t_ns = clock.from_host_ns(line.t_ns);
                            locked(&intervals).push(Line { t_ns, ..line });
                        }
                        None => last_words.add(it.to_string()),
                    };
                    read_lines(stdout, keep, &last_words, |word| tell.send(word).is_ok());
                }
            }),
            std::thread::spawn({
                let last_words = Arc::clone(&last_words);
                move || {
                    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                        last_words.add(line);
                    }
                }
            }),
        ];
        let pid = child.process.id();
        Ok(Self {
            name,
            protocol,
            child,
            stdin: Some(stdin),
            said,
            intervals,
            last_words,
            readers,
            pid,
            tids: Vec::new(),
            began: None,
            histograms: Vec::new(),
            slices: Vec::new(),
            settings: Value::Null,
            warnings: Vec::new(),
            is_stopping: false,
        })
    }

    /// Waits for the result object.
    pub fn wait_result(&mut self, limit: Duration, stop: &AtomicBool) -> Result<Value, LabError> {
        self.wait("its result", limit, stop, |said| match said {
            Message::Result(value) => Some(value),
            _ => None,
        })
    }

    /// Waits for a message from which `wanted` takes something.
    fn wait<T>(
        &mut self,
        what: &'static str,
        limit: Duration,
        stop: &AtomicBool,
        wanted: impl Fn(Message) -> Option<T>,
    ) -> Result<T, LabError> {
        let deadline = Instant::now() + limit;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            match self.said.recv_timeout(GLANCE) {
                // Its standard output ended.
                Err(RecvTimeoutError::Disconnected) => return Err(self.died(what)),
                Ok(said) => {
                    self.note(&said);
                    if let Some(found) = wanted(said) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    return Err(LabError::Silent {
                        program: self.name,
                        what,
                        after_s: limit.as_secs_f64(),
                        last_words: self.last_words.text(),
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn note(&mut self, said: &Message) {
        match said {
            Message::Settings { settings, .. } => self.settings = settings.clone(),
            Message::Ready { pid, tids } => (self.pid, self.tids) = (*pid, tids.clone()),
            Message::Started { t_ns, late_ns } => {
                let at_ns = self.child.clock.from_host_ns(*t_ns);
                self.began = Some(Began { at_ns, late_ns: *late_ns });
            }
            Message::Warning(warning) => self.warnings.push(warning.clone()),
            Message::Histogram { name, hdr_v2_base64 } => {
                self.histograms.push((name.clone(), hdr_v2_base64.clone()));
            }
            Message::Slice { name, span_ns, hdr_v2_base64 } => {
                let span_ns = span_ns.map(|at| self.child.clock.from_host_ns(at));
                let (name, hdr_v2_base64) = (name.clone(), hdr_v2_base64.clone());
                self.slices.push(SliceOfTimes { name, span_ns, hdr_v2_base64 });
            }
            Message::Interval(_) | Message::Result(_) => {}
        }
    }

    /// Sends an order.
    pub fn order(&mut self, order: ControlCommand) -> Result<(), LabError> {
        let sent =
            self.stdin.as_mut().map(|pipe| writeln!(pipe, "{order}").and_then(|()| pipe.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(match error.downcast() {
                // Of the program nothing is known.
                Ok(lost @ LabError::Lost { .. }) => lost,
                _ => self.died("an order"),
            }),
            None => Err(self.died("an order")),
        }
    }

    /// Lets the program end by itself: closes its input and waits; kills it after `limit`.
    pub fn finish(mut self, limit: Duration) -> Result<Vec<Warning>, LabError> {
        drop(self.stdin.take());
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            match self.child.process.try_wait() {
                Ok(Some(_)) => break,
                // why: waits for the exit of a child with a deadline; there is no wait call with a time limit.
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Err(source) => return Err(LabError::io("wait for a workload", source)),
            }
        }
        while let Ok(said) = self.said.try_recv() {
            self.note(&said);
        }
        Ok(std::mem::take(&mut self.warnings))
    }

    fn died(&mut self, phase: &'static str) -> LabError {
        // The streams are at their end, so the exit is near; the short wait gets its status.
        let deadline = Instant::now() + Duration::from_millis(500);
        let (mut how, mut code) = ("it closed its output and went on".to_owned(), None);
        while Instant::now() < deadline {
            match self.child.process.try_wait() {
                Ok(Some(status)) => {
                    (how, code) = (describe(status), status.code());
                    // Its last output may still be in the pipe.
                    if self.readers.iter().all(JoinHandle::is_finished) {
                        break;
                    }
                }
                Ok(None) => {}
                // Its host was lost: nothing else is known of it.
                Err(error) => match error.downcast::<LabError>() {
                    Ok(lost) => return lost,
                    Err(error) => how = error.to_string(),
                },
            }
            // why: polls for the exit of a child, bounded by the deadline above.
            std::thread::sleep(Duration::from_millis(2));
        }
        LabError::Died { program: self.name, phase, how, code, last_words: self.last_words.text() }
    }
}

impl Peer for Program {
    fn wait_ready(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), LabError> {
        self.wait("set-up", limit, stop, |said| matches!(said, Message::Ready { .. }).then_some(()))
    }

    fn start(&mut self, at_ns: u64, until_ns: Option<u64>) -> Result<(), LabError> {
        let clock = self.child.clock;
        let until_ns = until_ns.map(|at| clock.to_host_ns(at));
        self.order(ControlCommand::Start { at_ns: clock.to_host_ns(at_ns), until_ns })
    }

    fn check_alive(&mut self, phase: &'static str) -> Result<(), LabError> {
        match self.child.process.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.died(phase)),
        }
    }

    fn begin_stop(&mut self) -> Result<(), LabError> {
        if !self.is_stopping {
            self.is_stopping = true;
            self.order(ControlCommand::Stop)?;
        }
        Ok(())
    }

    fn stop(&mut self, limit: Duration, stop: &AtomicBool) -> Result<SideMeasurements, LabError> {
        self.begin_stop()?;
        let printed = self.wait_result(limit, stop)?;
        let result = WorkloadResult::decode(self.protocol, self.name == "serve", printed)?;
        Ok(SideMeasurements {
            settings: self.settings.take(),
            histograms: std::mem::take(&mut self.histograms),
            slices: std::mem::take(&mut self.slices),
            ..self.left(result)
        })
    }

    fn close(mut self: Box<Self>) -> Result<Vec<Warning>, LabError> {
        self.order(ControlCommand::Close)?;
        self.finish(CLOSE_LIMIT)
    }

    fn ids(&self) -> (u32, &[i32]) {
        (self.pid, &self.tids)
    }

    fn began(&self) -> Vec<Vec<Began>> {
        vec![self.began.into_iter().collect()]
    }

    fn intervals(&self) -> Vec<Line> {
        locked(&self.intervals).clone()
    }
}

impl Drop for Program {
    /// A program never outlives its trial.
    fn drop(&mut self) {
        drop(self.stdin.take());
        if matches!(self.child.process.try_wait(), Ok(None)) {
            self.child.process.signal(Signal::SIGKILL);
        }
        self.child.process.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

fn read_lines(
    stdout: impl Read,
    keep: impl Fn(&Value),
    last_words: &LastWords,
    tell: impl Fn(Message) -> bool,
) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        match serde_json::from_str::<Message>(&line) {
            Ok(Message::Interval(interval)) => keep(&interval),
            Ok(said) => {
                if !tell(said) {
                    return;
                }
            }
            Err(_) => last_words.add(line),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".into(),
    }
}

#[cfg(test)]
mod tests;
