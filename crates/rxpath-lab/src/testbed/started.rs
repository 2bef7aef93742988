//! A program that runs on a side of a testbed: its streams, its end, and the clock of its host.

use std::io::{self, Read, Write};
use std::ops::DerefMut;
use std::process::{Child, ExitStatus};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::clock::HostClock;

/// A started program; it dies with this process.
pub struct Started {
    /// Its standard input, until it is taken.
    pub stdin: Option<Box<dyn Write + Send>>,
    /// Its standard output, until it is taken.
    pub stdout: Option<Box<dyn Read + Send>>,
    /// Its standard error, until it is taken.
    pub stderr: Option<Box<dyn Read + Send>>,
    /// The process.
    pub process: Box<dyn Process>,
    /// The clock of its host.
    pub clock: HostClock,
}

/// A process, wherever it runs.
pub trait Process: Send {
    /// Its number on its host.
    fn id(&self) -> u32;

    /// How it ended; `None` while it runs.
    ///
    /// # Errors
    /// Those of `waitpid(2)`.
    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>>;

    /// Asks it to end, by SIGINT.
    fn interrupt(&mut self);

    /// Ends it by SIGKILL. An error means that it had ended.
    fn kill(&mut self);

    /// Waits until it has ended.
    fn wait(&mut self);
}

impl Started {
    /// A child of this process with its pipes.
    pub fn local(mut child: impl DerefMut<Target = Child> + Send + 'static) -> Self {
        Self {
            stdin: child.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn Write + Send>),
            stdout: child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            stderr: child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            process: Box::new(Local(child)),
            clock: HostClock::default(),
        }
    }
}

struct Local<C>(C);

impl<C: DerefMut<Target = Child> + Send> Process for Local<C> {
    fn id(&self) -> u32 {
        self.0.id()
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    fn interrupt(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT);
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
    }

    fn wait(&mut self) {
        let _ = self.0.wait();
    }
}
