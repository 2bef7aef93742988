//! A difference between two variants, and the word for it.
//!
//! The word needs an interval: it must clear the practical threshold as a whole before anything is called better or
//! worse, and lie inside it as a whole before anything is called the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::{self, Interval};
use crate::metric::Good;
use crate::quantile::{median, range};

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Clears the threshold in the good direction.
    Better,
    /// Clears the threshold in the bad direction.
    Worse,
    /// Lies within the threshold.
    Same,
    /// Does neither, or has no interval.
    Inconclusive,
}

/// `variant / base` over blocks in which both ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Ratio of medians.
    pub ratio: f64,
    /// Its 95 % interval; `None` under five pairs.
    pub interval: Option<Interval>,
    /// Smallest and largest ratio within a block.
    pub range: (f64, f64),
    /// Blocks.
    pub pairs: usize,
}

/// The difference over pairs `(base, variant)` of the same block; `None` without pairs or with a base of zero.
pub fn difference(pairs: &[(f64, f64)], seed: u64) -> Option<Difference> {
    let base = median(&pairs.iter().map(|p| p.0).collect::<Vec<_>>())?;
    let variant = median(&pairs.iter().map(|p| p.1).collect::<Vec<_>>())?;
    if base == 0.0 {
        return None;
    }
    let ratios: Vec<f64> = pairs.iter().filter(|p| p.0 != 0.0).map(|p| p.1 / p.0).collect();
    Some(Difference {
        ratio: variant / base,
        interval: bootstrap::ratio_interval(pairs, seed),
        range: range(&ratios)?,
        pairs: pairs.len(),
    })
}

/// The difference between two lists that were not measured in the same blocks, `other / base`; `None` without values or
/// with a base of zero. Its range is that of the extremes of both.
pub fn between(base: &[f64], other: &[f64], seed: u64) -> Option<Difference> {
    let ((low, high), (other_low, other_high)) = (range(base)?, range(other)?);
    let (below, above) = (median(base)?, median(other)?);
    if below == 0.0 {
        return None;
    }
    let widest = |value: f64, by: f64| if by == 0.0 { value / below } else { value / by };
    Some(Difference {
        ratio: above / below,
        interval: bootstrap::unpaired_ratio_interval(base, other, seed),
        range: (widest(other_low, high), widest(other_high, low)),
        pairs: base.len().min(other.len()),
    })
}

impl Difference {
    /// The word for a metric that is good in this direction, with differences inside `1 +- threshold` the same.
    pub fn word(&self, good: Good, threshold: f64) -> Word {
        let Some(Interval { low, high }) = self.interval else { return Word::Inconclusive };
        let (under, over) = (1.0 - threshold, 1.0 + threshold);
        match good {
            _ if low >= under && high <= over => Word::Same,
            Good::Up if low > over => Word::Better,
            Good::Up if high < under => Word::Worse,
            Good::Down if high < under => Word::Better,
            Good::Down if low > over => Word::Worse,
            _ => Word::Inconclusive,
        }
    }

    /// Whether the interval is as narrow as asked: its half-width as a share of the ratio.
    pub fn precise_to(&self, precision: f64) -> bool {
        self.interval.is_some_and(|interval| interval.half_width() <= precision * self.ratio.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(ratio: f64) -> Difference {
        let pairs: Vec<_> =
            (0..6).map(|i| (100.0 + f64::from(i), (100.0 + f64::from(i)) * ratio)).collect();
        difference(&pairs, 1).unwrap()
    }

    #[test]
    fn the_word_follows_the_metric_s_direction() {
        assert_eq!(steady(1.2).word(Good::Up, 0.02), Word::Better);
        assert_eq!(steady(1.2).word(Good::Down, 0.02), Word::Worse);
        assert_eq!(steady(0.8).word(Good::Up, 0.02), Word::Worse);
        assert_eq!(steady(0.8).word(Good::Down, 0.02), Word::Better);
        assert_eq!(steady(1.001).word(Good::Up, 0.02), Word::Same);
    }

    #[test]
    fn lists_of_two_runs_have_a_word_too() {
        let (base, more) = ([10.0, 10.1, 9.9, 10.0, 10.2], [12.0, 12.1, 11.9, 12.2, 12.0, 12.1]);
        let got = between(&base, &more, 1).unwrap();
        assert_eq!(got.word(Good::Up, 0.02), Word::Better);
        assert_eq!(got.word(Good::Down, 0.02), Word::Worse);
        assert!(got.range.0 < got.ratio && got.ratio < got.range.1);
        assert_eq!(between(&base, &base, 1).unwrap().word(Good::Up, 0.05), Word::Same);
        assert_eq!(between(&base[..4], &more, 1).unwrap().word(Good::Up, 0.02), Word::Inconclusive);
        assert_eq!(between(&[], &more, 1), None);
        assert_eq!(between(&[0.0; 5], &more, 1), None);
    }

    #[test]
    fn noise_and_few_pairs_are_inconclusive() {
        let noisy: Vec<_> = [0.5, 2.0, 0.7, 1.6, 1.1, 0.6].iter().map(|r| (1.0, *r)).collect();
        assert_eq!(difference(&noisy, 1).unwrap().word(Good::Up, 0.02), Word::Inconclusive);
        let few = difference(&[(1.0, 9.0); 3], 1).unwrap();
        assert_eq!(few.word(Good::Up, 0.02), Word::Inconclusive);
        assert!((few.ratio - 9.0).abs() < 1e-12);
        assert_eq!(difference(&[], 1), None);
    }
}
