//! Blocks of trials in which every open candidate is on in one half and off in the other, balanced against the others.
//!
//! **Source** J. J. Sylvester's construction of Hadamard matrices: column c of run r has the parity of `r & c`. Columns,
//! signs and the order of runs are drawn again for each block, so that two candidates are confounded with the same
//! interaction only by chance.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

/// Most candidates: one column each, and the last one at random where all columns are taken.
pub const MOST: usize = 16;

/// One block: which of the open candidates are on in each trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// For each trial, in the order of running, one value for each open candidate.
    pub on: Vec<Vec<bool>>,
    /// Columns that no candidate has, as values for each trial: their effects are noise.
    pub free: Vec<Vec<bool>>,
}

/// Trials of a block for so many open candidates.
pub fn runs(open: usize) -> usize {
    if open <= 7 { 8 } else { 16 }
}

/// Draws a block.
pub fn block(open: usize, dice: &mut impl Rng) -> Block {
    let runs = runs(open);
    let mut columns: Vec<usize> = (1..runs).collect();
    columns.shuffle(dice);
    let mut order: Vec<usize> = (0..runs).collect();
    order.shuffle(dice);
    let signs: Vec<bool> = columns.iter().map(|_| dice.random()).collect();
    let value = |run: usize, at: usize| ((run & columns[at]).count_ones() % 2 == 1) ^ signs[at];
    let mut on = Vec::new();
    for run in &order {
        let trial = (0..open).map(|at| if at < runs - 1 { value(*run, at) } else { dice.random() });
        on.push(trial.collect());
    }
    let free = (open.min(runs - 1)..runs - 1)
        .map(|at| order.iter().map(|run| value(*run, at)).collect())
        .collect();
    Block { on, free }
}

/// Brings values that lie far from the middle of their block to its edge: a trial that lost a fifth to another program
/// would otherwise count against every candidate that was on in it.
///
/// The edge is three standard deviations, estimated by the median of the absolute deviations.
pub fn clamp(values: &mut [f64]) {
    let Some(middle) = rxpath_stats::quantile::median(values) else { return };
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let Some(deviation) = rxpath_stats::quantile::median(&away) else { return };
    let edge = 3.0 * 1.4826 * deviation;
    for value in values {
        *value = value.clamp(middle - edge, middle + edge);
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn each_pair_of_columns_is_balanced() {
        let mut dice = ChaCha8Rng::seed_from_u64(3);
        for open in [1, 3, 7, 8, 15] {
            let made = block(open, &mut dice);
            assert_eq!(made.on.len(), runs(open));
            assert_eq!(made.free.len(), runs(open) - 1 - open);
            let mut columns: Vec<Vec<bool>> =
                (0..open).map(|at| made.on.iter().map(|trial| trial[at]).collect()).collect();
            columns.extend(made.free);
            for (at, first) in columns.iter().enumerate() {
                let ons = first.iter().filter(|on| **on).count();
                assert_eq!(ons, runs(open) / 2, "half of the trials have it on");
                for second in &columns[at + 1..] {
                    let equal = first.iter().zip(second).filter(|(a, b)| a == b).count();
                    assert_eq!(equal, runs(open) / 2, "the two are independent");
                }
            }
        }
    }

    #[test]
    fn sixteen_fit_with_the_last_at_random() {
        let mut dice = ChaCha8Rng::seed_from_u64(4);
        let made = block(16, &mut dice);
        assert!(made.on.iter().all(|trial| trial.len() == 16) && made.free.is_empty());
        assert_ne!(block(16, &mut dice), made, "each block is drawn again");
    }

    #[test]
    fn a_stolen_trial_counts_as_three_deviations() {
        let mut values = [0.0, 0.01, -0.01, 0.005, -0.9, 0.002, -0.003, 0.0];
        clamp(&mut values);
        assert!((values[1] - 0.01).abs() < 1e-12 && values[4] > -0.03, "{values:?}");
        let mut equal = [1.0; 8];
        clamp(&mut equal);
        assert!(equal.iter().all(|value| (value - 1.0).abs() < f64::EPSILON), "{equal:?}");
    }
}
