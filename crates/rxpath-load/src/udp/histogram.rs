//! Times in histograms of fixed size: 3 significant digits, nothing allocated after creation.

use hdrhistogram::Histogram;

use crate::udp::result::{Lateness, Quantiles};

/// Longest time told apart; longer ones count as this.
const MAX_NS: u64 = 60_000_000_000;

/// Times in ns.
#[derive(Clone, Debug)]
pub struct Times(Option<Histogram<u64>>);

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

impl Times {
    /// An empty histogram of 0 ns to 60 s. **Cost** about 220 KiB.
    pub fn new() -> Self {
        // These bounds are valid; were they not, the histogram would stay empty.
        Self(Histogram::new_with_bounds(1, MAX_NS, 3).ok())
    }

    /// Adds `n` equal times.
    #[inline]
    pub fn add(&mut self, ns: u64, n: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record_n(ns, n);
        }
    }

    /// Adds another thread's histogram.
    pub fn merge(&mut self, other: &Self) {
        if let (Some(mine), Some(other)) = (&mut self.0, &other.0) {
            // Equal bounds always fit.
            let _ = mine.add(other);
        }
    }

    /// The quantiles in us; `None` when nothing was recorded.
    pub fn quantiles_us(&self) -> Option<Quantiles> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at = |q| histogram.value_at_quantile(q) as f64 / 1000.0;
        Some(Quantiles {
            samples_count: histogram.len(),
            mean: histogram.mean() / 1000.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1000.0,
        })
    }

    /// The three numbers of a lateness; `None` when nothing was recorded.
    pub fn lateness_us(&self) -> Option<Lateness> {
        let all = self.quantiles_us()?;
        Some(Lateness { p50: all.p50, p99: all.p99, max: all.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_us() {
        let mut times = Times::new();
        times.add(1_000, 99);
        let mut other = Times::new();
        other.add(1_000_000, 1);
        times.merge(&other);
        let q = times.quantiles_us().unwrap();
        assert_eq!(q.samples_count, 100);
        assert!((q.p50 - 1.0).abs() < 0.01 && (q.max - 1000.0).abs() < 1.0, "{q:?}");
    }

    #[test]
    fn nothing_recorded_is_nothing_said() {
        assert!(Times::new().quantiles_us().is_none());
    }

    #[test]
    fn too_long_counts_as_longest() {
        let mut times = Times::new();
        times.add(u64::MAX, 1);
        assert!(times.quantiles_us().unwrap().max >= 60e6);
    }
}
