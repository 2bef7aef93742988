//! The kernel's clocks, read through the vDSO.

use nix::time::{ClockId, clock_gettime};

use crate::HostError;

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

/// `CLOCK_BOOTTIME`, the same for all processes and going on while the machine sleeps. **Unit** ns.
pub fn boottime_ns() -> Result<u64, HostError> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_err(|errno| HostError::kernel("read CLOCK_BOOTTIME", errno as i32))?;
    Ok(now.tv_sec().unsigned_abs() * 1_000_000_000 + now.tv_nsec().unsigned_abs())
}

/// `CLOCK_MONOTONIC` and `CLOCK_MONOTONIC_RAW` at one instant: NTP slews the first one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// **Unit** ns.
    pub monotonic_ns: u64,
    /// **Unit** ns.
    pub raw_ns: u64,
    /// They were read so close to each other. **Unit** ns.
    pub within_ns: u64,
}

/// Readings of which the quickest is taken: an interrupt between the two clocks is in few of them.
const READINGS: u32 = 8;

impl ClockReading {
    /// Reads both.
    pub fn now() -> Self {
        let [before_ns, raw_ns, after_ns] = between(ClockId::CLOCK_MONOTONIC_RAW);
        let monotonic_ns = before_ns.midpoint(after_ns);
        Self { monotonic_ns, raw_ns, within_ns: after_ns - before_ns }
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

/// A clock between two readings of `CLOCK_MONOTONIC`: the quickest of some.
fn between(clock: ClockId) -> [u64; 3] {
    let readings = (0..READINGS).map(|_| [monotonic_ns(), read(clock), monotonic_ns()]);
    readings.min_by_key(|[before_ns, _, after_ns]| after_ns - before_ns).unwrap_or_default()
}

/// `CLOCK_REALTIME`, in which the kernel stamps what it receives, between two readings of `CLOCK_MONOTONIC`.
///
/// The kernel makes both from one counter at one pace, so the difference of the two changes only when `CLOCK_REALTIME` is
/// stepped or the machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeReading {
    /// `CLOCK_MONOTONIC` before it. **Unit** ns.
    pub before_ns: u64,
    /// **Unit** ns.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC` after it. **Unit** ns.
    pub after_ns: u64,
}

impl RealtimeReading {
    /// Reads both.
    pub fn now() -> Self {
        let [before_ns, realtime_ns, after_ns] = between(ClockId::CLOCK_REALTIME);
        Self { before_ns, realtime_ns, after_ns }
    }

    /// By how much `CLOCK_MONOTONIC` is ahead of `CLOCK_REALTIME`, at least and at most.
    fn ahead_ns(self) -> [i64; 2] {
        [self.before_ns, self.after_ns].map(|at| at as i64 - self.realtime_ns as i64)
    }

    /// The latest instant of `CLOCK_MONOTONIC` at which the kernel took a stamp of `CLOCK_REALTIME`; `None` if that was not
    /// surely between this reading and `later`, or if `CLOCK_REALTIME` was stepped between them.
    ///
    /// A step that is smaller than the readings are wide is not seen. The greater one of both differences holds for either
    /// side of it.
    pub fn latest_of(self, later: Self, stamp_ns: u64) -> Option<u64> {
        let ([least, most], [later_least, later_most]) = (self.ahead_ns(), later.ahead_ns());
        let is_stepped = least > later_most || later_least > most;
        let earliest_ns = stamp_ns.checked_add_signed(least.min(later_least))?;
        let latest_ns = stamp_ns.checked_add_signed(most.max(later_most))?;
        (!is_stepped && earliest_ns >= self.before_ns).then_some(latest_ns)
    }
}

#[inline]
fn read(clock: ClockId) -> u64 {
    // These clocks exist on every Linux; zero would show in every result.
    clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_that_does_not_stop_goes_on() {
        let first = boottime_ns().unwrap();
        assert!(first > 0 && boottime_ns().unwrap() >= first);
    }

    #[test]
    fn the_pace_of_a_clock_is_that_against_the_hardware_s() {
        let pace = |monotonic_ns, raw_ns| ClockReading { monotonic_ns, raw_ns, within_ns: 0 };
        let before = pace(5_000, 1_000);
        let after = pace(5_000 + 1_000_100, 1_000 + 1_000_000);
        assert!((after.ahead_ppm(before) - 100.0).abs() < 1e-6);
        let slow = pace(5_000 + 999_900, 1_000 + 1_000_000);
        assert!((slow.ahead_ppm(before) + 100.0).abs() < 1e-6);
        // Less than the readings may be wrong.
        let coarse = ClockReading { within_ns: 100, ..after };
        assert!(coarse.ahead_ppm(before).abs() < f64::EPSILON);
        assert!((before.ahead_ppm(before)).abs() < f64::EPSILON);
    }

    #[test]
    fn a_stamp_is_brought_to_the_other_clock_unless_it_may_be_of_another_time() {
        let day = 86_400_000_000_000;
        let reading = |before_ns: u64, [in_ns, step_ns]: [u64; 2], after_ns: u64| RealtimeReading {
            before_ns,
            realtime_ns: day + before_ns + in_ns + step_ns,
            after_ns,
        };
        let (first, last) = (reading(1_000, [40, 0], 1_090), reading(9_000, [10, 0], 9_070));
        // The readings show a difference of a day, less at most 40 or 10 ns, more by at most 50 or 60 ns.
        assert_eq!(first.latest_of(last, day + 5_000), Some(5_060));
        // What came before the first reading may have been stamped before a step.
        assert_eq!(first.latest_of(last, day + 1_040), Some(1_100));
        assert_eq!(first.latest_of(last, day + 1_039), None);
        // A step of 200 ns is seen; of one of 50 ns both sides are allowed for.
        assert_eq!(first.latest_of(reading(9_000, [10, 200], 9_070), day + 5_000), None);
        let moved = reading(9_000, [10, 50], 9_070);
        assert_eq!(first.latest_of(moved, day + 5_050), Some(5_100));
        assert_eq!(first.latest_of(last, 0), None, "a stamp of no time");
    }

    #[test]
    fn what_is_stamped_between_two_readings_was_between_them() {
        let stamp = |_| {
            let first = RealtimeReading::now();
            let before_ns = monotonic_ns();
            let stamp_ns = realtime_ns();
            let after_ns = monotonic_ns();
            let last = RealtimeReading::now();
            let width_ns = (first.after_ns - first.before_ns) + (last.after_ns - last.before_ns);
            Some((before_ns, first.latest_of(last, stamp_ns)?, after_ns + width_ns))
        };
        // Another try on a machine whose clock is stepped at this instant.
        let (before_ns, latest_ns, end_ns) = (0..3).find_map(stamp).unwrap();
        assert!((before_ns..=end_ns).contains(&latest_ns), "{before_ns} {latest_ns} {end_ns}");
    }

    #[test]
    fn both_clocks_run() {
        let before = ClockReading::now();
        while monotonic_ns() < before.monotonic_ns + 1_000_000 {
            std::hint::spin_loop();
        }
        let after = ClockReading::now();
        assert!(after.raw_ns > before.raw_ns && after.monotonic_ns > before.monotonic_ns);
    }
}
