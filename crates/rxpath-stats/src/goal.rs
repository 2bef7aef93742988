//! Was a benchmark's goal reached? Only if the whole interval lies on the goal's side: a noisy machine reaches nothing.

use crate::bootstrap::ConfidenceInterval;
use crate::looks::{ERROR, Looks};
use crate::paired::{EffectEstimate, Paired};

/// Whether a goal was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The whole interval lies on the goal's side.
    Yes,
    /// The whole interval lies on the other side.
    No,
    /// The interval holds both.
    Unknown,
}

/// Values of blocks against a goal from `low` to `high`; `None` under three values, which give no interval.
pub fn judge(values: &[f64], goal: ConfidenceInterval) -> Option<(EffectEstimate, Reached)> {
    let level = Looks::of(values.len(), values.len()).level(ERROR);
    let found = Paired::of(values)?.at(level);
    let ConfidenceInterval { low, high } = found.interval;
    let reached = if goal.low <= low && high <= goal.high {
        Reached::Yes
    } else if high < goal.low || low > goal.high {
        Reached::No
    } else {
        Reached::Unknown
    };
    Some((found, reached))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_reaches_no_goal() {
        let at_most = |values: &[f64], limit: f64| {
            judge(values, ConfidenceInterval { low: f64::NEG_INFINITY, high: limit })
                .map(|(_, reached)| reached)
        };
        let quiet = [0.010, 0.012, 0.009, 0.011, 0.010, 0.012];
        assert_eq!(at_most(&quiet, 0.02), Some(Reached::Yes));
        assert_eq!(at_most(&quiet, 0.005), Some(Reached::No));
        // An interval around 0 is no proof of "no cost".
        let noisy = [-0.14, 0.10, 0.02, -0.06, 0.09, -0.01];
        assert_eq!(at_most(&noisy, 0.01), Some(Reached::Unknown));
        assert_eq!(at_most(&[0.0, 0.0], 1.0), None);
    }
}
