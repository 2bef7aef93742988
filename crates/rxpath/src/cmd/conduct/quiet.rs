//! The time around a start in which this process does not wake by itself: many senders may begin at one instant on few CPUs, and
//! each line that a process prints then makes some of them wait.

/// From so long before the start. **Unit** ns.
const BEFORE_NS: u64 = 5_000_000;
/// Until so long after it. **Unit** ns.
const AFTER_NS: u64 = 15_000_000;

/// The end of a wait, moved out of the time around a start. It moves by the length of that time: processes that would have woken
/// one after another still do.
pub fn outside(until_ns: u64, start_ns: Option<u64>) -> u64 {
    let around = |at_ns: u64| at_ns.saturating_sub(BEFORE_NS)..at_ns.saturating_add(AFTER_NS);
    let is_around = start_ns.is_some_and(|at_ns| around(at_ns).contains(&until_ns));
    if is_around { until_ns.saturating_add(BEFORE_NS + AFTER_NS) } else { until_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_before_the_time_around_a_start_or_after_it() {
        let at_ns = 1_000_000_000;
        let moved = |until_ns| outside(until_ns, Some(at_ns)) - until_ns;
        assert_eq!((moved(at_ns - BEFORE_NS - 1), moved(at_ns + AFTER_NS)), (0, 0));
        for until_ns in [at_ns - BEFORE_NS, at_ns, at_ns + AFTER_NS - 1] {
            assert_eq!(moved(until_ns), BEFORE_NS + AFTER_NS);
            assert!(outside(until_ns, Some(at_ns)) >= at_ns + AFTER_NS);
            assert_eq!(outside(until_ns, None), until_ns);
        }
        // A start that is long past.
        assert_eq!(outside(at_ns, Some(1)), at_ns);
    }
}
