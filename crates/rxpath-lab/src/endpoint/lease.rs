//! The lease of an endpoint: a connection may be cut without an end of the input, so an endpoint that hears nothing of its
//! coordinator for so long ends itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::wire::{LEASE_MS, TICK_MS};
use crate::clock::monotonic_ns;

/// When the coordinator was heard last.
#[derive(Debug)]
pub struct Lease {
    heard_ns: AtomicU64,
    is_paused: AtomicBool,
}

impl Lease {
    /// Begins now, and ends this process when it is over.
    pub fn begin() -> Arc<Self> {
        let lease = Arc::new(Self::from(monotonic_ns()));
        let watched = Arc::clone(&lease);
        std::thread::spawn(move || {
            loop {
                // why: looks at the lease once a second.
                std::thread::sleep(Duration::from_millis(TICK_MS));
                if watched.is_over(monotonic_ns()) {
                    // The main thread may wait for a pipe that nobody reads. Programs die with their parent.
                    let _ = kill(Pid::this(), Signal::SIGKILL);
                }
            }
        });
        lease
    }

    fn from(now_ns: u64) -> Self {
        Self { heard_ns: AtomicU64::new(now_ns), is_paused: AtomicBool::new(false) }
    }

    /// The coordinator was heard.
    pub fn renew(&self, now_ns: u64) {
        self.heard_ns.store(now_ns, Ordering::Release);
    }

    /// Does something that may take longer than the lease and ends by itself. The main thread reads no signs of life
    /// meanwhile, so the lease begins again behind it.
    pub fn pause<T>(&self, step: impl FnOnce() -> T) -> T {
        self.is_paused.store(true, Ordering::Release);
        let done = step();
        self.renew(monotonic_ns());
        self.is_paused.store(false, Ordering::Release);
        done
    }

    fn is_over(&self, now_ns: u64) -> bool {
        let is_paused = self.is_paused.load(Ordering::Acquire);
        let silent_ns = now_ns.saturating_sub(self.heard_ns.load(Ordering::Acquire));
        !is_paused && silent_ns > LEASE_MS * 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_not_over_while_a_step_runs_and_begins_again_behind_it() {
        let lease = Lease::from(0);
        let late_ns = LEASE_MS * 1_000_000 + 1;
        assert!(!lease.is_over(late_ns - 1) && lease.is_over(late_ns));
        let before_ns = monotonic_ns();
        lease.pause(|| assert!(!lease.is_over(before_ns + late_ns)));
        assert!(!lease.is_over(before_ns + late_ns - 1), "it begins again behind the step");
        assert!(lease.is_over(monotonic_ns() + late_ns));
        lease.renew(before_ns + 2 * late_ns);
        assert!(!lease.is_over(before_ns + 3 * late_ns - 1));
    }
}
