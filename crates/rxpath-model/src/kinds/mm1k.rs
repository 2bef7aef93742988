//! M/M/1/K: Poisson arrivals, exponential service, `K` places of which one is the packet in service.
//!
//! **Source** L. Kleinrock, Queueing Systems I, 1975, section 3.6. With `a = -ln rho` and `M = K+1` everything is
//! made of `e^x - 1`, so that loads near 1 and large `K` lose no digits and need no loop.

use crate::inputs::{Inputs, Outputs, Problem};

/// What an M/M/1/K queue does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limited {
    /// Fraction of arrivals that find it full.
    pub block: f64,
    /// Mean number of packets in the system.
    pub mean_number: f64,
    /// Mean time in the system of admitted packets, in mean service times.
    pub mean_sojourn: f64,
    /// Fraction of time without a packet.
    pub idle: f64,
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let got = limited(inputs.not_negative("rho")?, inputs.whole("K", 1..=1_000_000_000_000)?);
    Ok(Outputs::default()
        .with("block", got.block)
        .with("mean_number", got.mean_number)
        .with("mean_sojourn_over_service", got.mean_sojourn)
        .with("idle", got.idle))
}

/// The queue at load `rho` with `places` places, at least one.
pub fn limited(rho: f64, places: u64) -> Limited {
    if rho <= 0.0 {
        return Limited { block: 0.0, mean_number: 0.0, mean_sojourn: 1.0, idle: 1.0 };
    }
    // Near 1 the difference is exact; far from it the difference would lose the load's own digits.
    let fall = if rho < 0.5 { -rho.ln() } else { -(rho - 1.0).ln_1p() };
    let states = places as f64 + 1.0;
    let span = states * fall;
    let (block, idle) = if span.abs() < 1e-300 {
        (1.0 / states, 1.0 / states)
    } else {
        let idle = (-fall).exp_m1() / (-span).exp_m1();
        let block = if fall > 0.0 {
            idle * (-fall * places as f64).exp()
        } else {
            fall.exp_m1() / span.exp_m1()
        };
        (block, idle)
    };
    let mean_number = if span.abs() < 1.0 {
        0.5 * places as f64 + odd_part(fall) - states * odd_part(span)
    } else {
        1.0 / fall.exp_m1() - states / span.exp_m1()
    };
    let served = if rho < 1.0 { rho * (1.0 - block) } else { 1.0 - idle };
    Limited { block, mean_number, mean_sojourn: mean_number / served, idle }
}

/// `1/(e^x - 1) - 1/x + 1/2`, the part of it that vanishes at 0; for |x| < 1 or, at the far side, any x.
fn odd_part(x: f64) -> f64 {
    if x.abs() < 1.0 {
        // Bernoulli numbers over factorials: B2/2!, B4/4!, ...
        const SERIES: [f64; 9] = [
            8.333_333_333_333_333e-2,
            -1.388_888_888_888_889e-3,
            3.306_878_306_878_307e-5,
            -8.267_195_767_195_768e-7,
            2.087_675_698_786_81e-8,
            -5.284_190_138_687_493e-10,
            1.338_253_653_068_468e-11,
            -3.389_680_296_322_583e-13,
            8.586_062_056_277_845e-15,
        ];
        return x * SERIES.iter().rev().fold(0.0, |sum, term| sum * x * x + term);
    }
    1.0 / x.exp_m1() - 1.0 / x + 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The distribution itself, normalised: independent of every formula above.
    fn summed(rho: f64, places: u64) -> Limited {
        let weight = |n: u64| {
            if rho <= 1.0 { rho.powf(n as f64) } else { rho.powf(n as f64 - places as f64) }
        };
        let total: f64 = (0..=places).map(weight).sum();
        let mean_number = (0..=places).map(|n| n as f64 * weight(n)).sum::<f64>() / total;
        let (block, idle) = (weight(places) / total, weight(0) / total);
        Limited { block, mean_number, mean_sojourn: mean_number / (rho * (1.0 - block)), idle }
    }

    proptest! {
        #[test]
        fn agrees_with_the_distribution(rho in prop_oneof![1e-12..0.01_f64, 0.01..3.0], places in 1_u64..300) {
            let (got, wanted) = (limited(rho, places), summed(rho, places));
            for (g, w) in [
                (got.block, wanted.block),
                (got.mean_number, wanted.mean_number),
                (got.mean_sojourn, wanted.mean_sojourn),
                (got.idle, wanted.idle),
            ] {
                prop_assert!((g - w).abs() <= 1e-10 * w.abs() + 1e-15, "{} {}", g, w);
            }
        }

        #[test]
        fn nothing_jumps_at_load_one(places in 1_u64..1_000_000, off in -1e-9..1e-9_f64) {
            let (here, at_one) = (limited(1.0 + off, places), limited(1.0, places));
            let near = |a: f64, b: f64| (a / b - 1.0).abs() <= 1e-9 + off.abs() * places as f64 * 2.0;
            prop_assert!(near(here.mean_number, at_one.mean_number));
            prop_assert!(near(here.block, at_one.block));
        }

        #[test]
        fn more_places_lose_less(rho in 0.1..2.0_f64, places in 1_u64..10_000) {
            prop_assert!(limited(rho, places + 1).block <= limited(rho, places).block);
        }
    }

    #[test]
    fn without_limit_it_is_the_unlimited_queue() {
        let got = limited(0.8, 1_000_000);
        assert!((got.mean_number - 4.0).abs() < 1e-12 && (got.mean_sojourn - 5.0).abs() < 1e-12);
        assert!(got.block < 1e-300 && (got.idle - 0.2).abs() < 1e-15);
    }

    #[test]
    fn enormous_loads_block_nearly_all() {
        let got = limited(1e18, 1_000_000_000_000);
        assert!(got.block > 0.999 && got.mean_number > 0.99e12 && got.idle >= 0.0);
    }
}
