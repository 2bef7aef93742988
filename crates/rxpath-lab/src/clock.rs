//! The lab's one clock: `CLOCK_MONOTONIC`, the same in every namespace of a machine.

use nix::time::{ClockId, clock_gettime};

/// Now. **Unit** ns. **Source** `clock_gettime(2)`.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Unix time minus the monotonic clock, in ns: what turns an event's `t_ns` into a date.
pub fn epoch_offset_ns() -> i64 {
    read(ClockId::CLOCK_REALTIME) as i64 - monotonic_ns() as i64
}

fn read(clock: ClockId) -> u64 {
    // The two clocks exist on every Linux; zero would show in every result.
    clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}
