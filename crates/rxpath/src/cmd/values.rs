//! Values of options that the workloads share, and how they are shown.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rxpath_core::{Count, CpuList, Nanos};
use rxpath_load::quantiles::Quantiles;

use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// A plain number of ns or a time with its unit.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    if let Ok(Count(ns)) = text.parse() {
        return Ok(ns);
    }
    text.parse().map(|Nanos(ns)| ns).map_err(|error| error.to_string())
}

/// Threads and CPUs of `--threads` and `--cpu`, which must agree.
pub fn threads(threads: Option<usize>, cpu: Option<CpuList>) -> Result<(usize, Vec<u32>), Failure> {
    let cpus = cpu.unwrap_or_default().0;
    match (threads, cpus.len()) {
        (Some(threads), listed) if listed > 0 && listed != threads => Err(Failure::usage(format!(
            "--threads {threads} differs from the {listed} entries of --cpu"
        ))
        .hint("--cpu alone gives one thread per entry")),
        (Some(threads), _) => Ok((threads, cpus)),
        (None, listed) => Ok((listed.max(1), cpus)),
    }
}

/// `p50 1.0 us, p99 2.0 us, max 3.0 us`.
pub fn quantiles(q: &Quantiles) -> String {
    format!("p50 {:.1} us, p99 {:.1} us, max {:.1} us", q.p50, q.p99, q.max)
}

/// `2, on CPUs 0,1`.
pub fn placed(threads: usize, cpus: &[u32]) -> String {
    if cpus.is_empty() {
        return format!("{threads}, not pinned");
    }
    format!("{threads}, on CPU {}", CpuList(cpus.to_vec()))
}

/// Waits for a condition or a signal, whichever is first.
pub struct Wait<'a> {
    interrupt: &'a Interrupt,
    begun: Instant,
}

impl<'a> Wait<'a> {
    /// From now on.
    pub fn new(interrupt: &'a Interrupt) -> Self {
        Self { interrupt, begun: Instant::now() }
    }

    /// Asks `over` every 10 ms, with the time that passed, until it is true or a signal came.
    pub fn until(&mut self, mut over: impl FnMut(Duration) -> bool) -> io::Result<()> {
        while !over(self.begun.elapsed()) && self.signal().is_none() {
            let mut signal = [PollFd::new(self.interrupt.as_fd(), PollFlags::POLLIN)];
            match poll(&mut signal, PollTimeout::from(10u8)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.interrupt.caught()
    }
}
