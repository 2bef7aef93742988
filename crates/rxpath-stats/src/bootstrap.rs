//! Percentile bootstrap: how far the median of a variant could have come out otherwise.
//!
//! B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979); the percentile
//! interval is in Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. Trials are resampled,
//! never the samples inside a trial. Differences have intervals of another kind: [`crate::difference`].

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantile::{median, quantile_of_sorted};

/// Resamples of every interval.
pub const RESAMPLES: usize = 10_000;
/// Fewer values than this give no interval: the percentile bootstrap of four values is no more than their range.
pub const FEWEST: usize = 5;
/// Tail on each side of the 95 % interval.
const TAIL: f64 = 0.025;

/// A two-sided interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Half of the width.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The 95 % interval of the median; `None` under [`FEWEST`] values.
pub fn median_interval(values: &[f64], seed: u64) -> Option<ConfidenceInterval> {
    let n = values.len();
    if n < FEWEST {
        return None;
    }
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut pick = vec![0.0; n];
    let mut outcomes = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        pick.fill_with(|| values[dice.random_range(0..n)]);
        outcomes.push(median(&pick)?);
    }
    tails(outcomes)
}

/// The 95 % interval of what was drawn; `None` where nothing was.
pub(crate) fn tails(mut outcomes: Vec<f64>) -> Option<ConfidenceInterval> {
    outcomes.sort_unstable_by(f64::total_cmp);
    Some(ConfidenceInterval {
        low: quantile_of_sorted(&outcomes, TAIL)?,
        high: quantile_of_sorted(&outcomes, 1.0 - TAIL)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_give_no_interval() {
        assert_eq!(median_interval(&[1.0; 4], 1), None);
    }

    #[test]
    fn the_median_of_five_has_its_exact_tails() {
        // Of five distinct values the resampled median is the smallest with probability
        // P(Bin(5, 1/5) >= 3) = 0.05792, which is above 2.5 %: the interval must be the whole range.
        let got = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 7).unwrap();
        assert_eq!((got.low, got.high), (1.0, 5.0));
    }

    #[test]
    fn the_median_of_eleven_has_its_exact_tails() {
        // P(median <= k-th smallest) = P(Bin(11, k/11) >= 6): k=2 gives 0.0098, k=3 gives 0.0562.
        // The 2.5 % point is therefore the 3rd smallest, the 97.5 % point the 9th.
        let values: Vec<f64> = (1..=11).map(f64::from).collect();
        let got = median_interval(&values, 7).unwrap();
        assert_eq!((got.low, got.high), (3.0, 9.0));
    }

    #[test]
    fn intervals_hold_the_median_as_often_as_their_ends_say() {
        // The interval of eleven is from the 3rd smallest to the 9th. It misses the median when at most two values lie on
        // one side: 2 * P(Bin(11, 1/2) <= 2) = 6.54 %. Of 1000 that is 65, with a standard deviation of 7.8; one
        // place less at each end would be 227, one more 12.
        let mut dice = ChaCha8Rng::seed_from_u64(3);
        let missed = (0..1000)
            .filter(|seed| {
                let values: Vec<f64> = (0..11).map(|_| dice.random::<f64>()).collect();
                let got = median_interval(&values, *seed).unwrap();
                got.low > 0.5 || got.high < 0.5
            })
            .count();
        assert!((42..=89).contains(&missed), "{missed}");
    }
}
