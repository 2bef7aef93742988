//! From trials to variants and differences: medians, intervals, words. Called after every block.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_diagnose::combine;
use rxpath_record::comparison::{Comparison, Effect, NoiseFloor};
use rxpath_record::manifest::{Manifest, Metric, Trial, VariantSummary};
use rxpath_record::verdict::{PairedTrial, Verdict};
use rxpath_stats::difference::{Difference, difference};
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
        .filter_map(|compare| comparison(compare, resolved, manifest))
        .collect();
    manifest.noise_floor = noise_floor(resolved, manifest);
}

/// Valid trials of a variant, in the order of running.
fn valid<'a>(trials: &'a [Trial], variant: &'a str) -> impl Iterator<Item = &'a Trial> {
    trials.iter().filter(move |trial| trial.variant == variant && trial.void.is_none())
}

fn summary(variant: &Variant, manifest: &Manifest, resolved: &Resolved) -> VariantSummary {
    let trials = manifest.counted(&variant.name);
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

fn comparison(compare: &Compare, resolved: &Resolved, manifest: &Manifest) -> Option<Comparison> {
    let found = found(compare, resolved, manifest)?;
    let threshold = resolved.trials.threshold_ratio;
    Some(Comparison {
        metric: compare.metric.clone(),
        base: compare.base.clone(),
        variant: compare.variant.clone(),
        effect: Effect::of(&found, &compare.metric, threshold),
        pairs_count: found.pairs as u32,
        expected: compare.expected.clone(),
    })
}

/// The difference between two variants; `None` while no block has both.
fn found(compare: &Compare, resolved: &Resolved, manifest: &Manifest) -> Option<Difference> {
    let scale = metric::scale(&compare.metric);
    difference(&pairs(compare, &manifest.trials), scale, resolved.trials.seed)
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
    (first.variant == second.variant).then(|| NoiseFloor {
        metric: metric.into(),
        variant: first.variant.clone(),
        ratio: (*one > 0.0).then(|| two / one),
        difference: Some(two - one),
    })
}

/// Whether every difference that the scenario asks about is known as closely as it asks.
pub fn precise_enough(resolved: &Resolved, manifest: &Manifest) -> bool {
    let precision = resolved.trials.precision_ratio;
    resolved.compare.iter().all(|compare| {
        found(compare, resolved, manifest).is_none_or(|found| found.precise_to(precision))
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
    let trials = manifest.counted(variant);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rxpath_record::comparison::Outcome;
    use rxpath_record::run::RunReader;

    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    /// A scenario of two variants, and a run of it whose trials have these losses in the blocks from 0 on.
    fn made(base: &[f64], other: &[f64]) -> (Resolved, Manifest) {
        let text = "question = \"?\"\n[[variant]]\nname = \"a\"\nwhat = \"a\"\n[[variant]]\nname = \"b\"\nwhat = \"b\"\n\
                    [[compare]]\nmetric = \"loss_ratio\"\nbase = \"a\"\nvariant = \"b\"\n";
        let resolved = resolve(&parse(text, "t", "t").unwrap(), &[], &HostShape::flat(2)).unwrap();
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs/recorded-demo");
        let mut manifest = RunReader::open(&kept).unwrap().manifest;
        let like = manifest.trials[0].clone();
        manifest.trials.clear();
        for (variant, losses) in [("a", base), ("b", other)] {
            for (block, loss) in losses.iter().enumerate().filter(|(_, loss)| loss.is_finite()) {
                let metrics = [("loss_ratio".to_owned(), *loss)].into();
                let (variant, block, void) = (variant.to_owned(), block as u32, None);
                manifest.trials.push(Trial { variant, block, void, metrics, ..like.clone() });
            }
        }
        update(&resolved, &mut manifest);
        (resolved, manifest)
    }

    #[test]
    fn a_comparison_whose_base_is_zero_is_kept_and_decided() {
        let (resolved, manifest) = made(&[0.0; 7], &[f64::NAN, 0.3, 0.31, 0.3, 0.32, 0.3, 0.31]);
        let found = &manifest.comparisons[0];
        assert_eq!((found.effect.ratio, found.effect.outcome), (None, Outcome::Worse));
        assert!(found.effect.difference.as_ref().unwrap().interval.unwrap()[0] >= 0.3);
        assert!(precise_enough(&resolved, &manifest));
        let headline = crate::run::headline::of(&manifest);
        assert!(headline.contains("0.00 % to 30.50 %, +30.50 percentage points"), "{headline}");
        assert!(headline.contains("): worse."), "{headline}");
        assert_eq!(manifest.noise_floor, None, "one trial in the A/A block is no pair");
    }

    #[test]
    fn a_loss_that_is_sometimes_zero_has_an_interval() {
        let (resolved, manifest) = made(
            &[f64::NAN, 0.0, 0.1, 0.0, 0.0, 0.4, 0.0],
            &[f64::NAN, 0.3, 0.0, 0.3, 0.0, 0.3, 0.31],
        );
        let effect = &manifest.comparisons[0].effect;
        assert_eq!(effect.outcome, Outcome::Inconclusive);
        assert_eq!(effect.verdict("blocks"), "inconclusive: the interval holds 0, no change");
        assert!(!precise_enough(&resolved, &manifest));
    }

    #[test]
    fn trials_of_the_first_block_are_in_no_median() {
        let (_, manifest) = made(&[0.9, 0.1, 0.1, 0.1], &[f64::NAN, 0.2, 0.2, 0.2]);
        let of = |at: usize| &manifest.variants[at].metrics["loss_ratio"];
        assert_eq!((of(0).values.len(), of(0).max, manifest.variants[0].trials_count), (3, 0.1, 3));
        assert_eq!(of(1).values.len(), 3);
        let (_, first) = made(&[0.9], &[]);
        assert_eq!(first.variants[0].trials_count, 1, "better than nothing");
    }
}
