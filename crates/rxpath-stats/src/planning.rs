//! How many blocks a verdict needs, given the noise seen so far.

use crate::looks::{ERROR, FIRST, Looks, MOST, SAME_ERROR};
use crate::student;

/// Quantile of the normal distribution for a power of 80 %.
const POWER: f64 = 0.84;
/// The same for `same`, of which both sides must hold: 90 %.
const POWER_OF_BOTH: f64 = 1.28;

/// The smallest number of blocks after which an effect of `effect` would be shown in four of five runs, among `family`
/// comparisons; `None` when [`MOST`] are not enough. `scatter` is the standard deviation of one block's difference.
pub fn blocks_for_difference(scatter: f64, effect: f64, family: usize) -> Option<usize> {
    smallest(scatter, effect, ERROR / family.max(1) as f64, POWER)
}

/// The smallest number of blocks after which equal variants would be shown to be within `effect` in four of five runs.
pub fn blocks_for_same(scatter: f64, effect: f64) -> Option<usize> {
    smallest(scatter, effect, SAME_ERROR, POWER_OF_BOTH)
}

/// The smallest effect that `blocks` would show in four of five runs.
pub fn smallest_effect(scatter: f64, blocks: usize, family: usize) -> f64 {
    reach(scatter, blocks, ERROR / family.max(1) as f64, POWER)
}

fn smallest(scatter: f64, effect: f64, error: f64, power: f64) -> Option<usize> {
    (FIRST..=MOST).find(|blocks| reach(scatter, *blocks, error, power) <= effect)
}

fn reach(scatter: f64, blocks: usize, error: f64, power: f64) -> f64 {
    let level = Looks::EveryBlock { most: blocks }.level(error);
    let n = blocks as f64;
    (student::two_sided(level, n - 1.0) + power) * scatter / n.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_noise_needs_more_blocks() {
        let percent = |value: f64| (value / 100.0f64).ln_1p();
        // A trial's noise is that of a difference over the square root of two.
        let of = |noise: f64| noise / 100.0 * 2.0f64.sqrt();
        let difference = |noise, effect| blocks_for_difference(of(noise), percent(effect), 1);
        assert_eq!([3.0, 5.0].map(|effect| difference(2.0, effect)), [Some(16), Some(7)]);
        assert_eq!(
            [3.0, 5.0, 10.0].map(|effect| difference(5.0, effect)),
            [Some(91), Some(34), Some(10)]
        );
        assert_eq!([5.0, 10.0].map(|effect| difference(10.0, effect)), [None, Some(36)]);
        let same = |noise| blocks_for_same(of(noise), percent(3.0));
        assert_eq!([2.0, 5.0, 10.0].map(same), [Some(16), Some(97), None]);
        assert!(blocks_for_difference(of(5.0), percent(5.0), 6) > Some(34));
        assert!(smallest_effect(of(5.0), 34, 1) <= percent(5.0));
    }
}
