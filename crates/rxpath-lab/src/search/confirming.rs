//! What the kept settings change on real traffic, over the pairs of slices that confirmed them.

use std::collections::BTreeSet;
use std::ops::Range;

use rxpath_record::comparison::{Comparison, MeasuredEffect};
use rxpath_record::metric::{METRICS, scale};
use rxpath_stats::Looks;
use rxpath_stats::difference::{VariantDifference, difference, family};
use rxpath_tune::auto::{MOST_PAIRS, Phase};

use super::live::answer::SliceOf;
use super::made::{KEPT, Made, START};

/// Ratios within 1 +- this are the same, as in a run.
const THRESHOLD: f64 = 0.03;

/// Every metric but the rate that slices of real traffic have with the start and with what is kept, over the confirming
/// pairs.
pub fn compared(slices: &[SliceOf], kept: &BTreeSet<&str>) -> Vec<Comparison> {
    let made: Vec<Made<'_>> = slices.iter().map(SliceOf::made).collect();
    let confirming = confirmation(&made, kept);
    let (slices, made) = (&slices[confirming.clone()], &made[confirming]);
    // The order within a pair alternates.
    let pairs = slices.windows(2).zip(made.windows(2)).filter_map(|(metrics, made)| {
        let ([first, second], [one, other]) = (metrics, made) else { return None };
        let is_pair = one.block == other.block;
        match (one.on.is_empty(), other.on.is_empty()) {
            (true, false) if is_pair && other.has(kept) => Some([&first.metrics, &second.metrics]),
            (false, true) if is_pair && one.has(kept) => Some([&second.metrics, &first.metrics]),
            _ => None,
        }
    });
    let pairs: Vec<_> = pairs.collect();
    let one = |name: &'static str| {
        let values =
            pairs.iter().filter_map(|[start, with]| Some((*start.get(name)?, *with.get(name)?)));
        let values: Vec<(f64, f64)> = values.collect();
        let looks = Looks::EveryBlock { most: MOST_PAIRS };
        Some((name, difference(&values, scale(name), THRESHOLD, looks)?))
    };
    // The traffic's rate is not the settings' doing.
    let metrics = METRICS.iter().map(|metric| metric.name).filter(|name| *name != "received_pps");
    let (names, mut found): (Vec<&str>, Vec<VariantDifference>) = metrics.filter_map(one).unzip();
    family(&mut found);
    let comparison = |(name, found): (&str, VariantDifference)| Comparison {
        metric: name.into(),
        base: START.into(),
        variant: KEPT.into(),
        effect: MeasuredEffect::of(&found, name),
        pairs_count: found.pairs as u32,
        expected: None,
        expectation: None,
        published: None,
    };
    names.into_iter().zip(found).map(comparison).collect()
}

/// The trials that confirmed these settings, or the last confirmation where none was of them: a search may confirm several
/// sets one after the other.
pub fn confirmation(made: &[Made<'_>], kept: &BTreeSet<&str>) -> Range<usize> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for (at, trial) in made.iter().enumerate().filter(|(_, it)| it.phase == Phase::Confirm) {
        let last = all.last_mut().filter(|last| last.end == at);
        match last {
            Some(last) if trial.block > 0 || last.len() == 1 => last.end = at + 1,
            _ => all.push(at..at + 1),
        }
    }
    let is_of_kept = |range: &&Range<usize>| made[(*range).clone()].iter().any(|it| it.has(kept));
    all.iter().rfind(is_of_kept).or(all.last()).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const POWER: &str = "power_w";

    fn slice(phase: Phase, block: usize, on: &[&str], power_w: f64) -> SliceOf {
        SliceOf {
            phase,
            block,
            on: on.iter().map(|name| (*name).to_owned()).collect(),
            metrics: BTreeMap::from([(POWER.to_owned(), power_w)]),
        }
    }

    #[test]
    fn what_is_kept_may_not_be_what_was_confirmed_last() {
        let slices: Vec<SliceOf> = [
            (Phase::Array, 0, &["a"][..]),
            (Phase::Confirm, 0, &[]),
            (Phase::Confirm, 0, &["a", "b"]),
            (Phase::Confirm, 1, &["a", "b"]),
            (Phase::Confirm, 1, &[]),
            (Phase::Confirm, 0, &[]),
            (Phase::Confirm, 0, &["a"]),
            (Phase::Contribution, 0, &["a"]),
        ]
        .into_iter()
        .map(|(phase, block, on)| slice(phase, block, on, 1.0))
        .collect();
        let made: Vec<Made<'_>> = slices.iter().map(SliceOf::made).collect();
        assert_eq!(confirmation(&made, &BTreeSet::from(["b", "a"])), 1..5);
        assert_eq!(confirmation(&made, &BTreeSet::from(["a"])), 5..7);
        assert_eq!(confirmation(&made, &BTreeSet::new()), 5..7, "a start has nothing on, too");
        assert_eq!(confirmation(&made[..1], &BTreeSet::from(["a"])), 0..0);
    }

    #[test]
    fn power_is_compared_over_the_pairs_that_confirm_what_is_kept() {
        // The first confirmation had the same settings and others.
        let mut slices = vec![
            slice(Phase::Array, 0, &["a"], 500.0),
            slice(Phase::Confirm, 0, &[], 1.0),
            slice(Phase::Confirm, 0, &["b", "a"], 9.0),
            slice(Phase::Confirm, 1, &["a", "b", "c"], 9.0),
            slice(Phase::Confirm, 1, &[], 1.0),
        ];
        for (pair, [start_w, with_w]) in
            [[40.0, 61.0], [41.0, 60.0], [42.0, 61.0]].iter().cycle().take(8).enumerate()
        {
            let start = slice(Phase::Confirm, pair, &[], *start_w);
            let with = slice(Phase::Confirm, pair, &["a", "b"], *with_w);
            slices.extend(if pair % 2 == 0 { [start, with] } else { [with, start] });
        }
        let all = compared(&slices, &BTreeSet::from(["b", "a"]));
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].metric.as_str(), all[0].pairs_count), (POWER, 8));
        let ratio = all[0].effect.ratio.unwrap();
        assert!((1.4..1.55).contains(&ratio), "{ratio}");
        assert!(compared(&slices, &BTreeSet::from(["d"])).is_empty());
    }
}
