//! Does a rate still change? The straight line through its samples, and whether chance alone would tilt it so.

use crate::{order, quantile};

/// Change over a span that counts as none, as a share of the rate.
const FLAT: f64 = 0.05;
/// Below this probability of coming by chance, a change is shown.
const SHOWN: f64 = 0.05;
/// Fewest samples for a judgement.
const FEWEST: usize = 6;
/// The newer half of the samples counts alone when it has this many: an old ramp is then forgotten.
const FEWEST_NEWER: usize = 8;

/// How a rate changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drift {
    /// Change per second, as a share of the median rate.
    pub per_s_ratio: f64,
    /// The probability that a steady rate shows such a trend by chance.
    pub chance: f64,
}

impl Drift {
    /// Of the newer samples `(seconds, rate)`; `None` when they are too few.
    pub fn of(samples: &[(f64, f64)]) -> Option<Self> {
        let newer = &samples[samples.len() / 2..];
        Self::of_all(if newer.len() < FEWEST_NEWER { samples } else { newer })
    }

    /// Of all samples; `None` when they are too few. A rate whose median is 0 does not change.
    pub fn of_all(counted: &[(f64, f64)]) -> Option<Self> {
        if counted.len() < FEWEST {
            return None;
        }
        let rates: Vec<f64> = counted.iter().map(|(_, rate)| *rate).collect();
        let level = quantile::median(&rates)?.abs();
        if level == 0.0 {
            return Some(Self { per_s_ratio: 0.0, chance: 1.0 });
        }
        let per_s_ratio = theil_sen(counted)? / level;
        Some(Self { per_s_ratio, chance: order::trend(&rates)? })
    }

    /// Change over this many seconds, as a share of the rate.
    pub fn over(&self, seconds: f64) -> f64 {
        self.per_s_ratio * seconds
    }

    /// Whether a change of more than 5 % over the coming `seconds` is shown: not within what chance does to a steady rate.
    pub fn matters(&self, seconds: f64) -> bool {
        self.over(seconds).abs() > FLAT && self.chance < SHOWN
    }
}

/// Slope by Theil and Sen: the median of the slopes of all pairs, which single outliers do not move.
///
/// P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968). Points are
/// `(x, y)`; `None` when no two differ in x. **Cost** n squared; callers pass some dozens of points.
pub fn theil_sen(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    for (i, a) in points.iter().enumerate() {
        let others = points[i + 1..].iter().filter(|b| b.0.total_cmp(&a.0).is_ne());
        slopes.extend(others.map(|b| (b.1 - a.1) / (b.0 - a.0)));
    }
    quantile::median(&slopes)
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn series(rate: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..20).map(|i| f64::from(i) * 0.05).map(|t| (t, rate(t))).collect()
    }

    #[test]
    fn the_slope_of_a_line_is_found_through_outliers() {
        let mut points = series(|t| 3.0 * t + 1.0);
        points[4].1 = 1e9;
        points[11].1 = -1e9;
        assert!((theil_sen(&points).unwrap() - 3.0).abs() < 1e-9);
    }

    fn settled(points: &[(f64, f64)]) -> bool {
        !Drift::of(points).unwrap().matters(3.0)
    }

    #[test]
    fn a_climbing_rate_is_not_settled_and_a_flat_one_is() {
        assert!(!settled(&series(|t| 1e5 * (1.0 + t))));
        assert!(settled(&series(|_| 350_000.0)));
        assert!(settled(&series(|_| 0.0)));
        assert!(
            settled(&series(|t| 1e5 * (1.0 - (-t * 40.0).exp()))),
            "an old ramp does not count"
        );
        assert_eq!(Drift::of(&[(0.0, 1.0), (1.0, 1.0)]), None, "two samples say nothing");
        assert_eq!(Drift::of(&[]), None);
    }

    /// The same slope matters for a long window and not for a short one.
    #[test]
    fn a_change_is_judged_over_the_window_that_comes() {
        let slow = Drift::of(&series(|t| 1e5 * (1.0 + 0.02 * t))).unwrap();
        assert!((slow.per_s_ratio - 0.02).abs() < 1e-3 && slow.chance < 0.001, "{slow:?}");
        assert!(!slow.matters(1.0) && slow.matters(10.0));
    }

    /// A load that comes in bursts has no trend, however far its rates lie apart.
    #[test]
    fn bursts_are_no_drift() {
        assert!(settled(&series(|t| if ((t * 20.0).round() as u32).is_multiple_of(4) {
            4e5
        } else {
            1e3
        })));
    }

    #[test]
    fn noise_alone_counts_as_settled_in_at_least_94_of_100() {
        let mut dice = ChaCha8Rng::seed_from_u64(5);
        for scatter in [0.01, 0.05, 0.2] {
            let flat = (0..1000)
                .filter(|_| {
                    let noise: Vec<f64> =
                        (0..8).map(|_| dice.random_range(-scatter..scatter)).collect();
                    let points = noise.iter().enumerate();
                    settled(
                        &points
                            .map(|(i, e)| (i as f64 * 0.05, 1e5 * (1.0 + e)))
                            .collect::<Vec<_>>(),
                    )
                })
                .count();
            assert!(flat >= 940, "{scatter}: {flat} of 1000");
        }
    }
}
