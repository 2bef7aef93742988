//! A search on this host's own traffic: settings are switched in slices of time, and every limit is watched.

pub mod allow;
pub mod answer;
pub mod guards;
pub mod host;
pub mod limits;
pub mod meter;
pub mod slices;
pub mod stop;

use std::time::{Duration, Instant};

use rxpath_record::verdict::DiagnosisVerdict;
use rxpath_record::watch::TrafficSlice;

use self::meter::Meter;
use self::stop::Stop;

/// The length of a glance; two of them show that a limit is broken.
const GLANCE: Duration = Duration::from_millis(500);
/// A slice has at least so many glances.
const FEWEST_GLANCES: u32 = 4;
/// The watchdog undoes a slice's settings after so much more than the slice takes.
const BEYOND: Duration = Duration::from_secs(5);
/// The same where each of some settings may have to wait for the link.
const WITHOUT_LINK: Duration = Duration::from_secs(60);
/// Longest wait for the probes' first turn, after the first slice.
const FIRST_TURN: Duration = Duration::from_secs(3);

/// The times of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// After a switch, before the slice.
    pub settle: Duration,
    /// The slice itself.
    pub slice: Duration,
}

impl Times {
    /// Both together.
    pub fn full(self) -> Duration {
        self.settle + self.slice
    }

    /// A window whose traffic is compared with the limits.
    pub fn glance(self) -> Duration {
        GLANCE.min(self.slice / FEWEST_GLANCES)
    }

    /// How long the watchdog lets a slice's settings stand, where making them may cost the link for a while.
    pub fn hold(self, is_slow: bool) -> Duration {
        self.full() * 3 / 2 + if is_slow { WITHOUT_LINK } else { BEYOND }
    }
}

/// The traffic before any candidate.
#[derive(Debug, Default)]
pub struct Start {
    /// What passed, was lost and cost CPU time.
    pub slice: TrafficSlice,
    /// What limits.
    pub verdict: Option<DiagnosisVerdict>,
}

impl Start {
    /// One slice of the traffic as it is; `None` if the device received nothing.
    ///
    /// # Errors
    /// If the traffic can't be measured, or a signal ends it.
    pub fn measure(meter: &mut Meter<'_>, times: Times) -> Result<Option<Self>, Stop> {
        let mut start = Self::default();
        let mut packets = 0.0;
        let end = Instant::now() + times.slice;
        meter.begin()?;
        // A machine without CPU to spare gives the probes their first turn late.
        let is_late = |start: &Self, meter: &Meter<'_>, packets| {
            let waits = packets >= 1.0 && !start.slice.is_sampled();
            waits && meter.without_probes().is_none() && Instant::now() < end + FIRST_TURN
        };
        while Instant::now() < end || is_late(&start, meter, packets) {
            let glance = meter.glance(times.glance())?;
            packets += glance.device_pps * glance.slice.window_s;
            start.slice.join(&glance.slice);
            start.verdict = glance.verdict;
        }
        Ok((packets >= 1.0).then_some(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_glances_enough_to_show_a_broken_limit() {
        let of = |slice: u64| {
            let slice = Duration::from_millis(slice);
            Times { settle: Duration::ZERO, slice }.glance().as_millis()
        };
        assert_eq!([of(5000), of(2000), of(400)], [500, 500, 100]);
    }
}
