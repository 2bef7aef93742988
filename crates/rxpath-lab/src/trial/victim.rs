//! The victim of a trial: known work or a user's command, on one CPU over the measured window.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rxpath_bpf::steal::probe::{self, Ran, StealVictim};
use rxpath_bpf::steal::{TaskTaken, openssl};
use rxpath_core::{Nanos, Warning};
use rxpath_host::HostError;
use rxpath_host::lab::netns;
use rxpath_host::lab::owner::{Owner, Thing};
use rxpath_host::read::process::ProcessId;
use rxpath_record::stolen::VictimRecord;

use super::kept_output::{keep, said};
use super::unreaped::{signal_group, wait_for_end};
use crate::endpoint::strays;
use crate::error::LabError;
use crate::scenario::spec::Background;

/// In a command: the length of the window in whole seconds, rounded up. The window lasts until the command ends.
const SECONDS: &str = "{seconds}";
/// How long a command that knows the window's length may take beyond it.
const BEYOND: Duration = Duration::from_secs(1);
/// A command that ends so much before the window does was not there for all of it.
const EARLY: Duration = Duration::from_millis(100);

/// What becomes the victim.
#[derive(Clone, Debug)]
pub struct Victim {
    /// Its CPU.
    pub cpu: u32,
    /// The command; empty for known work.
    command: Vec<String>,
}

impl Victim {
    /// That of the scenario, if it has one.
    pub fn of(background: &Background) -> Option<Self> {
        background.victim.map(|cpu| Self { cpu, command: background.victim_command.clone() })
    }

    /// Starts it for a window of this length; a command on record of `owner`, where there is one.
    pub fn start(&self, measure: Nanos, owner: Option<&Owner>) -> Result<Running, LabError> {
        if !self.command.is_empty() {
            return Program::start(self, measure.as_duration(), owner).map(Running::Command);
        }
        let (cpu, time) = (self.cpu, measure.as_duration());
        Ok(Running::KnownWork(std::thread::spawn(move || probe::run(cpu, time))))
    }
}

/// A victim at work.
pub enum Running {
    /// In a thread of this program.
    KnownWork(JoinHandle<Result<Ran, HostError>>),
    /// In a process of its own.
    Command(Program),
}

/// A victim whose window is over; a command may still run until this is dropped.
pub enum FinishedVictim {
    /// With what its loop saw.
    KnownWork(Ran),
    /// With the time from its start to the window's end, or to its own.
    Command(Program, Duration),
}

impl Running {
    /// Its process, where it has one of its own.
    pub fn pid(&self) -> Option<i32> {
        match self {
            Self::KnownWork(_) => None,
            Self::Command(program) => Some(program.child.id() as i32),
        }
    }

    /// Waits for the end of its window.
    ///
    /// # Errors
    /// [`LabError::Died`] for a command that failed.
    pub fn finish(self) -> Result<FinishedVictim, LabError> {
        match self {
            Self::KnownWork(thread) => match thread.join() {
                Ok(ran) => Ok(FinishedVictim::KnownWork(ran?)),
                Err(_) => Err(LabError::internal("the victim's thread panicked")),
            },
            Self::Command(mut program) => {
                let wall = program.finish()?;
                Ok(FinishedVictim::Command(program, wall))
            }
        }
    }
}

impl FinishedVictim {
    /// Its record, and what to know of it.
    pub fn record(
        self,
        cpu: u32,
        tasks: &[TaskTaken],
        warnings: &mut Vec<Warning>,
    ) -> VictimRecord {
        match self {
            Self::KnownWork(ran) => {
                let row = StealVictim::built_in(&ran, tasks).row;
                VictimRecord { cpu, tid: ran.tid, row, ..VictimRecord::default() }
            }
            Self::Command(mut program, wall) => {
                let (command, tid) = (program.what.clone(), program.child.id());
                let mut row = StealVictim::command(&command, tid, wall, tasks).row;
                row.claims = openssl::claims(&program.output());
                warnings.extend(program.early(wall));
                VictimRecord { command, cpu, tid, row, ..VictimRecord::default() }
            }
        }
    }
}

/// A command as victim; dropping it ends it and all that it started in its group.
pub struct Program {
    what: String,
    child: Child,
    begun: Instant,
    /// How long it should be there.
    measure: Duration,
    /// It knows the length of the window, and is waited for.
    is_timed: bool,
    /// When it ended.
    ended: Receiver<Instant>,
    kept: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Program {
    fn start(of: &Victim, measure: Duration, owner: Option<&Owner>) -> Result<Self, LabError> {
        let seconds = measure.as_secs_f64().ceil();
        let words: Vec<String> =
            of.command.iter().map(|word| word.replace(SECONDS, &seconds.to_string())).collect();
        let mut command = Command::new("taskset");
        command.arg("-c").arg(of.cpu.to_string()).args(&words).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        strays::mark(&mut command);
        netns::die_with_parent(&mut command);
        let begun = Instant::now();
        let mut child =
            command.spawn().map_err(|source| LabError::Start { path: "taskset".into(), source })?;
        let kept = Arc::default();
        let mut readers = Vec::new();
        readers.extend(child.stdout.take().map(|pipe| keep(pipe, &kept)));
        readers.extend(child.stderr.take().map(|pipe| keep(pipe, &kept)));
        let is_timed = of.command.iter().any(|word| word.contains(SECONDS));
        let what = words.join(" ");
        let measure = if is_timed { Duration::from_secs_f64(seconds) } else { measure };
        let (tell, ended) = channel();
        let pid = child.id();
        std::thread::spawn(move || {
            wait_for_end(pid);
            // Nobody asks once the trial is over.
            let _ = tell.send(Instant::now());
        });
        let program = Self { what, child, begun, measure, is_timed, ended, kept, readers };
        if let (Some(owner), Ok(process)) = (owner, ProcessId::of(program.child.id() as i32)) {
            owner.record(&Thing::Process { process })?;
        }
        Ok(program)
    }

    /// Waits for a command that knows when to end, and returns the time for which it was there.
    fn finish(&mut self) -> Result<Duration, LabError> {
        let limit = if self.is_timed { self.measure + BEYOND } else { Duration::ZERO };
        let left = limit.saturating_sub(self.begun.elapsed());
        let Ok(ended) = self.ended.recv_timeout(left) else { return Ok(self.begun.elapsed()) };
        let wall = ended.duration_since(self.begun);
        let status = self.child.wait().map_err(|e| LabError::io("wait for the victim", e))?;
        if status.success() {
            return Ok(wall);
        }
        Err(LabError::Died {
            program: "the victim's command",
            phase: "measure",
            how: status.to_string(),
            code: status.code(),
            last_words: self.output(),
        })
    }

    /// All that it printed; ends it.
    fn output(&mut self) -> String {
        self.end();
        said(&self.kept)
    }

    fn end(&mut self) {
        signal_group(self.child.id(), Signal::SIGKILL);
        let _ = self.child.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }

    fn early(&self, wall: Duration) -> Option<Warning> {
        let missing = self.measure.saturating_sub(wall);
        (missing > EARLY).then(|| {
            let text = format!(
                "the victim's command ended {:.2} s before the window did: its times are of {:.2} s",
                missing.as_secs_f64(),
                wall.as_secs_f64()
            );
            Warning::new("victim-ended", text)
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::super::unreaped::{Life, life};
    use super::*;

    /// Longer than any command here takes on a busy machine.
    const MINUTE: Nanos = Nanos::from_secs(60);

    fn victim(words: &[&str], measure: Nanos) -> Running {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        Victim { cpu: 0, command }.start(measure, None).unwrap()
    }

    #[test]
    fn a_command_that_knows_the_window_is_waited_for_and_its_output_is_read() {
        let line = "Doing x ops for {seconds}s on 16 size blocks: 7 x ops in 0.50s";
        let script = format!("sleep 0.3; echo '{line}'");
        let ended = victim(&["sh", "-c", &script], MINUTE).finish().unwrap();
        let mut warnings = Vec::new();
        let record = ended.record(0, &[], &mut warnings);
        assert_eq!((record.row.claims[0].asked_s, record.row.claims[0].work_count), (60.0, 7));
        assert!(record.row.asked_s > 0.29 && record.command.contains("for 60s"), "{record:?}");
        assert_eq!(warnings[0].code, "victim-ended", "it ended before the minute was over");
    }

    #[test]
    fn a_command_that_does_not_know_the_window_ends_with_it() {
        let Running::Command(program) = victim(&["sleep", "1000"], MINUTE) else { unreachable!() };
        let pid = program.child.id();
        let ended = Running::Command(program).finish().unwrap();
        assert_eq!(life(pid), Life::Running);
        drop(ended);
        assert_eq!(life(pid), Life::Reaped);
    }

    #[test]
    fn a_command_that_ends_early_was_there_until_its_end() {
        let ends_before_its_window = || {
            let begun = Instant::now();
            let running = victim(&["true"], MINUTE);
            wait_for_end(running.pid().unwrap() as u32);
            // why: the window goes on after the end of the command.
            std::thread::sleep(Duration::from_millis(300));
            let mut warnings = Vec::new();
            let record = running.finish().unwrap().record(0, &[], &mut warnings);
            assert_eq!(warnings[0].code, "victim-ended");
            record.row.asked_s + 0.1 < begun.elapsed().as_secs_f64()
        };
        // A busy machine may note the end late.
        assert!((0..20).any(|_| ends_before_its_window()));
    }

    #[test]
    fn a_command_that_fails_says_why() {
        let running = victim(&["sh", "-c", "echo no such digest; exit 3; {seconds}"], MINUTE);
        let error = running.finish().err().unwrap().to_string();
        assert!(error.contains("victim") && error.contains("no such digest"), "{error}");
    }
}
