//! Interrupt coalescing by time or frames: the interrupt fires `T` after the first packet or at the `F`-th packet.
//!
//! Assumes Poisson arrivals and no service time. With `A` arrivals in `T` and `M = min(A, F-1)`, the hold time is
//! `E[M]/lambda`, the batch `1 + E[M]`, and the packet-time held `E[M(M+1)]/(2 lambda)`: Fubini on `min(T, Erlang)`.

use crate::inputs::{Inputs, Outputs, Problem};
use crate::poisson;

/// E[M] and E[M^2] of `M = min(A, most)`, A Poisson.
fn moments(mean: f64, most: u64) -> (f64, f64) {
    let below = |n: u64| most.checked_sub(n).map_or(0.0, |last| poisson::at_most(mean, last));
    let (full, most_f) = (poisson::at_least(mean, most), most as f64);
    let first = mean * below(2) + most_f * full;
    let second = mean * mean * below(3) + mean * below(2) + most_f * most_f * full;
    (first, second)
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let arrivals = inputs.positive("lam")?;
    let timer = inputs.not_negative("rx_usecs")? / 1e6;
    let frames = inputs.whole("rx_frames", 1..=1_000_000_000)?;
    let expected = arrivals * timer;
    if expected > 1e12 {
        return Err(Problem::bad("rx_usecs", "more than 1e12 packets per timer"));
    }
    let (more, square) = moments(expected, frames - 1);
    let hold = more / arrivals;
    Ok(Outputs::default()
        .with("mean_hold_us", hold * 1e6)
        .with("mean_batch", 1.0 + more)
        .with("mean_delay_us", 0.5 * (square + more) / arrivals / (1.0 + more) * 1e6)
        .with("interrupts_per_s", 1.0 / (hold + 1.0 / arrivals)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn moments_are_the_sums(mean in 0.01..80.0_f64, most in 0_u64..120) {
            let (mut first, mut second) = (0.0, 0.0);
            for n in 0..600_u64 {
                let value = n.min(most) as f64;
                first += value * poisson::at(mean, n);
                second += value * value * poisson::at(mean, n);
            }
            let (got_first, got_second) = moments(mean, most);
            prop_assert!((got_first - first).abs() <= 1e-10 * first + 1e-13);
            prop_assert!((got_second - second).abs() <= 1e-10 * second + 1e-13);
        }
    }
}
