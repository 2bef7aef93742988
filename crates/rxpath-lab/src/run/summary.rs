//! From trials to variants and differences: medians, intervals, words. Called after every block.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_diagnose::combine;
use rxpath_record::manifest::{
    Comparison, Manifest, Metric, NoiseFloor, Outcome, Trial, VariantSummary,
};
use rxpath_record::verdict::{PairedTrial, Verdict};
use rxpath_stats::difference::{Word, difference};
use rxpath_stats::{bootstrap, metric, quantile};

use crate::scenario::spec::{Compare, Resolved, Variant};

/// Recomputes everything that follows from the trials so far.
pub fn update(resolved: &Resolved, manifest: &mut Manifest) {
    let decided: BTreeMap<String, Verdict> = manifest
        .variants
        .iter()
        .filter_map(|variant| Some((variant.name.clone(), variant.verdict.clone()?)))
        .filter(|(_, verdict)| verdict.paired_trial.is_none())
        .collect();
    manifest.variants =
        resolved.variants.iter().map(|variant| summary(variant, manifest, resolved)).collect();
    for variant in &mut manifest.variants {
        // A verdict that a paired trial has decided stays.
        if variant.verdict.as_ref().is_some_and(|verdict| verdict.paired_trial.is_some()) {
            variant.verdict = decided.get(&variant.name).cloned().or(variant.verdict.take());
        }
    }
    manifest.comparisons = resolved
        .compare
        .iter()
        .filter_map(|compare| comparison(compare, resolved, &manifest.trials))
        .collect();
    manifest.noise_floor = noise_floor(resolved, manifest);
}

/// Valid trials of a variant in the counted blocks, in the order of running.
fn valid<'a>(trials: &'a [Trial], variant: &'a str) -> impl Iterator<Item = &'a Trial> {
    trials.iter().filter(move |trial| trial.variant == variant && trial.void.is_none())
}

fn summary(variant: &Variant, manifest: &Manifest, resolved: &Resolved) -> VariantSummary {
    let trials: Vec<&Trial> = valid(&manifest.trials, &variant.name).collect();
    let names: BTreeSet<&String> = trials.iter().flat_map(|trial| trial.metrics.keys()).collect();
    let seed = resolved.trials.seed;
    let metrics =
        names.into_iter().filter_map(|name| Some((name.clone(), summarised(name, &trials, seed)?)));
    VariantSummary {
        name: variant.name.clone(),
        what: variant.what.clone(),
        settings: variant.settings.clone(),
        not_available: variant.not_available.clone(),
        trials_count: trials.len() as u32,
        metrics: metrics.collect(),
        verdict: median_trial(&trials, &manifest.main_metric)
            .and_then(|trial| trial.verdict.clone()),
    }
}

fn summarised(name: &str, trials: &[&Trial], seed: u64) -> Option<Metric> {
    let values: Vec<f64> =
        trials.iter().filter_map(|trial| trial.metrics.get(name)).copied().collect();
    let (min, max) = quantile::range(&values)?;
    Some(Metric {
        median: quantile::median(&values)?,
        min,
        max,
        interval: bootstrap::median_interval(&values, seed)
            .map(|interval| [interval.low, interval.high]),
        values,
    })
}

/// The trial whose main metric is nearest to the median: the one whose verdict speaks for the variant.
pub fn median_trial<'a>(trials: &[&'a Trial], main: &str) -> Option<&'a Trial> {
    let rate = |trial: &Trial| trial.metrics.get(main).copied().unwrap_or(0.0);
    let middle = quantile::median(&trials.iter().map(|trial| rate(trial)).collect::<Vec<_>>())?;
    let distance = |trial: &Trial| (rate(trial) - middle).abs();
    trials.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Values of both variants from the blocks in which both ran; block 0 holds one variant only.
fn pairs(compare: &Compare, trials: &[Trial]) -> Vec<(f64, f64)> {
    let by_block = |variant: &str| -> BTreeMap<u32, f64> {
        let counted = valid(trials, variant).filter(|trial| trial.block > 0);
        counted
            .filter_map(|trial| Some((trial.block, *trial.metrics.get(&compare.metric)?)))
            .collect()
    };
    let (base, variant) = (by_block(&compare.base), by_block(&compare.variant));
    base.iter().filter_map(|(block, value)| Some((*value, *variant.get(block)?))).collect()
}

fn comparison(compare: &Compare, resolved: &Resolved, trials: &[Trial]) -> Option<Comparison> {
    let found = difference(&pairs(compare, trials), resolved.trials.seed)?;
    let outcome = match found.word(metric::good(&compare.metric), resolved.trials.threshold_ratio) {
        Word::Better => Outcome::Better,
        Word::Worse => Outcome::Worse,
        Word::Same => Outcome::Same,
        Word::Inconclusive => Outcome::Inconclusive,
    };
    Some(Comparison {
        metric: compare.metric.clone(),
        base: compare.base.clone(),
        variant: compare.variant.clone(),
        ratio: found.ratio,
        interval: found.interval.map(|interval| [interval.low, interval.high]),
        range: [found.range.0, found.range.1],
        pairs_count: found.pairs as u32,
        outcome,
        expected: compare.expected.clone(),
    })
}

fn noise_floor(resolved: &Resolved, manifest: &Manifest) -> Option<NoiseFloor> {
    let main = &manifest.main_metric;
    let metric = resolved.compare.first().map_or(main, |compare| &compare.metric);
    let twice: Vec<&Trial> = manifest
        .trials
        .iter()
        .filter(|trial| trial.block == 0 && trial.void.is_none())
        .take(2)
        .collect();
    let [first, second] = twice.as_slice() else { return None };
    let (one, two) = (first.metrics.get(metric)?, second.metrics.get(metric)?);
    let same = first.variant == second.variant && *one > 0.0;
    same.then(|| NoiseFloor {
        metric: metric.into(),
        variant: first.variant.clone(),
        ratio: two / one,
    })
}

/// Whether every difference that the scenario asks about is known as closely as it asks.
pub fn precise_enough(resolved: &Resolved, manifest: &Manifest) -> bool {
    let precision = resolved.trials.precision_ratio;
    resolved.compare.iter().all(|compare| {
        difference(&pairs(compare, &manifest.trials), resolved.trials.seed)
            .is_none_or(|found| found.precise_to(precision))
    })
}

/// The verdict of a variant that only a paired trial can decide, with the kind of trial.
pub fn undecided(manifest: &Manifest, variant: &str) -> Option<(Verdict, PairedTrial)> {
    let verdict =
        manifest.variants.iter().find(|summary| summary.name == variant)?.verdict.clone()?;
    let wanted = verdict.paired_trial?;
    Some((verdict, wanted))
}

/// Replaces a variant's verdict by the one that its paired trial decides.
pub fn decide(manifest: &mut Manifest, variant: &str, primary: &Verdict, paired: &Trial) {
    let trials: Vec<&Trial> = valid(&manifest.trials, variant).collect();
    let median = median_trial(&trials, &manifest.main_metric);
    let Some(evidence) = median.map(|trial| trial.evidence.clone()) else { return };
    let decided = combine(primary, &evidence, &paired.evidence);
    if let Some(summary) = manifest.variants.iter_mut().find(|summary| summary.name == variant) {
        summary.verdict = Some(decided);
    }
}

/// A CPU of the variant's workloads that is not the sender's; the receiver's, when they differ.
pub fn cpu_beside(variant: &Variant) -> Option<u32> {
    let sender = &variant.load.cpus().0;
    let online =
        rxpath_host::Root::host().cpus("/sys/devices/system/cpu/online").unwrap_or_default();
    let candidates = variant.serve.cpus().0.iter().copied().chain(online.0);
    candidates.into_iter().find(|cpu| !sender.contains(cpu))
}
