//! Values of options that commands share, and how values are printed.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rxpath_core::plain_time::in_unit;
use rxpath_core::{Nanos, ParseUnitError};

use crate::exit::{Failure, OrUsage};
use crate::interrupt::Interrupt;

/// The longest window of a command.
const LONGEST: Nanos = Nanos::from_secs(3600);

/// A time with its unit, of an option that takes seconds and refuses microseconds.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|error: ParseUnitError| error.with_example("10s").to_string())
}

/// Refuses a window that is shorter than this, or longer than an hour.
pub fn check_window(option: &str, time: Nanos, shortest: Nanos) -> Result<(), Failure> {
    if (shortest..=LONGEST).contains(&time) {
        return Ok(());
    }
    Err(Failure::usage(format!("{option} {time}: {shortest} to {LONGEST}")))
}

/// A duration above zero; a plain number is in seconds.
pub fn duration(text: &str) -> Result<Nanos, String> {
    match in_unit(text, "s", "10s")? {
        Nanos(0) => Err("the time must be above 0, for example 10s".into()),
        some => Ok(some),
    }
}

/// Writes a file that an option names; if it can't be written, that is a usage error.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).or_usage(|| format!("cannot write {}", path.display()))
}

/// A value of an option as the command line spells it.
pub fn value_name(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// `p50 30.8us, p99 456us, max 27.8ms`.
pub fn quantiles(p50_us: f64, p99_us: f64, max_us: f64) -> String {
    let time = |us: f64| Nanos((us.max(0.0) * 1e3).round() as u64);
    format!("p50 {}, p99 {}, max {}", time(p50_us), time(p99_us), time(max_us))
}

/// `0.123 s user, 0.456 s system`.
pub fn cpu_time(user_s: f64, system_s: f64) -> String {
    format!("{user_s:.3} s user, {system_s:.3} s system")
}

/// Waits for a condition or a signal, whichever comes first.
pub struct Wait<'a> {
    interrupt: &'a Interrupt,
    begun: Instant,
}

impl<'a> Wait<'a> {
    /// Starts now.
    pub fn new(interrupt: &'a Interrupt) -> Self {
        Self { interrupt, begun: Instant::now() }
    }

    /// Calls `over` every 10 ms, with the elapsed time, until it returns true or a signal arrives.
    pub fn until(&mut self, mut over: impl FnMut(Duration) -> bool) -> io::Result<()> {
        while !over(self.begun.elapsed()) && self.signal().is_none() {
            self.pause(10)?;
        }
        Ok(())
    }

    /// Sleeps until then, or until a signal arrives.
    pub fn until_time(&mut self, due: Instant) -> io::Result<()> {
        while self.signal().is_none() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // Rounded up: what is left of a millisecond would be polled for.
            self.pause(left.as_micros().div_ceil(1000).min(60_000) as u16)?;
        }
        Ok(())
    }

    /// Sleeps for this long, or until a signal arrives.
    fn pause(&self, ms: u16) -> io::Result<()> {
        let mut signal = [PollFd::new(self.interrupt.as_fd(), PollFlags::POLLIN)];
        waited(poll(&mut signal, PollTimeout::from(ms)), ms)
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.interrupt.caught()
    }
}

/// How long a wait without memory sleeps at most: a signal is noticed so late.
const REST_MS: u16 = 100;

/// What becomes of a wait of so many milliseconds: only a failure that stays ends it. **Source** `do_sys_poll`, fs/select.c: ENOMEM,
/// EINTR, and EINVAL for more descriptors than `RLIMIT_NOFILE`.
fn waited(polled: nix::Result<i32>, ms: u16) -> io::Result<()> {
    match polled {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(Errno::ENOMEM) => {
            // why: the next poll may fail at once too, and the loop would spin.
            std::thread::sleep(Duration::from_millis(ms.min(REST_MS).into()));
            Ok(())
        }
        Err(errno) => Err(io::Error::other(format!("cannot wait for a signal: poll: {errno}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_goes_on_while_memory_is_short_and_ends_with_what_stays() {
        let begun = Instant::now();
        waited(Err(Errno::ENOMEM), 20).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20), "the next poll comes at once");
        waited(Err(Errno::EINTR), 60_000).unwrap();
        let said = waited(Err(Errno::EINVAL), 20).unwrap_err().to_string();
        assert_eq!(said, "cannot wait for a signal: poll: EINVAL: Invalid argument");
    }

    #[test]
    fn a_plain_number_has_the_unit_of_its_option() {
        assert_eq!(duration("5"), Ok(Nanos::from_secs(5)));
        assert_eq!(duration("0.5"), Ok(Nanos(500_000_000)));
        assert_eq!(duration("200ms"), Ok(Nanos(200_000_000)));
        assert!(duration("0").is_err() && duration("0s").is_err() && duration("").is_err());
        assert_eq!(seconds("200ms"), Ok(Nanos(200_000_000)));
    }

    #[test]
    fn the_example_of_a_refusal_is_a_value_that_the_option_takes() {
        for said in [seconds("fast").unwrap_err(), duration("fast").unwrap_err()] {
            assert!(said.ends_with("for example `10s`"), "{said}");
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let told = quantiles(30.8, 456.45, 27_754.5);
        assert_eq!(told, "p50 30.8us, p99 456us, max 27.8ms");
    }
}
