//! The CPU share of a reader against `n` tasks of nice 0 that always run, on one CPU and in one group.
//!
//! **Source** `sched_prio_to_weight` (kernel/sched/core.c) for CFS and EEVDF; `task_timeslice` (kernel/sched.c of
//! 2.6.8 to 2.6.22) for the O(1) scheduler of the published experiments.
//! **Caveat** nice acts only inside a scheduling group: sched_autogroup and cgroups come first.

use crate::inputs::{Inputs, Outputs, Problem};

/// Weights of nice -20 to 19.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];
/// Weight and O(1) time slice of nice 0.
const WEIGHT_0: f64 = 1024.0;
const SLICE_0_MS: u64 = 100;

/// The weight of a nice value from -20 to 19.
pub fn weight(nice: i64) -> Option<f64> {
    WEIGHTS.get(usize::try_from(nice.saturating_add(20)).ok()?).map(|weight| f64::from(*weight))
}

/// The fair share against `others` tasks of nice 0.
pub fn fair(nice: i64, others: u64) -> Option<f64> {
    weight(nice).map(|weight| weight / (weight + WEIGHT_0 * others as f64))
}

/// The O(1) scheduler's time slice in ms: 5 ms per step below 19, four times that for negative nice values.
pub fn slice_ms(nice: i64) -> u64 {
    let steps = (20 - nice) as u64;
    if nice < 0 { steps * 20 } else { steps * 5 }
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let others = inputs.whole("n", 0..=1_000_000_000)?;
    let nice = inputs.value("nice")?.as_f64().filter(|nice| nice.fract() == 0.0);
    let nice = nice.map(|nice| nice as i64);
    let share = nice.and_then(|nice| Some((nice, fair(nice, others)?)));
    let Some((nice, share)) = share else {
        return Err(Problem::bad("nice", "it must be a whole number from -20 to 19"));
    };
    let (run, stall) = (slice_ms(nice), SLICE_0_MS * others);
    Ok(Outputs::default()
        .with("share_fair", share)
        .with("share_o1", run as f64 / (run + stall) as f64)
        .value("o1_run_ms", run)
        .value("o1_stall_ms", stall))
}
