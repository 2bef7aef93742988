//! The interval of the difference between two lists that were not measured in the same blocks.
//!
//! **Source** B. L. Welch, "The generalization of Student's problem when several different population variances are
//! involved", Biometrika 34 (1947); degrees of freedom after Satterthwaite.
//!
//! **Caveat** What differs between two runs of the same code (another boot, another hour, another layout of memory) is
//! not in the scatter of either list. With runs of the same code it can be estimated: [`Apart::with_run_scatter`].

use crate::paired::{EffectEstimate, Part, moments};

/// Fewest values of each list.
pub const FEWEST: usize = 3;

/// Two lists, condensed to what intervals at any level need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    effect: f64,
    /// Variances of the two means, and of the scatter between runs, each with its degrees of freedom.
    terms: [(f64, f64); 3],
    /// Standard deviation of a difference between one value of each.
    scatter: f64,
}

impl Apart {
    /// Of the values of both on the scale of comparison; `None` when either has under [`FEWEST`].
    pub fn of(base: &[f64], variant: &[f64]) -> Option<Self> {
        if base.len() < FEWEST || variant.len() < FEWEST {
            return None;
        }
        let term = |values: &[f64]| {
            let n = values.len() as f64;
            let (mean, variance) = moments(values);
            (mean, variance, (variance / n, n - 1.0))
        };
        let (below, below_variance, first) = term(base);
        let (above, above_variance, second) = term(variant);
        let scatter = (below_variance + above_variance).sqrt();
        Some(Self { effect: above - below, terms: [first, second, (0.0, 1.0)], scatter })
    }

    /// The same with the scatter between runs of the same code: the standard deviation of their means beyond the noise of
    /// their trials, over this many runs.
    #[must_use]
    pub fn with_run_scatter(mut self, deviation: f64, runs: usize) -> Self {
        self.terms[2] = (2.0 * deviation.powi(2), runs.saturating_sub(1).max(1) as f64);
        self
    }

    /// The effect at this two-sided level.
    pub fn at(&self, level: f64) -> EffectEstimate {
        let variance: f64 = self.terms.iter().map(|term| term.0).sum();
        let weights: f64 = self.terms.iter().map(|(part, freedom)| part.powi(2) / freedom).sum();
        let freedom = (variance.powi(2) / weights).max(1.0);
        let part = Part { mean: self.effect, error: variance.sqrt(), freedom };
        EffectEstimate { value: self.effect, interval: part.interval(level), scatter: self.scatter }
    }
}

/// Standard deviation of the means of runs beyond what the noise of their trials explains; `None` under three runs.
pub fn run_scatter(runs: &[Vec<f64>]) -> Option<f64> {
    if runs.len() < 3 || runs.iter().any(Vec::is_empty) {
        return None;
    }
    let means: Vec<f64> = runs.iter().map(|values| moments(values).0).collect();
    let noise = runs.iter().map(|values| moments(values).1 / values.len() as f64).sum::<f64>();
    Some((moments(&means).1 - noise / runs.len() as f64).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_r() {
        // t.test(b, a) in R of these lists: 95 % interval -0.2119 to 0.8119 around 0.3, df = 7.9925.
        let a = [10.0, 10.4, 9.8, 10.1, 10.2];
        let b = [10.3, 10.9, 10.2, 10.6, 10.0];
        let found = Apart::of(&a, &b).unwrap().at(0.05);
        assert!((found.value - 0.3).abs() < 1e-9);
        let (low, high) = (found.interval.low, found.interval.high);
        assert!((low + high - 0.6).abs() < 1e-9 && low < 0.0 && high > 0.6, "{found:?}");
        assert_eq!(Apart::of(&a[..2], &b), None);
    }

    #[test]
    fn scatter_between_runs_widens_the_interval() {
        let (a, b) = ([1.0, 1.01, 0.99, 1.0], [1.1, 1.11, 1.09, 1.1]);
        let plain = Apart::of(&a, &b).unwrap();
        let wide = plain.with_run_scatter(0.05, 4);
        assert!(plain.at(0.05).interval.low > 0.0 && wide.at(0.05).interval.low < 0.0);
        let runs = [0.9, 1.0, 1.1].map(|mean| vec![mean, mean + 0.001, mean - 0.001]);
        assert!((run_scatter(&runs).unwrap() - 0.1).abs() < 1e-3);
        assert_eq!(run_scatter(&runs[..2]), None);
        let equal = [1.0, 1.0, 1.0].map(|mean| vec![mean, mean + 0.1, mean - 0.1]);
        assert!(run_scatter(&equal).unwrap() < 1e-9);
    }
}
