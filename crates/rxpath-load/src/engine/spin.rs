//! Simulated work: CPU work of a known length, not a wait for a clock.
//!
//! A chain of dependent multiplications takes the same number of cycles each time. When a softirq or
//! another task takes the CPU meanwhile, the work takes longer, as real work would.

use crate::engine::clock;

fn chain(steps: u64) {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..steps {
        x = std::hint::black_box(x.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
    }
}

/// How many steps of the chain fit into a microsecond on the calling thread's CPU.
///
/// The fastest of many short runs counts: what disturbs a run only makes it longer.
/// **Cost** about 4 ms.
fn steps_per_us() -> f64 {
    const STEPS: u64 = 20_000;
    let fastest = (0..100)
        .map(|_| {
            let start = clock::now_ns();
            chain(STEPS);
            clock::now_ns() - start
        })
        .min()
        .unwrap_or(1)
        .max(1);
    STEPS as f64 * 1000.0 / fastest as f64
}

/// The steps for this much work.
fn steps(work_ns: u64, steps_per_us: f64) -> u64 {
    (work_ns as f64 * steps_per_us / 1000.0).round() as u64
}

/// The steps for this much work on the calling thread's CPU; without work nothing is measured.
pub fn steps_of(work_ns: u64) -> u64 {
    if work_ns > 0 { steps(work_ns, steps_per_us()) } else { 0 }
}

/// Does that many steps.
#[inline]
pub fn run(steps: u64) {
    if steps > 0 {
        chain(steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_proportional() {
        let per_us = steps_per_us();
        let (one, ten) = (steps(10_000, per_us) as f64, steps(100_000, per_us) as f64);
        assert!(one > 0.0 && (ten / one - 10.0).abs() < 0.01, "{one} {ten}");
    }

    /// Nanoseconds of a millisecond of work in its fastest of 20 runs.
    fn fastest_of_a_millisecond() -> f64 {
        let steps = steps_of(1_000_000);
        let fastest = (0..20)
            .map(|_| {
                let start = clock::now_ns();
                run(steps);
                clock::now_ns() - start
            })
            .min()
            .unwrap();
        // The clock of the CPU may have become faster since the calibration.
        let after = steps_of(1_000_000);
        fastest as f64 * (after as f64 / steps as f64).max(1.0)
    }

    #[test]
    fn work_is_never_shorter_than_asked_by_much() {
        // A CPU whose sibling pauses in the middle of a round is faster there than before and after it.
        let rounds: Vec<f64> = (0..10).map(|_| fastest_of_a_millisecond()).collect();
        assert!(rounds.iter().any(|&ns| ns > 900_000.0), "{rounds:?} ns of 1,000,000");
    }
}
