//! The quantiles of a histogram of times, as a result reports them.

use std::borrow::Borrow;

use rxpath_stats::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Quantiles of a histogram of times, with its two ends named by the field that holds it. **Unit** us.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Values recorded.
    pub samples_count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    #[serde(default)]
    pub stdev: f64,
    /// Smallest.
    #[serde(default)]
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile.
    #[serde(default)]
    pub p9999: f64,
    /// Largest.
    pub max: f64,
}

impl Quantiles {
    /// Of a histogram of ns; `None` when nothing was recorded.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        if histogram.count() == 0 {
            return None;
        }
        let at = |q| histogram.quantile_ns(q) as f64 / 1000.0;
        Some(Self {
            samples_count: histogram.count(),
            mean: histogram.mean_ns() / 1000.0,
            stdev: histogram.stdev_ns() / 1000.0,
            min: at(0.0),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: histogram.max_ns() as f64 / 1000.0,
        })
    }
}

/// The histograms of several threads as one.
pub fn merged(parts: impl IntoIterator<Item = impl Borrow<Histogram>>) -> Histogram {
    let mut all = Histogram::of_times();
    for part in parts {
        // Equal bounds always fit.
        let _ = all.merge(part.borrow());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_us() {
        let mut times = Histogram::of_times();
        times.record_n(1_000, 99);
        let mut other = Histogram::of_times();
        other.record(1_000_000);
        let q = Quantiles::of(&merged([&times, &other])).unwrap();
        assert_eq!(q.samples_count, 100);
        assert!((q.p50 - 1.0).abs() < 0.01 && (q.max - 1000.0).abs() < 1.0, "{q:?}");
        assert!((q.stdev - 99.4).abs() < 1.0, "{q:?}");
    }

    #[test]
    fn nothing_recorded_is_nothing_said() {
        assert!(Quantiles::of(&Histogram::of_times()).is_none());
    }
}
