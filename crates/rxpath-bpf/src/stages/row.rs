//! How the rows of the program are read: stages and their outliers.

use rxpath_core::Log2;
use rxpath_core::measured::{Outlier, StageTimes};

use crate::bytes::Fields;

/// Of each latency: sixteen in a power of two, `STEP_BITS` and `BUCKETS` of the program.
const BUCKETS: usize = 592;
const STEP_BITS: u32 = 4;

/// `struct cpu_row`.
pub(super) fn add_row(stages: &mut [StageTimes; 2], sums: &mut [u64; 2], value: &[u8]) {
    let mut f = Fields::of(value);
    let [_received, untimed] = f.array::<2>();
    stages[0].untimed_count += untimed;
    let (counts, totals, longest) = (f.array::<2>(), f.array::<2>(), f.array::<2>());
    for (at, stage) in stages.iter_mut().enumerate() {
        stage.latencies_count += counts[at];
        sums[at] += totals[at];
        stage.max_ns = stage.max_ns.max(longest[at]);
        stage.latency_ns.add(&Log2::with_steps(&f.array::<BUCKETS>(), STEP_BITS));
    }
}

/// `struct cpu_row`: samples that did not fit.
pub(super) fn lost(value: &[u8]) -> u64 {
    let mut f = Fields::of(value);
    f.skip(9536);
    f.u64()
}

/// `struct sample_key` and `struct sample`.
pub(super) fn outlier(key: &[u8], value: &[u8]) -> (usize, Outlier) {
    let mut k = Fields::of(key);
    let (stage, _bucket, protocol, port) = (k.u32(), k.u32(), k.u32(), k.u32());
    let mut f = Fields::of(value);
    let (t_ns, latency_ns, cpu, pid) = (f.u64(), f.u64(), f.u32(), f.u32());
    let (ifindex, netns, comm) = (f.u32(), f.u32(), f.text(16));
    let task = format!("{comm} ({pid})");
    let (port, pid) = (port as u16, pid as i32);
    let outlier = Outlier { t_ns, latency_ns, cpu, protocol, port, ifindex, netns, task, pid };
    (stage as usize, outlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_cpus_are_added() {
        let numbers: Vec<u8> = (1..=1193u64).flat_map(u64::to_ne_bytes).collect();
        let mut stages = [StageTimes::default(), StageTimes::default()];
        let mut sums = [0; 2];
        add_row(&mut stages, &mut sums, &numbers);
        add_row(&mut stages, &mut sums, &numbers);
        assert_eq!((stages[0].latencies_count, stages[1].latencies_count), (6, 8));
        assert_eq!((sums, stages[1].max_ns), ([10, 12], 8));
        assert_eq!(stages[0].latency_ns.count(), 2 * (9..601).sum::<u64>());
        assert_eq!((stages[0].untimed_count, lost(&numbers)), (4, 1193));
    }
}
