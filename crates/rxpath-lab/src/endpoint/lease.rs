//! The lease of a connection: it may be cut without an end of the input, so an endpoint that hears nothing of its coordinator
//! for so long ends itself, and a coordinator that hears nothing of an endpoint takes its host for lost.
//!
//! A load may starve the connection. So the lease of a trial's load begins with the latest end of that load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::wire::{LEASE_MS, TICK_MS};
use crate::clock::monotonic_ns;

/// When the other end was heard last, and until when its silence says nothing.
#[derive(Debug, Default)]
pub struct Lease {
    heard_ns: AtomicU64,
    /// Latest end of the load that runs; 0 without one.
    load_until_ns: AtomicU64,
    is_paused: AtomicBool,
}

impl Lease {
    /// Begins now, and ends this process when it is over.
    pub fn begin() -> Arc<Self> {
        let lease = Arc::new(Self::since(monotonic_ns()));
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

    /// One that begins now; nothing watches it.
    pub fn since(now_ns: u64) -> Self {
        Self { heard_ns: AtomicU64::new(now_ns), ..Self::default() }
    }

    /// The other end was heard.
    pub fn renew(&self, now_ns: u64) {
        self.heard_ns.store(now_ns, Ordering::Release);
    }

    /// A load runs until this instant at the latest; none: it is over.
    pub fn expect_load(&self, until_ns: Option<u64>) {
        self.load_until_ns.store(until_ns.unwrap_or(0), Ordering::Release);
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

    /// Time since the other end was heard. **Unit** ns.
    pub fn silent_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.heard_ns.load(Ordering::Acquire))
    }

    /// When it ends if nothing is heard any more. **Unit** ns.
    pub fn end_ns(&self) -> u64 {
        let load_until_ns = self.load_until_ns.load(Ordering::Acquire);
        let from_ns = self.heard_ns.load(Ordering::Acquire).max(load_until_ns);
        from_ns.saturating_add(LEASE_MS * 1_000_000)
    }

    /// Whether it has ended.
    pub fn is_over(&self, now_ns: u64) -> bool {
        !self.is_paused.load(Ordering::Acquire) && now_ns > self.end_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_NS: u64 = LEASE_MS * 1_000_000;

    #[test]
    fn a_lease_goes_on_for_a_load_that_may_starve_the_connection() {
        let second = 1_000_000_000;
        let lease = Lease::since(0);
        lease.renew(second);
        // A load of a minute, and nothing is heard from its begin on.
        lease.expect_load(Some(61 * second));
        assert_eq!(lease.end_ns(), 61 * second + LEASE_NS);
        assert!(!lease.is_over(lease.end_ns()) && lease.is_over(lease.end_ns() + 1));
        assert_eq!(lease.silent_ns(31 * second), 30 * second);
        // What is heard after its end counts from then on.
        lease.renew(70 * second);
        assert_eq!(lease.end_ns(), 70 * second + LEASE_NS);
        // It is over early.
        lease.expect_load(Some(200 * second));
        lease.expect_load(None);
        assert_eq!(lease.end_ns(), 70 * second + LEASE_NS);
    }

    #[test]
    fn a_lease_is_not_over_while_a_step_runs_and_begins_again_behind_it() {
        let lease = Lease::since(0);
        let late_ns = LEASE_NS + 1;
        assert!(!lease.is_over(late_ns - 1) && lease.is_over(late_ns));
        let before_ns = monotonic_ns();
        lease.pause(|| assert!(!lease.is_over(before_ns + late_ns)));
        assert!(!lease.is_over(before_ns + late_ns - 1), "it begins again behind the step");
        assert!(lease.is_over(monotonic_ns() + late_ns));
        lease.renew(before_ns + 2 * late_ns);
        assert!(!lease.is_over(before_ns + 3 * late_ns - 1));
    }
}
