//! Counting by the buckets of a histogram, for loops in which a histogram's bookkeeping is most of the cost.
//!
//! The same buckets as [`Histogram`], so the result equals direct recording: each value `v` below 2048 has its own
//! bucket, and each further power of two has 1024 buckets.

use crate::Histogram;

/// Bits of a value that a bucket keeps: three decimal digits.
const BITS: u32 = 11;

/// Counts by bucket. **Cost** a shift and an addition per value.
#[derive(Clone, Debug)]
pub struct Buckets {
    counts: Vec<u64>,
    highest_ns: u64,
    /// Its bucket.
    highest: usize,
    clipped: u64,
    histogram: Histogram,
}

impl Buckets {
    /// Buckets whose counts are added to `histogram` in the end; all memory is taken here.
    pub fn of(histogram: Histogram) -> Self {
        let highest_ns = histogram.hdr.high();
        let counts = vec![0; histogram.hdr.distinct_values()];
        Self { counts, highest_ns, highest: bucket(highest_ns), clipped: 0, histogram }
    }

    /// Counts a value; above the range it counts as clipped, too, and beyond the last bucket at the range's end.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.clipped += u64::from(ns > self.highest_ns);
        let at = bucket(ns);
        let at = if at < self.counts.len() { at } else { self.highest };
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
    }

    /// The histogram that recording each value would have made.
    pub fn into_histogram(mut self) -> Histogram {
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.histogram.hdr.saturating_record_n(first_of(at), *count);
        }
        self.histogram.clipped += self.clipped;
        self.histogram
    }
}

/// The bucket of a value.
#[inline]
pub fn bucket(ns: u64) -> usize {
    // Of a value with a bucket of its own no bit is shifted out.
    let shift = u64::BITS - BITS - (ns | ((1 << BITS) - 1)).leading_zeros();
    ((u64::from(shift) << (BITS - 1)) + (ns >> shift)) as usize
}

/// The lowest value of a bucket.
pub fn first_of(bucket: usize) -> u64 {
    let half = 1_u64 << (BITS - 1);
    let at = bucket as u64;
    if at < 2 * half {
        return at;
    }
    let shift = at / half - 1;
    (at - shift * half) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_comes_out_is_what_direct_recording_makes(
            values in proptest::collection::vec(
                prop_oneof![0_u64..5000, 0_u64..2_000_000_000, Just(u64::MAX), Just(1_000_000)], 0..300),
            highest in 1_000_000_u64..100_000_000_000,
        ) {
            let mut direct = Histogram::up_to(highest).unwrap();
            let mut buckets = Buckets::of(direct.clone());
            for value in values {
                buckets.record(value);
                direct.record(value);
            }
            let made = buckets.into_histogram();
            prop_assert_eq!(made.clipped(), direct.clipped());
            prop_assert_eq!(made.to_v2().unwrap(), direct.to_v2().unwrap());
            for q in [0.0, 0.5, 0.99, 1.0] {
                prop_assert_eq!(made.quantile_ns(q), direct.quantile_ns(q));
            }
            prop_assert_eq!((made.max_ns(), made.mean_ns().to_bits()), (direct.max_ns(), direct.mean_ns().to_bits()));
        }

        #[test]
        fn each_bucket_begins_at_its_first_value(ns in 0_u64..1 << 50) {
            let at = bucket(ns);
            prop_assert!(first_of(at) <= ns && ns < first_of(at + 1));
            prop_assert_eq!(bucket(first_of(at)), at);
        }
    }
}
