//! The cheapest clock of the machine, for loops that look for gaps in their own time.

use std::time::{Duration, Instant};

pub use rxpath_host::read::clock::monotonic_ns;

/// Ticks of the counter now: the TSC on x86-64 (about 10 ns to read), elsewhere CLOCK_MONOTONIC in ns.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: RDTSC is part of x86-64 and reads no memory.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        monotonic_ns()
    }
}

/// How long a tick is, measured between two moments.
#[derive(Clone, Copy, Debug)]
pub struct TickScale {
    ticks: u64,
    at: Instant,
}

impl TickScale {
    /// From here on.
    pub fn begin() -> Self {
        Self { ticks: ticks(), at: Instant::now() }
    }

    /// Nanoseconds of a tick, by what passed since [`TickScale::begin`].
    pub fn ns_per_tick(&self) -> f64 {
        let ns = self.at.elapsed().as_nanos() as f64;
        ns / ticks().wrapping_sub(self.ticks).max(1) as f64
    }

    /// Ticks of this time, measured over some milliseconds.
    pub fn ticks_of(time: Duration) -> u64 {
        let scale = Self::begin();
        while scale.at.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        (time.as_nanos() as f64 / scale.ns_per_tick()) as u64
    }
}
