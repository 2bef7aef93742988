//! Histograms with a bucket per power of two, or per equal steps of it, as the kernel side counts them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts by power of two: bucket 0 holds the value 0, bucket `n` holds `2^(n-1)` to `2^n - 1`.
///
/// With `step_bits` of `b` each power of two has `2^b` buckets of the same width, and each value below `2^b` one of its own.
///
/// Quantiles are bounds: the kernel keeps only the bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Log2 {
    /// Counts, without the empty buckets at the end.
    pub buckets: Vec<u64>,
    /// Binary logarithm of the number of buckets of a power of two.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub step_bits: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(bits: &u32) -> bool {
    *bits == 0
}

impl Log2 {
    /// From all the buckets that the kernel has, one for each power of two.
    pub fn of(buckets: &[u64]) -> Self {
        Self::with_steps(buckets, 0)
    }

    /// From all the buckets that the kernel has, `2^step_bits` for each power of two.
    pub fn with_steps(buckets: &[u64], step_bits: u32) -> Self {
        let used = buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Self { buckets: buckets[..used].to_vec(), step_bits }
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What a bucket holds, both ends included.
    pub fn range(&self, bucket: usize) -> (u64, u64) {
        let bucket = bucket as u64;
        // Its power of two, counted from the first that has steps, and the step in it.
        let (power, step) = (bucket >> self.step_bits, bucket & ((1 << self.step_bits) - 1));
        if power == 0 {
            return (bucket, bucket);
        }
        // The last power of two that 64 bits hold.
        let Some(width) = 1u64.checked_shl(power as u32 - 1) else { return (u64::MAX, u64::MAX) };
        let low = width.saturating_mul((1 << self.step_bits) + step);
        (low, low.saturating_add(width - 1))
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
        Some(self.range(bucket))
    }

    /// The `q` quantile, as if the values of a bucket were spread evenly over it; `None` when empty.
    ///
    /// A change of the quantile within a bucket is seen so; its value is not more certain than [`Log2::quantile`] says.
    pub fn interpolated(&self, q: f64) -> Option<f64> {
        let rank = (q * self.count() as f64).max(0.0);
        let mut before = 0.0;
        for (bucket, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (count, (low, high)) = (*count as f64, self.range(bucket));
            if before + count >= rank {
                let width = (high - low) as f64 + 1.0;
                return Some(low as f64 + width * (rank - before) / count);
            }
            before += count;
        }
        None
    }

    /// Adds the counts of another that has the same steps, or of any other to an empty one.
    pub fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() {
            self.step_bits = other.step_bits;
        }
        debug_assert_eq!(self.step_bits, other.step_bits);
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

    /// As `step_bucket` of the programs (bpf/log2.h).
    fn bucket_of(value: u64, step_bits: u32) -> usize {
        let power = 64 - value.leading_zeros();
        if power <= step_bits {
            return value as usize;
        }
        let step = (value >> (power - 1 - step_bits)) & ((1 << step_bits) - 1);
        (u64::from((power - step_bits) << step_bits) | step) as usize
    }

    #[test]
    fn an_empty_one_has_no_quantile() {
        assert_eq!(Log2::of(&[0; 40]), Log2::default());
        assert_eq!(Log2::default().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn a_quantile_lies_in_its_range(
            mut values in proptest::collection::vec((any::<u64>(), 0u32..64).prop_map(|(value, bits)| value >> bits), 1..200),
            q in 0.0f64..1.0,
            step_bits in 0u32..5,
        ) {
            let mut buckets = [0u64; 65 << 4];
            for value in &values {
                buckets[bucket_of(*value, step_bits)] += 1;
            }
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let histogram = Log2::with_steps(&buckets, step_bits);
            let (low, high) = histogram.quantile(q).unwrap();
            let within = histogram.interpolated(q).unwrap();
            prop_assert!(within >= low as f64 * 0.999_999 && within <= (high as f64 + 1.0) * 1.000_001);
            prop_assert!((low..=high).contains(&values[rank - 1]));
            prop_assert!(high - low <= low >> step_bits, "{low} to {high}");
        }

        #[test]
        fn added_is_counted_together(a in proptest::collection::vec(0u64..9, 0..40), b in proptest::collection::vec(0u64..9, 0..40)) {
            let mut both = Log2::of(&a);
            both.add(&Log2::of(&b));
            prop_assert_eq!(both.count(), a.iter().sum::<u64>() + b.iter().sum::<u64>());
        }
    }
}
