//! The lab's one clock: `CLOCK_MONOTONIC`, the same in every namespace of a machine.

use std::time::Duration;

pub use rxpath_host::read::clock::monotonic_ns;
use rxpath_host::read::clock::realtime_ns;

/// Sleeps until an instant of this host's clock.
pub fn sleep_until(at_ns: u64) {
    let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
    // why: the common start instant of both sides.
    std::thread::sleep(left);
}

/// `CLOCK_MONOTONIC` of a host next to that of this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostClock {
    /// What the host reads less what this one reads at the same instant. **Unit** ns.
    pub ahead_ns: i64,
}

impl HostClock {
    /// An instant of this clock as the host reads it.
    pub fn to_host_ns(self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.ahead_ns)
    }

    /// An instant of the host's clock on this one.
    pub fn from_host_ns(self, host_ns: u64) -> u64 {
        host_ns.saturating_add_signed(self.ahead_ns.saturating_neg())
    }
}

/// Unix time minus the monotonic clock, in ns: what turns an event's `t_ns` into a date.
pub fn epoch_offset_ns() -> i64 {
    realtime_ns() as i64 - monotonic_ns() as i64
}
