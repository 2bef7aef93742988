//! Rates of counters between two snapshots, by their names.

use rxpath_core::{Fact, PathSide};
use rxpath_record::counters::Snapshot;

/// Counters at both ends of a window.
pub struct Rates<'a> {
    pub before: &'a Snapshot,
    pub now: &'a Snapshot,
    pub window_s: f64,
}

impl Rates<'_> {
    /// How far the counters of these names moved together, per second; see [`moved`].
    pub fn per_s(&self, names: &[&str]) -> Fact<f64> {
        moved(self.before, self.now, names).map(|count| count as f64 / self.window_s)
    }

    /// One counter of `softnet_stat` over these CPUs, per second.
    pub fn softnet_per_s(&self, counter: &str, cpus: impl Iterator<Item = u32>) -> Fact<f64> {
        let names: Vec<String> = cpus.map(|cpu| format!("softnet.cpu{cpu}.{counter}")).collect();
        let steps = names.iter().filter_map(|name| step(self.before, self.now, name));
        // 32 bits that wrap, each CPU for itself.
        let steps: Vec<u64> = steps.map(|by| u64::from(by as u32)).collect();
        if steps.is_empty() {
            let why = self.now.gaps.get("softnet");
            return Fact::absent(why.map_or("this kernel does not count it", String::as_str));
        }
        Fact::ok(steps.iter().sum::<u64>() as f64 / self.window_s)
    }
}

/// How far counters moved together between two snapshots; those that this kernel lacks are left out, and none at all is a gap.
pub fn moved(before: &Snapshot, now: &Snapshot, names: &[&str]) -> Fact<u64> {
    let steps: Vec<u64> = names.iter().filter_map(|name| step(before, now, name)).collect();
    if steps.is_empty() {
        return Fact::absent("this kernel does not count it");
    }
    // A counter that went back was reset with its namespace's device: nothing is known of it.
    Fact::ok(steps.into_iter().map(|by| if by > u64::MAX / 2 { 0 } else { by }).sum())
}

fn step(before: &Snapshot, now: &Snapshot, name: &str) -> Option<u64> {
    let name = format!("{}/{name}", PathSide::Machine);
    Some(now.values.get(&name)?.wrapping_sub(*before.values.get(&name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(values: &[(&str, u64)]) -> Snapshot {
        let named =
            values.iter().map(|(name, value)| (format!("{}/{name}", PathSide::Machine), *value));
        Snapshot { values: named.collect(), ..Snapshot::default() }
    }

    #[test]
    fn what_stood_still_is_zero_and_what_is_missing_is_a_gap() {
        let before = snapshot(&[("a", 5), ("b", 7)]);
        let now = snapshot(&[("a", 5), ("b", 9)]);
        let rates = Rates { before: &before, now: &now, window_s: 2.0 };
        assert_eq!(moved(&before, &now, &["a"]), Fact::ok(0));
        assert_eq!(rates.per_s(&["a", "b", "c"]), Fact::ok(1.0));
        assert!(rates.per_s(&["c"]).gap().is_some());
    }

    #[test]
    fn softnet_counters_wrap_at_32_bits() {
        let before =
            snapshot(&[("softnet.cpu0.dropped", 0xffff_fff0), ("softnet.cpu1.dropped", 1)]);
        let now = snapshot(&[("softnet.cpu0.dropped", 0x10), ("softnet.cpu1.dropped", 1)]);
        let rates = Rates { before: &before, now: &now, window_s: 1.0 };
        assert_eq!(rates.softnet_per_s("dropped", 0..2), Fact::ok(32.0));
        assert!(rates.softnet_per_s("flow_limit", 0..2).gap().is_some());
    }
}
