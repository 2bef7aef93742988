//! Order statistics of small samples.

/// A quantile rests on the values above it: on fewer than this it is that of a few values.
const FEWEST_ABOVE: f64 = 10.0;

/// Values that a quantile needs, when this share of all lies above it: 1,000 for the 99th percentile.
pub fn needed_values(above_ratio: f64) -> f64 {
    // A share such as 1 - 0.99 is not exact: a thousandth of a value is none.
    (FEWEST_ABOVE / above_ratio - 1e-3).ceil()
}

/// The `q` quantile by linear interpolation between order statistics (Hyndman and Fan's type 7, the default of R
/// and NumPy); `None` for no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// As [`quantile`], of values that are sorted and hold no NaN.
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(last);
    Some(sorted[low] + part * (sorted[high] - sorted[low]))
}

/// The median; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Smallest and largest; `None` for no values.
pub fn range(values: &[f64]) -> Option<(f64, f64)> {
    Some((quantile(values, 0.0)?, quantile(values, 1.0)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_r() {
        // quantile(c(1, 2, 4, 8), c(.25, .5, .9)) in R: 1.75 3.00 6.80
        let values = [8.0, 1.0, 4.0, 2.0];
        for (q, want) in [(0.25, 1.75), (0.5, 3.0), (0.9, 6.8)] {
            assert!((quantile(&values, q).unwrap() - want).abs() < 1e-12);
        }
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn half_lies_on_each_side_of_the_median(values in proptest::collection::vec(-1e9f64..1e9, 1..50)) {
            let middle = median(&values).unwrap();
            let below = values.iter().filter(|v| **v < middle).count();
            let above = values.iter().filter(|v| **v > middle).count();
            prop_assert!(below * 2 <= values.len() && above * 2 <= values.len());
        }
    }
}
