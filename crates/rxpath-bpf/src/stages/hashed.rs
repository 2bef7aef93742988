//! Packets of each CPU by their hash: whether nearly all are of one flow.

use crate::bytes::Fields;

/// `HASHES` of the program.
const BUCKETS: usize = 64;

/// Bytes of `struct cpu_row` before them.
const TO_BUCKETS: usize = 9544;

/// Fewer packets may be a few bursts: the 64 of a poll are often of one sender. A full CPU has as many in a turn of 100 ms even if
/// each packet takes 0.2 ms.
const FEWEST: u64 = 500;

/// Packets of a CPU while packets were looked at, since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedPackets {
    /// The CPU.
    pub cpu: u32,
    /// All packets; aggregates of GRO count as one.
    pub received: u64,
    /// By hash of addresses and ports, those that have one: two flows have the same bucket with a probability of 1 in 64.
    pub buckets: [u64; BUCKETS],
}

impl HashedPackets {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else { return self.clone() };
        let added = |at: usize| self.buckets[at].saturating_sub(earlier.buckets[at]);
        Self {
            cpu: self.cpu,
            received: self.received.saturating_sub(earlier.received),
            buckets: std::array::from_fn(added),
        }
    }

    /// The share of the fullest bucket in all packets; none of fewer than 500 packets.
    ///
    /// **Caveat** packets without such a hash are in no bucket: the share of the largest flow may be larger.
    pub fn one_flow_ratio(&self) -> Option<f64> {
        let most = self.buckets.iter().copied().max().unwrap_or(0);
        // The CPU goes on while it is read: a bucket is read after the sum.
        (self.received >= FEWEST).then(|| (most as f64 / self.received as f64).min(1.0))
    }
}

/// `struct cpu_row`.
pub(super) fn row(cpu: u32, value: &[u8]) -> HashedPackets {
    let received = Fields::of(value).u64();
    let mut fields = Fields::of(value);
    fields.skip(TO_BUCKETS);
    HashedPackets { cpu, received, buckets: fields.array() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(received: u64, buckets: &[(usize, u64)]) -> HashedPackets {
        let mut all = HashedPackets { cpu: 3, received, buckets: [0; BUCKETS] };
        for (at, packets) in buckets {
            all.buckets[*at] = *packets;
        }
        all
    }

    #[test]
    fn a_row_is_read_by_place() {
        // As many as a row has, with its list.
        let numbers: Vec<u8> = (1..=1520u64).flat_map(u64::to_ne_bytes).collect();
        let read = row(3, &numbers);
        assert_eq!((read.cpu, read.received), (3, 1));
        assert_eq!((read.buckets[0], read.buckets[63]), (1194, 1257));
    }

    #[test]
    fn a_window_has_the_differences_of_all_buckets() {
        let (before, now) =
            (packets(5_000, &[(0, 4_000), (9, 900)]), packets(7_000, &[(0, 4_010), (9, 2_850)]));
        assert_eq!(now.since(Some(&before)), packets(2_000, &[(0, 10), (9, 1_950)]));
        assert_eq!(now.since(None), now);
    }

    #[test]
    fn the_share_is_that_of_the_fullest_bucket_in_all_packets() {
        let ratio =
            |received, buckets: &[(usize, u64)]| packets(received, buckets).one_flow_ratio();
        assert_eq!(ratio(2_000, &[(0, 10), (9, 1_950)]), Some(0.975));
        // Packets without a hash may be of any flow.
        assert_eq!(ratio(4_000, &[(9, 2_000)]), Some(0.5));
        assert_eq!(ratio(2_000, &[]), Some(0.0));
        // Read while more came.
        assert_eq!(ratio(500, &[(9, 501)]), Some(1.0));
        assert_eq!(ratio(499, &[(9, 499)]), None);
        assert_eq!(ratio(0, &[]), None);
    }
}
