//! Receive livelock: on one CPU the softirq spends `c_s` on every packet before the application gets its `c_a`.
//!
//! **Source** J. Mogul, K. Ramakrishnan, "Eliminating Receive Livelock in an Interrupt-driven Kernel", ACM TOCS 15,
//! 1997. Fluid; assumes constant costs. Where ksoftirqd holds inline softirqs back (Linux 4.9 to 6.4), or with NAPI
//! threads, the application keeps its share `w` of the CPU and the loss moves to the ring.

use serde_json::Map;

use crate::inputs::{Inputs, Outputs, Problem};

/// Offered rates when the case names none, in packets/s.
const RATES_PPS: [f64; 10] = [50e3, 100e3, 150e3, 200e3, 250e3, 300e3, 400e3, 500e3, 750e3, 1e6];

/// Softirq and application on one CPU, with their costs per packet.
#[derive(Clone, Copy, Debug)]
pub struct OneCpu {
    /// Seconds per packet in the softirq.
    pub softirq_s: f64,
    /// Seconds per packet in the application.
    pub reader_s: f64,
}

impl OneCpu {
    /// The highest rate without loss (MLFRR).
    pub fn knee_pps(&self) -> f64 {
        1.0 / (self.softirq_s + self.reader_s)
    }

    /// The rate at which nothing is delivered any more.
    pub fn zero_pps(&self) -> f64 {
        1.0 / self.softirq_s
    }

    /// Packets/s that the application reads at this offered rate.
    pub fn goodput_pps(&self, offered_pps: f64) -> f64 {
        offered_pps.min(((1.0 - offered_pps * self.softirq_s) / self.reader_s).max(0.0))
    }

    /// The same when the scheduler leaves the application at least the fraction `share`.
    pub fn goodput_held_back_pps(&self, offered_pps: f64, share: f64) -> f64 {
        let left = (1.0 - offered_pps * self.softirq_s).max(share);
        offered_pps.min(left / self.reader_s)
    }
}

fn rates(inputs: &Inputs) -> Result<Vec<f64>, Problem> {
    let Some(name) = ["rates", "rates_pps", "lam"].into_iter().find(|name| inputs.has(name)) else {
        return Ok(RATES_PPS.to_vec());
    };
    let is_list = inputs.value(name)?.is_array();
    if is_list { inputs.numbers(name) } else { Ok(vec![inputs.not_negative(name)?]) }
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let cpu = OneCpu {
        softirq_s: inputs.positive("c_s_us")? / 1e6,
        reader_s: inputs.positive("c_a_us")? / 1e6,
    };
    let share = inputs.or("w", 0.5)?;
    if share > 1.0 {
        return Err(Problem::bad("w", "a share is at most 1"));
    }
    let mut goodput = Map::new();
    for rate in rates(inputs)? {
        let mut one = Map::new();
        one.insert("absolute_priority".into(), cpu.goodput_pps(rate).into());
        one.insert("ksoftirqd_fair_half".into(), cpu.goodput_held_back_pps(rate, share).into());
        goodput.insert(format!("{rate}"), one.into());
    }
    Ok(Outputs::default()
        .with("knee_pps", cpu.knee_pps())
        .with("zero_pps", cpu.zero_pps())
        .value("goodput", goodput))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn beyond_the_knee_it_falls_and_before_it_all_is_delivered(
            softirq in 0.1..10.0_f64, reader in 0.1..50.0_f64, part in 0.01..3.0_f64,
        ) {
            let cpu = OneCpu { softirq_s: softirq / 1e6, reader_s: reader / 1e6 };
            let rate = part * cpu.knee_pps();
            let got = cpu.goodput_pps(rate);
            if part < 0.999 {
                prop_assert!((got / rate - 1.0).abs() < 1e-9);
            } else if part > 1.001 {
                prop_assert!(got < rate);
            }
            prop_assert!(got <= cpu.knee_pps() * (1.0 + 1e-12));
            prop_assert!(cpu.goodput_held_back_pps(rate, 0.5) >= got - 1e-9);
            if rate > cpu.zero_pps() {
                prop_assert!(got <= 0.0);
            }
        }
    }
}
