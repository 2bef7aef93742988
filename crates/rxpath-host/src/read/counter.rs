//! How far a counter moved between two readings, when it wraps and when it was reset.

use std::time::Duration;

/// The shortest time between two readings that is judged: some timer ticks and NAPI rounds, and no wait that a user notices.
pub const SHORT_WINDOW: Duration = Duration::from_millis(250);

/// How many bits the kernel or the driver keeps of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits: `softnet_stat` (`unsigned int`, printed `%08x`), `/proc/softirqs`, `/proc/interrupts`, some drivers.
    U32,
    /// A sum of counters of 32 bits that wrap one by one: those of connection tracking, over CPUs
    /// (`struct ip_conntrack_stat`, include/linux/netfilter/nf_conntrack_common.h). The low 32 bits of the sum wrap as each does.
    U32Sum,
    /// 64 bits: SNMP counters, `rtnl_link_stats64`, everything else.
    U64,
}

impl Width {
    /// The largest reading.
    pub fn max(self) -> u64 {
        match self {
            Self::U32 => u64::from(u32::MAX),
            Self::U32Sum | Self::U64 => u64::MAX,
        }
    }

    /// How far it moved from `before` to `after`, over a wrap if there was one.
    ///
    /// `None` when it went back by more than one wrap explains: the device, driver or namespace started again. `None`, too,
    /// when a reading does not fit in the width: it is not such a counter.
    ///
    /// A reading that went back is a wrap when the distance forward is less than half of the width, a
    /// reset otherwise: at 10 million packets a second 32 bits wrap in 429 s, half of them in 214 s, so
    /// readings closer together than that are never mistaken. A 64-bit counter that went back was reset.
    ///
    /// **Caveat** a counter that was reset from its upper half to near 0 looks like a wrap; more than one
    /// wrap between two readings can't be seen.
    pub fn step(self, before: u64, after: u64) -> Option<u64> {
        if self == Self::U32Sum {
            let low = |sum: u64| u64::from(sum as u32);
            return Self::U32.step(low(before), low(after));
        }
        if before > self.max() || after > self.max() {
            return None;
        }
        if after >= before {
            return Some(after - before);
        }
        let forward = (self.max() - before).saturating_add(after).saturating_add(1);
        (self == Self::U32 && forward <= self.max() / 2).then_some(forward)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_32_bit_counter_wraps_and_a_64_bit_counter_resets() {
        assert_eq!(Width::U32.step(0xffff_fff0, 0x10), Some(0x20));
        assert_eq!(Width::U64.step(0xffff_fff0, 0x10), None);
        assert_eq!(Width::U64.step(u64::MAX, 0), None);
        assert_eq!(Width::U32.step(5_000, 3), None);
        // Two CPUs: one had 2^32 - 10 and has 90, the other stands at 1000.
        assert_eq!(Width::U32Sum.step((1 << 32) - 10 + 1000, 90 + 1000), Some(100));
        assert_eq!(Width::U32Sum.step(7, 12), Some(5));
        assert_eq!(Width::U32Sum.step(5_000, 3), None);
        // No counter of 32 bits: its distance is one that such a counter may move.
        assert_eq!(Width::U32.step(1 << 33, (1 << 33) + 3), None);
    }

    proptest! {
        #[test]
        fn forward_steps_are_exact(before: u64, by: u64) {
            let Some(after) = before.checked_add(by) else { return Ok(()) };
            prop_assert_eq!(Width::U64.step(before, after), Some(by));
        }

        #[test]
        fn no_step_is_larger_than_the_width(before: u64, after: u64) {
            if let Some(by) = Width::U32.step(before, after) {
                prop_assert!(u32::try_from(by).is_ok());
            }
        }
    }
}
