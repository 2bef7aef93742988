//! Has a rate settled? A straight line through its samples says whether it still drifts.

/// Drift over the watched span that still counts as flat, as a share of the mean.
const FLAT: f64 = 0.05;
/// Fewest samples for a judgement.
const FEWEST: usize = 6;

/// Slope by Theil and Sen: the median of the slopes of all pairs, which single outliers do not move.
///
/// P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968). Points are
/// `(x, y)`; `None` when no two differ in x. **Cost** n squared; callers pass some dozens of points.
pub fn theil_sen(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    for (i, a) in points.iter().enumerate() {
        slopes.extend(
            points[i + 1..]
                .iter()
                .filter(|b| b.0.total_cmp(&a.0).is_ne())
                .map(|b| (b.1 - a.1) / (b.0 - a.0)),
        );
    }
    crate::quantile::median(&slopes)
}

/// Whether the rate no longer drifts: over the newer half of the samples the fitted line changes by less than 5 % of
/// their median. A rate that is zero throughout is settled.
pub fn settled(points: &[(f64, f64)]) -> bool {
    let newer = &points[points.len() / 2..];
    let (Some(first), Some(last)) = (newer.first(), newer.last()) else { return false };
    if newer.len() < FEWEST.div_ceil(2) || points.len() < FEWEST {
        return false;
    }
    let level =
        crate::quantile::median(&newer.iter().map(|p| p.1).collect::<Vec<_>>()).unwrap_or(0.0);
    let Some(slope) = theil_sen(newer) else { return false };
    (slope * (last.0 - first.0)).abs() <= FLAT * level.abs()
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_climbing_rate_is_not_settled_and_a_flat_one_is() {
        assert!(!settled(&series(|t| 1e5 * (1.0 + t))));
        assert!(settled(&series(|_| 350_000.0)));
        assert!(settled(&series(|_| 0.0)));
        assert!(
            settled(&series(|t| 1e5 * (1.0 - (-t * 20.0).exp()))),
            "an old ramp does not count"
        );
        assert!(!settled(&[(0.0, 1.0), (1.0, 1.0)]), "two samples say nothing");
        assert!(!settled(&[]));
    }
}
