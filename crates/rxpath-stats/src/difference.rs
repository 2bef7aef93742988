//! A difference between two variants, and its verdict.
//!
//! The verdict needs an interval. `Better` and `worse` need the whole interval outside the practical threshold; `same`
//! needs the whole interval inside it. Metrics for which 0 is an ordinary value are compared by their difference, all
//! others by their ratio. If the base is 0, there is no ratio, and the verdict says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::{self, FEWEST, Interval};
use crate::metric::{Good, Scale};
use crate::quantile::{median, range};

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The interval clears the threshold in the good direction.
    Better,
    /// The interval clears the threshold in the bad direction.
    Worse,
    /// The interval lies within the threshold.
    Same,
    /// The interval does not decide, or there is none.
    Inconclusive,
    /// There is no ratio because the base is 0; the difference stands alongside.
    NoRatio,
}

/// Why a difference is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// Fewer than five pairs, or values of either list: no interval.
    TooFew,
    /// The interval holds "no change" and reaches beyond the threshold.
    HoldsNoChange,
    /// The interval excludes "no change", but a part of it lies within the threshold.
    ReachesThreshold,
    /// The base is 0 in so many trials that the ratio has no interval.
    BaseOftenZero,
}

/// `variant - base`, in the unit of the metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Difference of medians.
    pub value: f64,
    /// Its 95 % interval; `None` under five pairs.
    pub interval: Option<Interval>,
    /// Smallest and largest difference within a block.
    pub range: (f64, f64),
}

/// Two variants over blocks in which both ran, or two lists that were not measured together.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What the word rests on.
    pub scale: Scale,
    /// Medians: base, variant.
    pub medians: (f64, f64),
    /// Ratio of medians; `None` when the base is 0.
    pub ratio: Option<f64>,
    /// Its 95 % interval; `None` under five pairs, and when a base among the resamples is 0.
    pub interval: Option<Interval>,
    /// Smallest and largest ratio within a block; `None` when the base is 0 in every one.
    pub range: Option<(f64, f64)>,
    /// The difference.
    pub change: Change,
    /// Blocks.
    pub pairs: usize,
}

/// The difference over pairs `(base, variant)` of the same block; `None` without pairs.
pub fn difference(pairs: &[(f64, f64)], scale: Scale, seed: u64) -> Option<Difference> {
    let base = median(&pairs.iter().map(|p| p.0).collect::<Vec<_>>())?;
    let variant = median(&pairs.iter().map(|p| p.1).collect::<Vec<_>>())?;
    let ratios: Vec<f64> = pairs.iter().filter(|p| p.0 != 0.0).map(|p| p.1 / p.0).collect();
    let steps: Vec<f64> = pairs.iter().map(|p| p.1 - p.0).collect();
    Some(Difference {
        scale,
        medians: (base, variant),
        ratio: (base != 0.0).then(|| variant / base),
        interval: bootstrap::ratio_interval(pairs, seed),
        range: range(&ratios),
        change: Change {
            value: variant - base,
            interval: bootstrap::difference_interval(pairs, seed),
            range: range(&steps)?,
        },
        pairs: pairs.len(),
    })
}

/// The difference between two lists that were not measured in the same blocks; `None` without values. Its ranges are
/// those of the extremes of both.
pub fn between(base: &[f64], other: &[f64], scale: Scale, seed: u64) -> Option<Difference> {
    let ((low, high), (other_low, other_high)) = (range(base)?, range(other)?);
    let (below, above) = (median(base)?, median(other)?);
    let widest = |value: f64, by: f64| if by == 0.0 { value / below } else { value / by };
    Some(Difference {
        scale,
        medians: (below, above),
        ratio: (below != 0.0).then(|| above / below),
        interval: bootstrap::unpaired_ratio_interval(base, other, seed),
        range: (below != 0.0).then(|| (widest(other_low, high), widest(other_high, low))),
        change: Change {
            value: above - below,
            interval: bootstrap::unpaired_difference_interval(base, other, seed),
            range: (other_low - high, other_high - low),
        },
        pairs: base.len().min(other.len()),
    })
}

impl Difference {
    /// The word for a metric that is good in this direction. Ratios inside `1 +- threshold` are the same; differences
    /// have the threshold of their scale.
    pub fn word(&self, good: Good, threshold: f64) -> Word {
        if self.no_ratio() {
            let none = Interval { low: 0.0, high: 0.0 };
            let equal = self.change.interval == Some(none);
            return if equal { Word::Same } else { Word::NoRatio };
        }
        let (Some(Interval { low, high }), same) = self.judged(threshold) else {
            return Word::Inconclusive;
        };
        match good {
            _ if low >= same.low && high <= same.high => Word::Same,
            Good::Up if low > same.high => Word::Better,
            Good::Up if high < same.low => Word::Worse,
            Good::Down if high < same.low => Word::Better,
            Good::Down if low > same.high => Word::Worse,
            _ => Word::Inconclusive,
        }
    }

    /// Why the word is [`Word::Inconclusive`]; meaningless for other words.
    pub fn undecided(&self, threshold: f64) -> Undecided {
        let (interval, same) = self.judged(threshold);
        let no_change = f64::midpoint(same.low, same.high);
        match interval {
            None if self.pairs < FEWEST => Undecided::TooFew,
            None => Undecided::BaseOftenZero,
            Some(found) if found.low <= no_change && no_change <= found.high => {
                Undecided::HoldsNoChange
            }
            Some(_) => Undecided::ReachesThreshold,
        }
    }

    /// Whether the interval is as narrow as asked: its half-width as a share of the ratio. A difference is known well
    /// enough when that holds of the larger median, or when the interval is as narrow as its threshold.
    pub fn precise_to(&self, precision: f64) -> bool {
        let within = |interval: Option<Interval>, limit: f64| {
            interval.is_some_and(|interval| interval.half_width() <= limit)
        };
        let largest = self.medians.0.abs().max(self.medians.1.abs());
        match (self.scale, self.ratio) {
            (Scale::Difference { same_within }, _) => {
                within(self.change.interval, same_within.max(precision * largest))
            }
            (Scale::Ratio, None) => within(self.change.interval, precision * largest),
            (Scale::Ratio, Some(ratio)) => within(self.interval, precision * ratio.abs()),
        }
    }

    /// Whether it should be judged by a ratio that does not exist.
    fn no_ratio(&self) -> bool {
        self.scale == Scale::Ratio && self.ratio.is_none()
    }

    /// The interval that the word rests on, and what counts as the same.
    fn judged(&self, threshold: f64) -> (Option<Interval>, Interval) {
        match self.scale {
            Scale::Ratio => {
                (self.interval, Interval { low: 1.0 - threshold, high: 1.0 + threshold })
            }
            Scale::Difference { same_within } => {
                (self.change.interval, Interval { low: -same_within, high: same_within })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(ratio: f64) -> Difference {
        let pairs: Vec<_> =
            (0..6).map(|i| (100.0 + f64::from(i), (100.0 + f64::from(i)) * ratio)).collect();
        difference(&pairs, Scale::Ratio, 1).unwrap()
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
        let got = between(&base, &more, Scale::Ratio, 1).unwrap();
        assert_eq!(got.word(Good::Up, 0.02), Word::Better);
        assert_eq!(got.word(Good::Down, 0.02), Word::Worse);
        let (range, ratio) = (got.range.unwrap(), got.ratio.unwrap());
        assert!(range.0 < ratio && ratio < range.1);
        assert_eq!(
            between(&base, &base, Scale::Ratio, 1).unwrap().word(Good::Up, 0.05),
            Word::Same
        );
        assert_eq!(
            between(&base[..4], &more, Scale::Ratio, 1).unwrap().word(Good::Up, 0.02),
            Word::Inconclusive
        );
        assert_eq!(between(&[], &more, Scale::Ratio, 1), None);
    }

    #[test]
    fn noise_and_few_pairs_are_inconclusive_each_for_its_reason() {
        let noisy: Vec<_> = [0.5, 2.0, 0.7, 1.6, 1.1, 0.6].iter().map(|r| (1.0, *r)).collect();
        let noisy = difference(&noisy, Scale::Ratio, 1).unwrap();
        assert_eq!(noisy.word(Good::Up, 0.02), Word::Inconclusive);
        assert_eq!(noisy.undecided(0.02), Undecided::HoldsNoChange);
        let few = difference(&[(1.0, 9.0); 3], Scale::Ratio, 1).unwrap();
        assert_eq!(few.word(Good::Up, 0.02), Word::Inconclusive);
        assert_eq!(few.undecided(0.02), Undecided::TooFew);
        assert!((few.ratio.unwrap() - 9.0).abs() < 1e-12);
        assert_eq!(difference(&[], Scale::Ratio, 1), None);
        let near: Vec<_> = [1.01, 1.02, 1.03, 1.05, 1.08].iter().map(|r| (1.0, *r)).collect();
        let near = difference(&near, Scale::Ratio, 1).unwrap();
        assert_eq!(near.word(Good::Up, 0.03), Word::Inconclusive);
        assert_eq!(near.undecided(0.03), Undecided::ReachesThreshold);
    }

    #[test]
    fn a_loss_that_starts_at_zero_is_compared() {
        let scale = Scale::Difference { same_within: 0.005 };
        let pairs: Vec<_> = (0..6).map(|i| (0.0, 0.3 + f64::from(i) / 1000.0)).collect();
        let lost = difference(&pairs, scale, 1).unwrap();
        assert_eq!((lost.ratio, lost.interval, lost.range), (None, None, None));
        assert!(lost.change.value > 0.3 && lost.change.interval.unwrap().low >= 0.3);
        assert_eq!(lost.word(Good::Down, 0.03), Word::Worse);
        assert!(lost.precise_to(0.05));
        let none = difference(&[(0.0, 0.0); 6], scale, 1).unwrap();
        assert_eq!(none.word(Good::Down, 0.03), Word::Same);
        let apart = between(&[0.0; 5], &[0.3, 0.31, 0.32, 0.3, 0.33], scale, 1).unwrap();
        assert_eq!(apart.word(Good::Down, 0.02), Word::Worse);
    }

    #[test]
    fn a_ratio_over_zero_does_not_exist_and_is_said_so() {
        let made =
            |base: f64, n: usize| difference(&vec![(base, 9.0); n], Scale::Ratio, 1).unwrap();
        assert_eq!(made(0.0, 6).word(Good::Down, 0.03), Word::NoRatio);
        assert_eq!(made(0.0, 6).change.interval, Some(Interval { low: 9.0, high: 9.0 }));
        assert_eq!(made(0.0, 2).word(Good::Down, 0.03), Word::NoRatio);
        // 0 in some trials only: the ratio is known, its interval is not, and not for want of trials.
        let some = [(0.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 1.0), (2.0, 2.0), (1.0, 1.0)];
        let some = difference(&some, Scale::Ratio, 1).unwrap();
        assert_eq!(some.word(Good::Up, 0.03), Word::Inconclusive);
        assert_eq!(some.undecided(0.03), Undecided::BaseOftenZero);
        let equal = difference(&[(0.0, 0.0); 6], Scale::Ratio, 1).unwrap();
        assert_eq!(equal.word(Good::Up, 0.03), Word::Same);
    }
}
