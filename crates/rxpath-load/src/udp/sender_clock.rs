//! The clock of a sender on another host, as it is known on the receiver's.

use std::fmt;
use std::str::FromStr;

/// How much later than compared a stamp may be: what the clocks drift apart during a trial.
const DRIFT_NS: u64 = 100_000;

/// A line: where the sender's `CLOCK_MONOTONIC` is at an instant of the receiver's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderClock {
    /// Number in the headers of its datagrams.
    pub id: u16,
    /// How far it is ahead at `at_ns`. **Unit** ns.
    pub ahead_ns: i64,
    /// Instant of the receiver's clock.
    pub at_ns: u64,
    /// How much faster it runs. **Unit** 10^-9.
    pub rate_ppb: i64,
    /// How far `ahead_ns` may be wrong. **Unit** ns.
    pub error_ns: u64,
}

impl SenderClock {
    /// The sender's reading at an instant of the receiver's clock.
    #[inline]
    pub fn there(&self, now_ns: u64) -> u64 {
        let there = now_ns.wrapping_add_signed(self.ahead_ns);
        // The division is 3 ns of the 70 that a call for one datagram takes.
        if self.rate_ppb == 0 {
            return there;
        }
        let since = now_ns.wrapping_sub(self.at_ns) as i64;
        there.wrapping_add_signed(since.saturating_mul(self.rate_ppb) / 1_000_000_000)
    }

    /// What is added to a delay, so that it is not below zero where the clock is as wrong as it may be.
    pub fn margin_ns(&self) -> u64 {
        if *self == (Self { id: self.id, at_ns: self.at_ns, ..Self::default() }) {
            return 0;
        }
        self.error_ns.saturating_mul(2).saturating_add(DRIFT_NS)
    }
}

impl fmt::Display for SenderClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, ahead_ns, at_ns, rate_ppb, error_ns } = self;
        write!(f, "{id}:{ahead_ns}:{at_ns}:{rate_ppb}:{error_ns}")
    }
}

impl FromStr for SenderClock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not ID:AHEAD_NS:AT_NS:RATE_PPB:ERROR_NS");
        let parts: Vec<&str> = text.split(':').collect();
        let [id, ahead, at, rate, error] = parts.as_slice() else { return Err(wrong()) };
        let read = || -> Option<Self> {
            Some(Self {
                id: id.parse().ok().filter(|id| *id != 0)?,
                ahead_ns: ahead.parse().ok()?,
                at_ns: at.parse().ok()?,
                rate_ppb: rate.parse().ok()?,
                error_ns: error.parse().ok()?,
            })
        };
        read().ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_has_an_offset_and_a_rate() {
        let clock = SenderClock {
            id: 1,
            ahead_ns: -5_000,
            at_ns: 1_000_000_000,
            rate_ppb: 50_000,
            error_ns: 10,
        };
        assert_eq!(clock.there(1_000_000_000), 999_995_000);
        // 50 ppm of two seconds are 100 us.
        assert_eq!(clock.there(3_000_000_000), 3_000_095_000);
        assert_eq!(clock.margin_ns(), 100_020);
        assert_eq!(SenderClock { id: 7, at_ns: 9, ..SenderClock::default() }.margin_ns(), 0);
        assert!(
            "0:1:2:3:4".parse::<SenderClock>().is_err()
                && "1:2:3:4".parse::<SenderClock>().is_err()
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(id in 1u16.., ahead_ns: i64, at_ns: u64, rate_ppb: i64, error_ns: u64) {
            let clock = SenderClock { id, ahead_ns, at_ns, rate_ppb, error_ns };
            prop_assert_eq!(clock.to_string().parse(), Ok(clock));
        }
    }
}
