//! How often NET_RX ended with work left, its budget or its time used up, since a moment.

use rxpath_host::Root;
use rxpath_host::read::procfs::softnet;

/// `time_squeeze` of each CPU at a moment.
///
/// **Source** `/proc/net/softnet_stat`; net/core/dev.c `net_rx_action`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Squeezed(Vec<(u32, u32)>);

impl Squeezed {
    /// Now; of no CPU where it can't be read.
    pub fn now() -> Self {
        let lines = softnet::read(&Root::host()).unwrap_or_default();
        Self(lines.into_iter().map(|(cpu, line)| (cpu, line.time_squeeze)).collect())
    }

    /// How often on this CPU since an earlier moment; none where one of them could not be read.
    pub fn since(&self, earlier: &Self, cpu: u32) -> Option<u64> {
        // The kernel's counter has 32 bits.
        Some(u64::from(self.of(cpu)?.wrapping_sub(earlier.of(cpu)?)))
    }

    fn of(&self, cpu: u32) -> Option<u32> {
        self.0.iter().find(|(of, _)| *of == cpu).map(|(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_wraps_goes_on() {
        let (before, after) =
            (Squeezed(vec![(0, 7), (1, u32::MAX)]), Squeezed(vec![(1, 2), (0, 9)]));
        assert_eq!((after.since(&before, 0), after.since(&before, 1)), (Some(2), Some(3)));
        assert_eq!(after.since(&Squeezed::default(), 0), None);
    }
}
