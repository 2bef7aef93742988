//! HDR histograms with three significant digits: recorded without allocation, merged without loss, kept as V2 logs.
//!
//! G. Tene's HdrHistogram; a value is kept to one part in a thousand over the whole range.

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use thiserror::Error;

/// Longest time that [`Histogram::of_times`] resolves: one minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// Significant decimal digits.
const DIGITS: u8 = 3;

/// A histogram of nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub(crate) hdr: Hdr<u64>,
    /// Values above the range, recorded at its upper end.
    pub(crate) clipped: u64,
}

/// A histogram that cannot be made or read.
#[derive(Debug, Error)]
#[error("histogram: {0}")]
pub struct HistogramError(String);

impl Default for Histogram {
    /// As [`Histogram::of_times`].
    fn default() -> Self {
        Self::of_times()
    }
}

impl Histogram {
    /// An empty histogram of 1 ns to `highest_ns`; all its memory is taken and written here, so recording meets no page fault.
    pub fn up_to(highest_ns: u64) -> Result<Self, HistogramError> {
        let hdr = Hdr::new_with_bounds(1, highest_ns.max(2), DIGITS)
            .map_err(|e| HistogramError(e.to_string()))?;
        Ok(Self { hdr, clipped: 0 })
    }

    /// An empty histogram of times from 1 ns to a minute. **Cost** about 220 KiB.
    // Constant bounds, held by a test: there is no failure that a caller could meet.
    #[expect(clippy::expect_used, clippy::missing_panics_doc)]
    pub fn of_times() -> Self {
        Self::up_to(LONGEST_NS).expect("the bounds are valid")
    }

    /// Records a value; above the range it is recorded at its end and counted as clipped. **Cost** some ns.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Records `n` equal values.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if ns > self.hdr.high() {
            self.clipped += n;
        }
        self.hdr.saturating_record_n(ns, n);
    }

    /// Adds another histogram's values.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.clipped += other.clipped;
        self.hdr.add(&other.hdr).map_err(|e| HistogramError(e.to_string()))
    }

    /// Values recorded.
    pub fn count(&self) -> u64 {
        self.hdr.len()
    }

    /// Values that were above the range.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Mean in ns; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        self.hdr.mean()
    }

    /// Standard deviation in ns; 0 when empty.
    pub fn stdev_ns(&self) -> f64 {
        self.hdr.stdev()
    }

    /// The `q` quantile in ns; 0 when empty.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        self.hdr.value_at_quantile(q)
    }

    /// Largest value in ns; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.hdr.max()
    }

    /// Values with how many there are of each, ascending, within the histogram's resolution.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        self.hdr.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    /// Values from `low_ns` to `high_ns`, both included, within the histogram's resolution.
    pub fn count_within(&self, low_ns: u64, high_ns: u64) -> u64 {
        self.hdr.count_between(low_ns, high_ns)
    }

    /// The V2 encoding of the HdrHistogram project. **Caveat** how many values were above the range is not in it.
    pub fn to_v2(&self) -> Result<Vec<u8>, HistogramError> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.hdr, &mut bytes)
            .map_err(|e| HistogramError(e.to_string()))?;
        Ok(bytes)
    }

    /// Reads the V2 encoding.
    pub fn from_v2(bytes: &[u8]) -> Result<Self, HistogramError> {
        let hdr = Deserializer::new()
            .deserialize(&mut std::io::Cursor::new(bytes))
            .map_err(|e| HistogramError(format!("{e:?}")))?;
        Ok(Self { hdr, clipped: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_above_the_range_are_counted_and_not_lost() {
        let mut histogram = Histogram::up_to(1_000_000).unwrap();
        histogram.record(5);
        histogram.record(u64::MAX);
        histogram.record_n(u64::MAX, 3);
        assert_eq!((histogram.count(), histogram.clipped()), (5, 4));
        assert_eq!(Histogram::of_times().count(), 0);
        assert_eq!((histogram.count_within(0, 10), histogram.count_within(6, 10)), (1, 0));
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Histogram::from_v2(b"nonsense").is_err());
        assert!(Histogram::from_v2(&[]).is_err());
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_thousandth(values in proptest::collection::vec(1u64..60_000_000_000, 1..200)) {
            let mut histogram = Histogram::up_to(60_000_000_000).unwrap();
            for v in &values {
                histogram.record(*v);
            }
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for q in [0.5, 0.9, 0.99] {
                let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
                let (got, want) = (histogram.quantile_ns(q) as f64, sorted[rank - 1] as f64);
                prop_assert!((got - want).abs() <= want * 1e-3 + 1.0, "{got} {want}");
            }
        }

        #[test]
        fn merged_is_recorded_together(
            a in proptest::collection::vec(1u64..1_000_000, 0..50), b in proptest::collection::vec(1u64..1_000_000, 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut histogram = Histogram::up_to(1_000_000).unwrap();
                for v in values {
                histogram.record(*v);
            }
                histogram
            };
            let mut merged = of(&a);
            merged.merge(&of(&b)).unwrap();
            prop_assert_eq!(&merged, &of(&[a, b].concat()));
            prop_assert_eq!(Histogram::from_v2(&merged.to_v2().unwrap()).unwrap(), merged);
        }
    }
}
