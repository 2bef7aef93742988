//! A reader that stops: regular arrivals, a fixed service time, `N` places, the server frozen for `T` out of every `P`.
//!
//! Two answers: the fluid bound, and the count of a replay in whole nanoseconds. Assumptions of the replay: arrival
//! `k` at `(k + 1/2)/lambda`; admitted while fewer than `N` are in the system; a stall interrupts the service, which
//! goes on afterwards; 50 periods, of which the first 10 are not counted.

use std::collections::VecDeque;

use crate::inputs::{Code, Inputs, Outputs, Problem};

const PERIODS: u64 = 50;
const WARM_UP: u64 = 10;
/// More arrivals than this are not replayed.
const MOST_ARRIVALS: f64 = 5e7;

/// A stalling server.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Packets per second.
    pub arrivals_pps: f64,
    /// Packets per second while it runs.
    pub service_pps: f64,
    /// Places, with the packet in service.
    pub places: u64,
    /// Seconds without service at the start of each period.
    pub stall_s: f64,
    /// Seconds per period.
    pub period_s: f64,
}

/// What the replay counted after its warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallCounts {
    /// Arrivals.
    pub arrivals: u64,
    /// Those that found no place.
    pub drops: u64,
    /// Most packets at once in the system.
    pub peak: u64,
    /// Longest time in the system, in ns.
    pub longest_ns: u64,
}

impl Stall {
    /// The dropped fraction when packets are a fluid.
    ///
    /// The first branch holds when the queue empties between stalls; else the long-run rate of service is the limit.
    pub fn fluid_drop(&self) -> f64 {
        let Self { arrivals_pps, service_pps, places, stall_s, period_s } = *self;
        let running = period_s - stall_s;
        let places = places as f64;
        if arrivals_pps <= 0.0 {
            return 0.0;
        }
        let offered = arrivals_pps * period_s;
        if places + (arrivals_pps - service_pps) * running <= 0.0 {
            (arrivals_pps * stall_s - places).max(0.0) / offered
        } else {
            (1.0 - service_pps * running / offered).max(0.0)
        }
    }

    /// Replays it in whole nanoseconds.
    pub fn replay(&self) -> StallCounts {
        let period = (self.period_s * 1e9).round().max(1.0) as u64;
        let server = Server {
            stall: ((self.stall_s * 1e9).round() as u64).min(period - 1),
            period,
            service: (1e9 / self.service_pps).round() as u64,
        };
        let (from, end) = (server.period * WARM_UP, server.period * PERIODS);
        let mut counted = StallCounts::default();
        let mut leaving: VecDeque<u64> = VecDeque::new();
        for k in 0_u64.. {
            let now = ((k as f64 + 0.5) * 1e9 / self.arrivals_pps).round() as u64;
            if now >= end {
                return counted;
            }
            while leaving.front().is_some_and(|gone| *gone <= now) {
                leaving.pop_front();
            }
            let admitted = (leaving.len() as u64) < self.places;
            if admitted {
                leaving.push_back(server.done(leaving.back().copied().unwrap_or(0).max(now)));
            }
            if now < from {
                continue;
            }
            counted.arrivals += 1;
            counted.drops += u64::from(!admitted);
            counted.peak = counted.peak.max(leaving.len() as u64);
            if let (true, Some(gone)) = (admitted, leaving.back()) {
                counted.longest_ns = counted.longest_ns.max(gone - now);
            }
        }
        counted
    }
}

struct Server {
    stall: u64,
    period: u64,
    service: u64,
}

impl Server {
    /// When a service that starts at `start` ends.
    fn done(&self, start: u64) -> u64 {
        let into = start % self.period;
        let start = start.saturating_add(self.stall.saturating_sub(into));
        let left_now = self.period - start % self.period;
        if self.service <= left_now {
            return start.saturating_add(self.service);
        }
        let running = self.period - self.stall;
        let rest = self.service - left_now;
        // Whole running phases first; what ends with a phase ends before the next stall.
        let phases = (rest - 1) / running;
        let span = phases.saturating_mul(self.period).saturating_add(left_now + self.stall);
        start.saturating_add(span).saturating_add(rest - phases * running)
    }
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let stall = Stall {
        arrivals_pps: inputs.positive("lam")?,
        service_pps: inputs.positive("mu")?,
        places: inputs.whole("N", 1..=1_000_000_000_000)?,
        stall_s: inputs.not_negative("stall_s")?,
        period_s: inputs.positive("period_s")?,
    };
    if !(1e-9..=1e6).contains(&(stall.period_s - stall.stall_s)) || stall.service_pps < 1e-6 {
        return Err(Problem::bad(
            "period_s",
            "it must be longer than `stall_s` by 1 ns to 1e6 s, and `mu` at least 1e-6",
        ));
    }
    let outputs = Outputs::default();
    let arrivals = stall.arrivals_pps * stall.period_s * PERIODS as f64;
    if arrivals > MOST_ARRIVALS || stall.period_s > 1e6 {
        return Ok(outputs.with("drop_fraction_fluid", stall.fluid_drop()).but(Problem::new(
            Code::TooLarge,
            format!(
                "{arrivals:.3e} arrivals are too many to replay; only the fluid bound is given"
            ),
        )));
    }
    let got = stall.replay();
    Ok(outputs
        .value("drops_discrete", got.drops)
        .value("arrivals", got.arrivals)
        .with("drop_fraction_discrete", got.drops as f64 / (got.arrivals.max(1)) as f64)
        .with("drop_fraction_fluid", stall.fluid_drop())
        .value("peak_queue_discrete", got.peak)
        .with("max_sojourn_us", got.longest_ns as f64 / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_service_takes_its_time_outside_the_stalls(
            stall in 0_u64..50, running in 1_u64..50, service in 1_u64..200, start in 0_u64..300,
        ) {
            let server = Server { stall, period: stall + running, service };
            // One nanosecond at a time.
            let (mut now, mut left) = (start, service);
            while left > 0 {
                left -= u64::from(now % server.period >= stall);
                now += 1;
            }
            prop_assert_eq!(server.done(start), now);
        }

        #[test]
        fn the_replay_is_near_the_fluid(
            arrivals in 20_000.0..200_000.0_f64, speed in 1.05..4.0_f64, places in 50_u64..800, part in 0.0..0.6_f64,
        ) {
            let stall = Stall {
                arrivals_pps: arrivals,
                service_pps: arrivals * speed,
                places,
                stall_s: 0.02 * part,
                period_s: 0.02,
            };
            let got = stall.replay();
            let fraction = got.drops as f64 / got.arrivals as f64;
            // One packet per period of 400 and more is the fluid's grain; and the replay begins with an empty
            // queue, whose places are filled once before anything can be dropped.
            let near = 0.01 + places as f64 / got.arrivals as f64;
            prop_assert!((fraction - stall.fluid_drop()).abs() < near, "{:?} {:?}", stall, got);
        }
    }
}
