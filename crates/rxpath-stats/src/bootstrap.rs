//! Percentile bootstrap: how far a median, or a ratio of medians, could have come out otherwise.
//!
//! B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979); the percentile
//! interval is in Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. Trials are resampled,
//! never the samples inside a trial. For a ratio, blocks are resampled, so that what a block's two trials share
//! (the machine's mood in that minute) cancels.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
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
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half of the width.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The 95 % interval of the median; `None` under [`FEWEST`] values.
pub fn median_interval(values: &[f64], seed: u64) -> Option<Interval> {
    resampled(values.len(), seed, |pick| {
        median(&pick.iter().map(|i| values[*i]).collect::<Vec<_>>())
    })
}

/// The 95 % interval of `median(variant) / median(base)` over pairs from the same block; `None` under [`FEWEST`]
/// pairs or when a base median is zero.
pub fn ratio_interval(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    paired(pairs, seed, ratio)
}

/// The 95 % interval of `median(variant) - median(base)` over pairs from the same block; `None` under [`FEWEST`] pairs.
pub fn difference_interval(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    paired(pairs, seed, |base, variant| Some(variant - base))
}

/// The 95 % interval of `median(other) / median(base)` of two lists that were not measured together; `None` when either
/// has under [`FEWEST`] values or a base median is zero.
///
/// Each list is resampled for itself: what the machine's mood did to one of them does not cancel.
pub fn unpaired_ratio_interval(base: &[f64], other: &[f64], seed: u64) -> Option<Interval> {
    unpaired(base, other, seed, ratio)
}

/// The 95 % interval of `median(other) - median(base)` of two such lists; `None` when either has under [`FEWEST`] values.
pub fn unpaired_difference_interval(base: &[f64], other: &[f64], seed: u64) -> Option<Interval> {
    unpaired(base, other, seed, |below, above| Some(above - below))
}

fn ratio(base: f64, variant: f64) -> Option<f64> {
    (base != 0.0).then(|| variant / base)
}

fn paired(
    pairs: &[(f64, f64)],
    seed: u64,
    of_medians: impl Fn(f64, f64) -> Option<f64>,
) -> Option<Interval> {
    resampled(pairs.len(), seed, |pick| {
        let base = median(&pick.iter().map(|i| pairs[*i].0).collect::<Vec<_>>())?;
        let variant = median(&pick.iter().map(|i| pairs[*i].1).collect::<Vec<_>>())?;
        of_medians(base, variant)
    })
}

fn unpaired(
    base: &[f64],
    other: &[f64],
    seed: u64,
    of_medians: impl Fn(f64, f64) -> Option<f64>,
) -> Option<Interval> {
    if base.len() < FEWEST || other.len() < FEWEST {
        return None;
    }
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut picked = |values: &[f64]| {
        let picks = (0..values.len()).map(|_| values[dice.random_range(0..values.len())]);
        median(&picks.collect::<Vec<_>>())
    };
    let mut outcomes = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let (below, above) = (picked(base)?, picked(other)?);
        outcomes.push(of_medians(below, above)?);
    }
    tails(outcomes)
}

fn resampled(n: usize, seed: u64, statistic: impl Fn(&[usize]) -> Option<f64>) -> Option<Interval> {
    if n < FEWEST {
        return None;
    }
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut pick = vec![0usize; n];
    let mut outcomes = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        pick.fill_with(|| dice.random_range(0..n));
        outcomes.push(statistic(&pick)?);
    }
    tails(outcomes)
}

fn tails(mut outcomes: Vec<f64>) -> Option<Interval> {
    outcomes.sort_unstable_by(f64::total_cmp);
    Some(Interval {
        low: quantile_of_sorted(&outcomes, TAIL)?,
        high: quantile_of_sorted(&outcomes, 1.0 - TAIL)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_values_give_no_interval() {
        assert_eq!(median_interval(&[1.0; 4], 1), None);
        assert_eq!(ratio_interval(&[(0.0, 1.0); 6], 1), None);
    }

    #[test]
    fn unpaired_lists_are_resampled_apart() {
        // One value each: nothing to resample.
        let same = unpaired_ratio_interval(&[2.0; 5], &[3.0; 8], 1).unwrap();
        assert!((same.low - 1.5).abs() < 1e-12 && (same.high - 1.5).abs() < 1e-12);
        // Equal lists as pairs have no spread at all; apart they have theirs twice.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let pairs: Vec<_> = values.iter().map(|v| (*v, *v)).collect();
        assert!(ratio_interval(&pairs, 1).unwrap().half_width() < 1e-12);
        let apart = unpaired_ratio_interval(&values, &values, 1).unwrap();
        assert!(apart.low <= 0.5 && apart.high >= 2.0, "{apart:?}");
        assert_eq!(unpaired_ratio_interval(&values, &values[..4], 1), None);
        assert_eq!(unpaired_ratio_interval(&[0.0; 5], &values, 1), None);
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn scaling_the_variant_scales_the_ratio(
            base in proptest::collection::vec(1.0f64..2.0, 5..12), factor in 0.1f64..10.0, seed in any::<u64>(),
        ) {
            let pairs: Vec<_> = base.iter().map(|b| (*b, b * factor)).collect();
            let got = ratio_interval(&pairs, seed).unwrap();
            prop_assert!((got.low / factor - 1.0).abs() < 1e-9 && (got.high / factor - 1.0).abs() < 1e-9);
        }
    }
}
