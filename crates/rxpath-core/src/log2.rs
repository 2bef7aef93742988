//! Histograms with a bucket for each power of two, as the kernel side counts them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts by power of two: bucket 0 holds the value 0, bucket `n` holds `2^(n-1)` to `2^n - 1`.
///
/// Quantiles are bounds: the kernel keeps no more than the bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Log2 {
    /// Counts, without the empty buckets at the end.
    pub buckets: Vec<u64>,
}

impl Log2 {
    /// From all the buckets that the kernel has.
    pub fn of(buckets: &[u64]) -> Self {
        let used = buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Self { buckets: buckets[..used].to_vec() }
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What a bucket holds, both ends included.
    pub fn range(bucket: usize) -> (u64, u64) {
        match bucket {
            0 => (0, 0),
            n if n < 64 => (1 << (n - 1), (1 << n) - 1),
            _ => (1 << 63, u64::MAX),
        }
    }

    /// The range in which the `q` quantile lies; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<(u64, u64)> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|in_it| {
            seen += in_it;
            seen >= rank
        })?;
        Some(Self::range(bucket))
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        let length = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(length, 0);
        for (into, from) in self.buckets.iter_mut().zip(&other.buckets) {
            *into += from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket_of(value: u64) -> usize {
        (64 - value.leading_zeros()) as usize
    }

    #[test]
    fn an_empty_one_has_no_quantile() {
        assert_eq!(Log2::of(&[0; 40]), Log2::default());
        assert_eq!(Log2::default().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn a_quantile_lies_in_its_range(mut values in proptest::collection::vec(any::<u64>(), 1..200), q in 0.0f64..1.0) {
            let mut buckets = [0u64; 65];
            for value in &values {
                buckets[bucket_of(*value)] += 1;
            }
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (low, high) = Log2::of(&buckets).quantile(q).unwrap();
            prop_assert!((low..=high).contains(&values[rank - 1]));
        }

        #[test]
        fn added_is_counted_together(a in proptest::collection::vec(0u64..9, 0..40), b in proptest::collection::vec(0u64..9, 0..40)) {
            let mut both = Log2::of(&a);
            both.add(&Log2::of(&b));
            prop_assert_eq!(both.count(), a.iter().sum::<u64>() + b.iter().sum::<u64>());
        }
    }
}
