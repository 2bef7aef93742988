//! The interval of a mean of paired differences: the overlap of Student's t and of the trimmed t.
//!
//! The question it answers: *between which values does the effect lie, also when a trial was disturbed?* Student's t is
//! narrow where noise is normal; the trimmed mean is narrow where single trials lose a fifth to a neighbour on the
//! machine. Each holds its level in the other's case, so both hold and their overlap does.
//!
//! **Source** K. K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61 (1974): a fifth is
//! trimmed on each side, and the variance is that of the values with the trimmed ones replaced by their neighbours.

use crate::bootstrap::ConfidenceInterval;
use crate::student;

/// Share of the values that is trimmed on each side.
const TRIMMED: f64 = 0.2;
/// Fewest values: under three there is no interval.
pub const FEWEST: usize = 3;
/// Fewest values of which one on each side can be trimmed.
const FEWEST_TRIMMED: usize = 5;

/// A mean with what its interval at any level needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    pub freedom: f64,
}

/// An effect and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectEstimate {
    /// The effect: the mean or the trimmed mean, whichever has the narrower interval.
    pub value: f64,
    /// Where the effect lies: the overlap of both intervals, or Student's alone where they do not overlap.
    pub interval: ConfidenceInterval,
    /// Standard deviation of one difference, from the narrower of the two.
    pub scatter: f64,
}

/// Paired differences, condensed to what intervals at any level need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    count: usize,
    student: Part,
    trimmed: Option<Part>,
}

impl Part {
    pub fn interval(&self, level: f64) -> ConfidenceInterval {
        let half = if self.error == 0.0 {
            0.0
        } else {
            student::two_sided(level, self.freedom) * self.error
        };
        ConfidenceInterval { low: self.mean - half, high: self.mean + half }
    }
}

impl Paired {
    /// Of these differences, one for each block; `None` under [`FEWEST`].
    pub fn of(differences: &[f64]) -> Option<Self> {
        let count = differences.len();
        if count < FEWEST {
            return None;
        }
        let (mean, variance) = moments(differences);
        let n = count as f64;
        let student = Part { mean, error: (variance / n).sqrt(), freedom: n - 1.0 };
        let trimmed = (count >= FEWEST_TRIMMED).then(|| trimmed(differences));
        // Equal values in the middle (quantiles come in steps) have no scatter, and say nothing of how sure they are.
        let trimmed = trimmed.filter(|part| part.error > 0.0 || student.error == 0.0);
        Some(Self { count, student, trimmed })
    }

    /// The effect at this two-sided level of one analysis.
    pub fn at(&self, level: f64) -> EffectEstimate {
        let student = self.student.interval(level);
        let trimmed = self.trimmed.map(|part| (part, part.interval(level)));
        let narrower = trimmed.filter(|(_, at)| at.half_width() < student.half_width());
        let part = narrower.map_or(self.student, |(part, _)| part);
        let overlap = trimmed.map(|(_, at)| ConfidenceInterval {
            low: student.low.max(at.low),
            high: student.high.min(at.high),
        });
        EffectEstimate {
            value: part.mean,
            interval: overlap.filter(|overlap| overlap.low <= overlap.high).unwrap_or(student),
            scatter: part.error * (self.count as f64).sqrt(),
        }
    }
}

/// Mean and variance (n - 1).
pub(crate) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, if n > 1.0 { squares / (n - 1.0) } else { 0.0 })
}

fn trimmed(differences: &[f64]) -> Part {
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let cut = (TRIMMED * n as f64) as usize;
    let middle = n - 2 * cut;
    let mean = sorted[cut..n - cut].iter().sum::<f64>() / middle as f64;
    let (lowest, highest) = (sorted[cut], sorted[n - cut - 1]);
    sorted[..cut].fill(lowest);
    sorted[n - cut..].fill(highest);
    let (_, winsorised) = moments(&sorted);
    let (n, middle) = (n as f64, middle as f64);
    let error = (winsorised * (n - 1.0) / (middle * (middle - 1.0))).sqrt();
    Part { mean, error, freedom: middle - 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::Looks;
    use proptest::prelude::*;

    fn close(got: ConfidenceInterval, low: f64, high: f64) {
        assert!((got.low - low).abs() < 2e-6 && (got.high - high).abs() < 2e-6, "{got:?}");
    }

    #[test]
    fn one_disturbed_trial_leaves_the_interval_narrow() {
        let looks = Looks::of(5, 20);
        let d = [0.01, -0.02, 0.015, 0.005, -0.01, 0.02, -0.35, 0.0, 0.012, -0.008];
        let found = Paired::of(&d).unwrap();
        close(found.student.interval(looks.level(0.05)), -0.165_244, 0.100_044);
        close(found.at(looks.level(0.05)).interval, -0.025_171, 0.028_171);
        close(found.at(looks.level(0.10)).interval, -0.019_848, 0.022_848);
        assert!(found.at(looks.level(0.05)).value.abs() < 0.01);
        let even = Paired::of(&[0.10, 0.12, 0.09, 0.11, 0.13]).unwrap();
        close(even.at(looks.level(0.05)).interval, 0.069_595, 0.150_405);
    }

    #[test]
    fn few_and_equal_values() {
        assert_eq!(Paired::of(&[1.0, 2.0]), None);
        let ties = Paired::of(&[0.1, 0.2, 0.2, 0.2, 0.3]).unwrap();
        assert!(ties.at(0.0249).interval.low < 0.15, "steps are no certainty");
        let three = Paired::of(&[1.0, 2.0, 3.0]).unwrap();
        close(three.at(0.05).interval, 2.0 - 2.484_138, 2.0 + 2.484_138);
        let equal = Paired::of(&[0.3; 6]).unwrap();
        let at = equal.at(0.001);
        assert!(
            at.interval.half_width() < 1e-12
                && at.scatter < 1e-12
                && (at.value - 0.3).abs() < 1e-12
        );
    }

    proptest! {
        #[test]
        fn swapping_mirrors_shifting_shifts_and_order_does_not_matter(
            values in proptest::collection::vec(-0.5f64..0.5, 3..30), shift in -2.0f64..2.0, level in 0.001f64..0.2,
        ) {
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            let found = Paired::of(&values).unwrap().at(level).interval;
            let swapped = values.iter().map(|value| -value).collect::<Vec<_>>();
            let mirror = Paired::of(&swapped).unwrap().at(level).interval;
            prop_assert!(near(mirror.low, -found.high) && near(mirror.high, -found.low));
            let moved = values.iter().map(|value| value + shift).collect::<Vec<_>>();
            let moved = Paired::of(&moved).unwrap().at(level).interval;
            prop_assert!(near(moved.low, found.low + shift) && near(moved.high, found.high + shift));
            let turned = values.iter().rev().copied().collect::<Vec<_>>();
            let turned = Paired::of(&turned).unwrap().at(level).interval;
            prop_assert!(near(turned.low, found.low) && near(turned.high, found.high));
            prop_assert!(found.low <= found.high);
        }
    }
}
