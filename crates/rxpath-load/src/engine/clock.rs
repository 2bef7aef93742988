//! Clocks, read through the vDSO.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

pub use rxpath_host::read::clock::{monotonic_ns as now_ns, realtime_ns};

/// Sleeps until this instant of `CLOCK_MONOTONIC`; returns early when a signal comes.
pub fn sleep_until(t_ns: u64) {
    let time = TimeSpec::from_duration(Duration::from_nanos(t_ns));
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &time);
}

/// The variable that names the host of an experiment.
pub const HOST: &str = "RXPATH_HOST";
/// The variable with the number of a sender among those of an experiment, from 0.
pub const SENDER: &str = "RXPATH_SENDER";

/// Sixteen bits that two processes share when their `CLOCK_MONOTONIC` is the same clock, and hardly ever otherwise.
///
/// A hash of the boot id, of the time namespace, and of what an experiment between hosts gives each of its hosts: clones
/// of a virtual machine share the other two.
/// **Source** `/proc/sys/kernel/random/boot_id`, `/proc/self/ns/time`, the environment's [`HOST`].
/// **Caveat** two hosts share it by chance once in 65,536; zero means that no identity could be read.
pub fn identity() -> u16 {
    let Ok(boot) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return 0;
    };
    let time = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    let host = std::env::var(HOST).unwrap_or_default();
    let text = format!("{boot}{}{host}", time.display());
    let hash = fnv(text.as_bytes());
    ((hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) as u16).max(1)
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_stable() {
        assert_eq!(identity(), identity());
        assert_ne!(identity(), 0);
    }

    #[test]
    fn sleeping_reaches_its_instant() {
        let until = now_ns() + 2_000_000;
        while now_ns() < until {
            sleep_until(until);
        }
        assert!(now_ns() >= until);
    }
}
