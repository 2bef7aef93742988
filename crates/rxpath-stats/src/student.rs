//! Quantiles of Student's t and of the normal distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The value that Student's t exceeds in absolute terms with probability `level`.
///
/// Infinite for `level <= 0` and under one degree of freedom: nothing is then ruled out.
pub fn two_sided(level: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(t) if level > 0.0 && freedom >= 1.0 => t.inverse_cdf(1.0 - level.min(1.0) / 2.0),
        _ => f64::INFINITY,
    }
}

/// The probability that Student's t exceeds `value` in absolute terms.
pub fn two_sided_p(value: f64, freedom: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, freedom.max(1.0));
    t.map_or(1.0, |t| 2.0 * (1.0 - t.cdf(value.abs())))
}

/// The probability that a standard normal value is below `z`.
pub fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_tables() {
        // Abramowitz and Stegun, table 26.10, and R's qt().
        for (level, freedom, want) in [
            (0.05, 4.0, 2.776_445),
            (0.05, 30.0, 2.042_272),
            (0.00464, 4.0, 5.7141),
            (0.00464, 19.0, 3.2071),
            (0.01154, 9.0, 3.1606),
        ] {
            let got = two_sided(level, freedom);
            assert!((got - want).abs() < 1e-4, "{level} {freedom}: {got}, not {want}");
            assert!((two_sided_p(got, freedom) - level).abs() < 1e-9);
        }
        assert!(two_sided(0.05, 0.0).is_infinite() && two_sided(0.0, 5.0).is_infinite());
        assert!((normal_cdf(1.959_964) - 0.975).abs() < 1e-6);
    }
}
