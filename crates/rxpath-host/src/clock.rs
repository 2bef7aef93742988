//! The kernel's clocks, read through the vDSO.

use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`: the clock of `bpf_ktime_get_ns`, the same in every namespace but a time namespace. **Unit** ns.
/// **Cost** about 25 ns, no system call where the vDSO has the clock source.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME`, the clock of the kernel's receive stamps. **Unit** ns.
#[inline]
pub fn realtime_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// `CLOCK_MONOTONIC` and `CLOCK_MONOTONIC_RAW` at one instant: NTP slews the first one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// **Unit** ns.
    pub monotonic_ns: u64,
    /// **Unit** ns.
    pub raw_ns: u64,
    /// They were read so close to each other. **Unit** ns.
    pub within_ns: u64,
}

/// Readings of which the quickest is taken: an interrupt between the two clocks is in few of them.
const READINGS: u32 = 8;

impl Pace {
    /// Reads both.
    pub fn now() -> Self {
        let reading = |_| {
            let before = monotonic_ns();
            let raw_ns = read(ClockId::CLOCK_MONOTONIC_RAW);
            let after = monotonic_ns();
            let within_ns = after - before;
            Self { monotonic_ns: before.midpoint(after), raw_ns, within_ns }
        };
        let first = reading(0);
        (1..READINGS)
            .map(reading)
            .fold(first, |best, next| if next.within_ns < best.within_ns { next } else { best })
    }

    /// How much faster `CLOCK_MONOTONIC` ran than the hardware's clock since `before`, at least, in parts per million: the
    /// correction of a wrong frequency, at most 500 (`MAXFREQ`, include/linux/timex.h), and whatever slews it beyond that.
    pub fn ahead_ppm(self, before: Self) -> f64 {
        let ran = |now: u64, then: u64| now.wrapping_sub(then) as i64 as f64;
        let raw = ran(self.raw_ns, before.raw_ns);
        let more = ran(self.monotonic_ns, before.monotonic_ns) - raw;
        let sure = more.abs() - (self.within_ns + before.within_ns) as f64;
        if raw > 0.0 && sure > 0.0 { sure.copysign(more) / raw * 1e6 } else { 0.0 }
    }
}

#[inline]
fn read(clock: ClockId) -> u64 {
    // Both clocks exist on every Linux; zero would show in every result.
    clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_of_a_clock_is_that_against_the_hardware_s() {
        let pace = |monotonic_ns, raw_ns| Pace { monotonic_ns, raw_ns, within_ns: 0 };
        let before = pace(5_000, 1_000);
        let after = pace(5_000 + 1_000_100, 1_000 + 1_000_000);
        assert!((after.ahead_ppm(before) - 100.0).abs() < 1e-6);
        let slow = pace(5_000 + 999_900, 1_000 + 1_000_000);
        assert!((slow.ahead_ppm(before) + 100.0).abs() < 1e-6);
        // Less than the readings may be wrong.
        let coarse = Pace { within_ns: 100, ..after };
        assert!(coarse.ahead_ppm(before).abs() < f64::EPSILON);
        assert!((before.ahead_ppm(before)).abs() < f64::EPSILON);
    }

    #[test]
    fn both_clocks_run() {
        let before = Pace::now();
        while monotonic_ns() < before.monotonic_ns + 1_000_000 {
            std::hint::spin_loop();
        }
        let after = Pace::now();
        assert!(after.raw_ns > before.raw_ns && after.monotonic_ns > before.monotonic_ns);
    }
}
