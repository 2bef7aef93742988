//! From a search and its trials to the record in the manifest.

use std::collections::BTreeMap;

use rxpath_record::capacity::{Capacity, CapacityGoal, FreshTrials, LoadClass, TriedLoad};
use rxpath_record::verdict::{DiagnosisVerdict, Stage};
use rxpath_stats::load_class::LoadTrials;
use rxpath_stats::load_search::{LoadBounds, LoadSearch, SearchEnd};

use super::CapacityOptions;
use crate::scenario::spec::Variant;

/// What the trials of a search left, by rate in whole events per second.
#[derive(Default)]
pub(super) struct Left {
    pub latencies_us: BTreeMap<u64, Vec<f64>>,
    /// Verdicts of bad trials.
    pub verdicts: BTreeMap<u64, Vec<DiagnosisVerdict>>,
}

/// The record of a search, ended or not.
pub(super) fn record(
    variant: &Variant,
    ask: &CapacityOptions,
    search: &LoadSearch,
    ended: Option<SearchEnd>,
    left: &Left,
) -> Capacity {
    let (bounds, goal) = (search.bounds(), search.goal());
    let limited_by =
        bounds.upper.and_then(|upper| left.verdicts.get(&key(upper))).and_then(|all| usual(all));
    Capacity {
        variant: variant.name.clone(),
        unit: variant.protocol().unit().into(),
        lower_per_s: bounds.lower.map(f64::round),
        upper_per_s: bounds.upper.map(f64::round),
        conditional_throughput_per_s: bounds.conditional_throughput,
        regular: bounds.is_regular,
        ended: ended.unwrap_or_default(),
        goal: CapacityGoal {
            final_trial_s: goal.final_s,
            duration_sum_s: goal.sum_s,
            exceed_ratio: goal.exceed_ratio,
            width_ratio: goal.width_ratio,
            ..ask.objectives.recorded()
        },
        fresh: bounds
            .fresh
            .map(|fresh| FreshTrials { good_count: fresh.good, bad_count: fresh.bad }),
        loads: search.loads().into_iter().map(|load| tried(load, search, &bounds, left)).collect(),
        limited_by,
        trials_count: search.trials(),
        void_count: search.voids(),
        search_s: search.elapsed_s(),
    }
}

/// A rate as the key of what its trials left: the sender's rate is a whole number.
pub(super) fn key(rate: f64) -> u64 {
    rate.round() as u64
}

fn tried(load: &LoadTrials, search: &LoadSearch, bounds: &LoadBounds, left: &Left) -> TriedLoad {
    let is = |bound: Option<f64>| bound.is_some_and(|bound| key(bound) == key(load.rate));
    TriedLoad {
        rate_per_s: load.rate.round(),
        good_s: load.seconds(true),
        bad_s: load.seconds(false),
        class: match load.class(&search.goal()) {
            // Fresh trials have the last word.
            _ if is(bounds.upper) => LoadClass::UpperBound,
            _ if is(bounds.lower) && bounds.is_regular => LoadClass::LowerBound,
            class => class,
        },
        loss_ratios: load.trials.iter().map(|seen| seen.loss_ratio).collect(),
        latencies_us: left.latencies_us.get(&key(load.rate)).cloned().unwrap_or_default(),
    }
}

/// The verdict whose stage most of the failing trials name; of equal counts, the surest one. `nothing` counts only if no
/// trial names a stage.
fn usual(verdicts: &[DiagnosisVerdict]) -> Option<DiagnosisVerdict> {
    let count = |stage: Stage| verdicts.iter().filter(|verdict| verdict.stage == stage).count();
    let known = verdicts.iter().filter(|verdict| verdict.stage != Stage::Unknown);
    let names = |verdict: &DiagnosisVerdict| verdict.stage != Stage::Nothing;
    known.max_by_key(|it| (names(it), count(it.stage), it.confidence)).cloned()
}

#[cfg(test)]
mod tests {
    use rxpath_record::verdict::Confidence;

    use super::*;

    fn verdict(stage: Stage, confidence: Confidence) -> DiagnosisVerdict {
        DiagnosisVerdict {
            stage,
            cpu: None,
            confidence,
            sentence: "?".into(),
            evidence: Vec::new(),
            remedies: Vec::new(),
            check_rules: Vec::new(),
            next: Vec::new(),
            paired_trial: None,
        }
    }

    #[test]
    fn the_limit_is_what_most_failing_trials_name() {
        let of = |all: &[(Stage, Confidence)]| {
            let all = all.iter().map(|(stage, sure)| verdict(*stage, *sure)).collect::<Vec<_>>();
            usual(&all).map(|it| (it.stage, it.confidence))
        };
        let (app, queue) = (Stage::Application, Stage::SocketQueue);
        let (weak, strong) = (Confidence::Weak, Confidence::Strong);
        assert_eq!(of(&[(queue, strong), (app, weak), (app, strong)]), Some((app, strong)));
        assert_eq!(
            of(&[(Stage::Nothing, strong), (Stage::Nothing, strong), (app, weak)]),
            Some((app, weak))
        );
        assert_eq!(of(&[(Stage::Unknown, weak)]), None);
        assert_eq!(
            of(&[(Stage::Nothing, weak), (Stage::Unknown, weak)]),
            Some((Stage::Nothing, weak))
        );
        assert_eq!(of(&[]), None);
    }
}
