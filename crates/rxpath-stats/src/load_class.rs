//! Does a load hold? A load is classified from all trials at it, not from the best or the last one.
//!
//! **Source** RFC 9971 (Multiple Loss Ratio Search), "Load Classification" and "Conditional Throughput" with the code of
//! its appendices. A trial is good or bad; the caller decides which, by loss, latency or both. One bad trial of many may
//! be the machine's fault; one good trial of many may be luck.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a load counts as a bound, and how close the bounds must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchGoal {
    /// Trials of at least this length are full trials. **Unit** s.
    pub final_s: f64,
    /// Length of all trials at a load that is enough to classify it. **Unit** s.
    pub sum_s: f64,
    /// Share of this time that may be bad.
    pub exceed_ratio: f64,
    /// The search ends when the upper bound is above the lower one by this share at most.
    pub width_ratio: f64,
}

/// What the trials at a load say about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It holds, whatever the missing trials would say.
    LowerBound,
    /// It fails, whatever the missing trials would say.
    UpperBound,
    /// More trials are needed.
    #[default]
    Undecided,
}

/// One trial at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialResult {
    /// Its length. **Unit** s.
    pub seconds: f64,
    /// Whether it met the objectives.
    pub is_good: bool,
    /// Share of the load that was lost or not answered.
    pub loss_ratio: f64,
}

/// A load and all trials at it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadTrials {
    /// The load: events per second that the sender offers.
    pub rate: f64,
    /// Its trials in the order of running.
    pub trials: Vec<TrialResult>,
}

impl LoadTrials {
    /// Time of the trials that were good and that were bad, short ones too. **Unit** s.
    pub fn seconds(&self, is_good: bool) -> f64 {
        let these = self.trials.iter().filter(|seen| seen.is_good == is_good);
        // The sum of nothing would be -0.
        these.fold(0.0, |sum, seen| sum + seen.seconds)
    }

    /// Time of good and of bad trials that are full (or short). **Unit** s.
    fn sums(&self, goal: &SearchGoal, full: bool) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for seen in self.trials.iter().filter(|seen| goal.is_full(seen) == full) {
            sums[usize::from(!seen.is_good)] += seen.seconds;
        }
        sums
    }

    /// Time of good trials, of bad trials, and of all that count, at least the goal's sum. A short good trial only
    /// balances short bad ones.
    fn effective(&self, goal: &SearchGoal) -> [f64; 3] {
        let [good, bad] = self.sums(goal, true);
        let [short_good, short_bad] = self.sums(goal, false);
        let balance = if goal.exceed_ratio < 1.0 {
            short_good * goal.exceed_ratio / (1.0 - goal.exceed_ratio)
        } else {
            short_bad
        };
        let bad = bad + (short_bad - balance).max(0.0);
        [good, bad, (good + bad).max(goal.sum_s)]
    }

    /// What its trials say.
    pub fn class(&self, goal: &SearchGoal) -> Class {
        let [good, bad, whole] = self.effective(goal);
        // Sums of decimal lengths are off by the last bits.
        let may_be_bad = whole * goal.exceed_ratio + 1e-9;
        if whole - good <= may_be_bad {
            Class::LowerBound
        } else if bad > may_be_bad {
            Class::UpperBound
        } else {
            Class::Undecided
        }
    }

    /// What arrives of the load in all but the share of time that may be bad: the load less the loss of the worst trial
    /// that counts.
    pub fn conditional_throughput(&self, goal: &SearchGoal) -> f64 {
        let [_, _, whole] = self.effective(goal);
        let mut full: Vec<_> = self.trials.iter().filter(|seen| goal.is_full(seen)).collect();
        full.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
        let mut left = whole * (1.0 - goal.exceed_ratio) - 1e-9;
        let worst = full.into_iter().find(|seen| {
            left -= seen.seconds;
            left <= 0.0
        });
        self.rate * (1.0 - worst.map_or(1.0, |seen| seen.loss_ratio))
    }
}

impl SearchGoal {
    fn is_full(&self, seen: &TrialResult) -> bool {
        seen.seconds >= self.final_s * (1.0 - 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOAL: SearchGoal =
        SearchGoal { final_s: 1.0, sum_s: 5.0, exceed_ratio: 0.5, width_ratio: 0.03 };

    fn load(trials: &[(f64, bool)]) -> LoadTrials {
        let seen = |&(seconds, is_good): &(f64, bool)| {
            let loss_ratio = if is_good { 0.0 } else { 0.1 };
            TrialResult { seconds, is_good, loss_ratio }
        };
        LoadTrials { rate: 100.0, trials: trials.iter().map(seen).collect() }
    }

    #[test]
    fn a_load_is_decided_once_the_missing_trials_cannot_change_it() {
        let class = |trials: &[(f64, bool)]| load(trials).class(&GOAL);
        assert_eq!(class(&[]), Class::Undecided);
        assert_eq!(class(&[(1.0, true); 2]), Class::Undecided);
        assert_eq!(class(&[(1.0, true); 3]), Class::LowerBound);
        assert_eq!(class(&[(1.0, false); 2]), Class::Undecided);
        assert_eq!(class(&[(1.0, false); 3]), Class::UpperBound);
        let mixed = [(1.0, true), (1.0, false), (1.0, true), (1.0, false), (1.0, true)];
        assert_eq!(class(&mixed[..4]), Class::Undecided);
        assert_eq!(class(&mixed), Class::LowerBound);
    }

    #[test]
    fn one_good_trial_of_many_is_no_lower_bound_and_one_bad_one_no_upper() {
        let mut lucky = vec![(1.0, false); 4];
        lucky.push((1.0, true));
        assert_eq!(load(&lucky).class(&GOAL), Class::UpperBound);
        let mut unlucky = vec![(1.0, true); 4];
        unlucky.insert(0, (1.0, false));
        assert_eq!(load(&unlucky).class(&GOAL), Class::LowerBound);
    }

    #[test]
    fn short_trials_make_no_lower_bound() {
        assert_eq!(load(&[(0.3, true); 30]).class(&GOAL), Class::Undecided);
        // Short bad trials count as far as short good ones do not balance them.
        assert_eq!(load(&[(0.3, false); 9]).class(&GOAL), Class::UpperBound);
        let balanced: Vec<_> = [[(0.3, true); 9], [(0.3, false); 9]].concat();
        assert_eq!(load(&balanced).class(&GOAL), Class::Undecided);
    }

    #[test]
    fn without_tolerance_one_bad_trial_decides() {
        let goal = SearchGoal { final_s: 60.0, sum_s: 60.0, exceed_ratio: 0.0, width_ratio: 0.01 };
        assert_eq!(load(&[(60.0, true)]).class(&goal), Class::LowerBound);
        assert_eq!(load(&[(60.0, true), (60.0, false)]).class(&goal), Class::UpperBound);
    }

    #[test]
    fn conditional_throughput_is_that_of_the_worst_trial_that_counts() {
        let of = |trials: &[(f64, bool)]| load(trials).conditional_throughput(&GOAL);
        assert!((of(&[(1.0, true); 3]) - 100.0).abs() < 1e-9);
        let most = [(1.0, false), (1.0, true), (1.0, true), (1.0, true), (1.0, true)];
        assert!((of(&most) - 100.0).abs() < 1e-9);
        let half = [(1.0, false), (1.0, false), (1.0, false), (1.0, true), (1.0, true)];
        assert!((of(&half) - 90.0).abs() < 1e-9);
        assert!(of(&[(1.0, true)]).abs() < 1e-9, "too few trials show nothing");
    }

    proptest! {
        #[test]
        fn enough_full_trials_always_decide(trials in prop::collection::vec(any::<bool>(), 5..40)) {
            let trials: Vec<_> = trials.into_iter().map(|is_good| (1.0, is_good)).collect();
            prop_assert_ne!(load(&trials).class(&GOAL), Class::Undecided);
        }

        #[test]
        fn a_good_trial_more_never_turns_a_lower_bound_into_an_upper_one(
            trials in prop::collection::vec((prop::sample::select(vec![0.3, 1.0]), any::<bool>()), 0..20)
        ) {
            let mut more = trials.clone();
            more.push((1.0, true));
            if load(&trials).class(&GOAL) == Class::LowerBound {
                prop_assert_eq!(load(&more).class(&GOAL), Class::LowerBound);
            }
        }
    }
}
