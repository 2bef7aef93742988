//! Whether nearly all packets of a CPU are of one flow, as far as the hashes of sampled packets tell.

use std::collections::BTreeMap;

use rxpath_bpf::stages::hashed::HashedPackets;
use rxpath_core::IntoMap;

/// The last reading.
#[derive(Debug, Default)]
pub(super) struct OneFlow {
    before: BTreeMap<u32, HashedPackets>,
}

impl OneFlow {
    /// The share of the largest flow in the packets of each CPU since the last reading; none of a CPU with few packets.
    pub(super) fn since(&mut self, now: Vec<HashedPackets>) -> BTreeMap<u32, f64> {
        let before = &self.before;
        let share = |now: &HashedPackets| {
            Some((now.cpu, now.since(before.get(&now.cpu)).one_flow_ratio()?))
        };
        let shares = now.iter().filter_map(share).into_map();
        self.before = now.into_iter().map(|row| (row.cpu, row)).into_map();
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpu: u32, received: u64, first: u64) -> HashedPackets {
        let mut buckets = [0; 64];
        buckets[0] = first;
        HashedPackets { cpu, received, buckets }
    }

    #[test]
    fn shares_are_of_each_cpus_packets_since_the_last_reading() {
        let mut flows = OneFlow::default();
        let first = flows.since(vec![row(0, 2_000, 500), row(1, 10, 10)]);
        assert_eq!(first, [(0, 0.25)].into());
        let second = flows.since(vec![row(0, 4_000, 2_500), row(1, 4_010, 10)]);
        assert_eq!(second, [(0, 1.0), (1, 0.0)].into());
        // Too few since then.
        assert_eq!(flows.since(vec![row(0, 4_400, 2_900), row(1, 4_010, 10)]), BTreeMap::new());
    }
}
