//! Does a value depend on when it was measured? Tests of trend, of order within a block, and of memory.
//!
//! None of them changes a verdict: block order makes intervals hold under drift. They tell a reader that the machine was
//! not the same all the time.

use statrs::distribution::{DiscreteCDF, Hypergeometric};

use crate::paired::moments;
use crate::student;

/// Below this probability of coming by chance a warning is due.
pub const SUSPICIOUS: f64 = 0.01;
/// Fewest values of a test.
const FEWEST: usize = 5;

/// The probability that values without a trend have one as clear as these, in the order of running; `None` under five
/// values.
///
/// **Source** H. B. Mann, Econometrica 13 (1945); M. G. Kendall. The normal approximation with the correction for ties.
pub fn trend(values: &[f64]) -> Option<f64> {
    if values.len() < FEWEST {
        return None;
    }
    let n = values.len() as f64;
    let steps = values.iter().enumerate().flat_map(|(at, earlier)| {
        values[at + 1..].iter().map(move |later| f64::from(later.total_cmp(earlier) as i8))
    });
    let rising: f64 = steps.sum();
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(|equal| equal.len() as f64)
        .map(|t| t * (t - 1.0) * (2.0 * t + 5.0))
        .sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if variance <= 0.0 {
        return Some(1.0);
    }
    let z = (rising.abs() - 1.0).max(0.0) / variance.sqrt();
    Some(2.0 * student::normal_cdf(-z))
}

/// The probability that differences around 0 have a mean as far from it as these; `None` under five values.
pub fn offset(differences: &[f64]) -> Option<f64> {
    if differences.len() < FEWEST {
        return None;
    }
    let n = differences.len() as f64;
    let (mean, variance) = moments(differences);
    if variance == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    Some(student::two_sided_p(mean / (variance / n).sqrt(), n - 1.0))
}

/// The probability that independent values resemble their predecessors, or avoid them, as much as these: lag 1; `None`
/// under ten values, where the test says nothing.
pub fn memory(values: &[f64]) -> Option<f64> {
    if values.len() < 2 * FEWEST {
        return None;
    }
    let n = values.len() as f64;
    let (mean, variance) = moments(values);
    if variance == 0.0 {
        return Some(1.0);
    }
    let products: f64 = values.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    // Bias and variance of the estimate for white noise: Kendall, Biometrika 41 (1954).
    let correlation = products / (variance * (n - 1.0)) + 1.0 / n;
    Some(2.0 * student::normal_cdf(-correlation.abs() * n.sqrt()))
}

/// The probability that two equally often disturbed variants have such unequal numbers of void trials: Fisher's exact
/// test over `(void, all)` of each.
pub fn unequal_voids(base: (u64, u64), variant: (u64, u64)) -> f64 {
    let (void, all) = (base.0 + variant.0, base.1 + variant.1);
    let Ok(law) = Hypergeometric::new(all, void, base.1) else { return 1.0 };
    let at_least = |count: u64| if count == 0 { 1.0 } else { 1.0 - law.cdf(count - 1) };
    (2.0 * law.cdf(base.0).min(at_least(base.0))).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_is_found_and_noise_is_not() {
        let rising: Vec<f64> = (0..12).map(|at| f64::from(at) + f64::from(at % 3)).collect();
        assert!(trend(&rising).unwrap() < SUSPICIOUS);
        let falling: Vec<f64> = rising.iter().map(|value| -value).collect();
        assert!((trend(&rising).unwrap() - trend(&falling).unwrap()).abs() < 1e-12);
        assert!(trend(&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0]).unwrap() > 0.1);
        assert_eq!((trend(&[1.0; 4]), trend(&[1.0; 9])), (None, Some(1.0)));
    }

    #[test]
    fn an_offset_and_a_memory_are_found() {
        assert!(offset(&[0.05, 0.06, 0.05, 0.04, 0.05, 0.06]).unwrap() < SUSPICIOUS);
        assert!(offset(&[0.05, -0.06, 0.05, -0.04, 0.01, -0.02]).unwrap() > 0.5);
        assert_eq!(
            (offset(&[0.0; 6]), offset(&[1.0; 6]), offset(&[1.0])),
            (Some(1.0), Some(0.0), None)
        );
        let waves: Vec<f64> = (0..40).map(|at| (f64::from(at) / 5.0).sin()).collect();
        assert!(memory(&waves).unwrap() < SUSPICIOUS);
        let mixed = [3.0, 9.0, 4.0, 8.0, 5.0, 1.0, 7.0, 7.5, 2.0, 6.0, 4.5, 3.5];
        assert!(memory(&mixed).unwrap() > SUSPICIOUS);
        assert_eq!((memory(&mixed[..9]), memory(&[1.0; 12])), (None, Some(1.0)));
    }

    #[test]
    fn voids_are_compared_exactly() {
        // fisher.test(matrix(c(8, 2, 1, 9), 2)) in R: p = 0.005477 (two-sided by likelihood); twice the smaller tail here.
        let p = unequal_voids((8, 10), (1, 10));
        assert!((p - 0.005_477).abs() < 1e-5, "{p}");
        assert!((unequal_voids((0, 10), (0, 10)) - 1.0).abs() < 1e-12);
        assert!((unequal_voids((3, 10), (3, 10)) - 1.0).abs() < 1e-12);
        assert!((unequal_voids((1, 10), (8, 10)) - p).abs() < 1e-12);
    }
}
