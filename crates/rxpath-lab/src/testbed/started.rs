//! A program that runs on a side of a testbed: its streams, its end, and the clock of its host.

use std::io::{self, Read, Write};
use std::ops::DerefMut;
use std::process::{Child, ExitStatus};

use nix::sys::signal::Signal;
use rxpath_host::Root;
use rxpath_host::read::procfs::listeners;

use crate::clock::HostClock;
use crate::trial::peer::Began;
use crate::trial::unreaped::{Life, life, signal_group};

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
    /// When its host started it, where that was ordered for an instant.
    pub began: Option<Began>,
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

    /// Whether it has ended; its status stays where it is.
    fn has_ended(&self) -> bool;

    /// Sends a signal to it and to what it started in its group. An error means that it had ended.
    fn signal(&mut self, signal: Signal);

    /// Whether a TCP or UDP socket of its network namespace is bound to this port.
    fn has_bound(&self, port: u16) -> bool;

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
            began: None,
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

    fn has_ended(&self) -> bool {
        life(self.0.id()) != Life::Running
    }

    fn signal(&mut self, signal: Signal) {
        signal_group(self.0.id(), signal);
        if signal == Signal::SIGKILL {
            // One that leads no group.
            let _ = self.0.kill();
        }
    }

    fn has_bound(&self, port: u16) -> bool {
        is_bound(self.0.id(), port)
    }

    fn wait(&mut self) {
        let _ = self.0.wait();
    }
}

/// Whether a socket is bound to `port` in the network namespace of `pid`.
pub fn is_bound(pid: u32, port: u16) -> bool {
    let root = Root::host();
    ["tcp", "tcp6", "udp", "udp6"]
        .iter()
        .filter_map(|file| root.text(&format!("/proc/{pid}/net/{file}")).ok())
        .any(|table| listeners::has_port(&table, port))
}
