//! From trials to variants and differences: medians, intervals, words. Called after every block.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::IntoMap;
use rxpath_diagnose::{TrialPair, combine};
use rxpath_record::agreement::agreed;
use rxpath_record::comparison::{Comparison, MeasuredEffect, NoiseFloor, Outcome, Reason};
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::manifest::{Manifest, Metric, Trial, VariantSummary};
use rxpath_record::metric;
use rxpath_record::verdict::{DiagnosisVerdict, PairedTrial};
use rxpath_stats::difference::{self, VariantDifference, difference};
use rxpath_stats::order::unequal_voids;
use rxpath_stats::{Looks, bootstrap, quantile};

use crate::scenario::spec::{Compare, Resolved, Variant};

/// Recomputes everything that follows from the trials so far.
pub fn update(resolved: &Resolved, manifest: &mut Manifest) {
    let decided: BTreeMap<String, DiagnosisVerdict> = manifest
        .variants
        .iter()
        .filter_map(|variant| Some((variant.name.clone(), variant.verdict.clone()?)))
        .filter(|(_, verdict)| verdict.paired_trial.is_none())
        .into_map();
    manifest.variants =
        resolved.variants.iter().map(|variant| summary(variant, manifest, resolved)).collect();
    for variant in &mut manifest.variants {
        // A verdict that a paired trial has decided stays.
        if variant.verdict.as_ref().is_some_and(|verdict| verdict.paired_trial.is_some()) {
            variant.verdict = decided.get(&variant.name).cloned().or(variant.verdict.take());
        }
    }
    let counted = found(resolved, manifest, Attempts::Valid);
    let noise = counted.first().and_then(|(_, found)| found.trial_noise());
    // A comparison without a block of both variants is reported, too.
    let of = |compare: &Compare| counted.iter().find(|(found, _)| std::ptr::eq(*found, compare));
    let mut comparisons: Vec<Comparison> = resolved
        .compare
        .iter()
        .map(|compare| Comparison {
            metric: compare.metric.clone(),
            base: compare.base.clone(),
            variant: compare.variant.clone(),
            effect: of(compare).map_or_else(MeasuredEffect::not_measured, |(_, found)| {
                MeasuredEffect::of(found, &compare.metric)
            }),
            pairs_count: of(compare).map_or(0, |(_, found)| found.pairs as u32),
            expected: compare.expected.clone(),
            expectation: None,
            published: compare.published.clone(),
        })
        .collect();
    doubt_selection(resolved, manifest, &mut comparisons);
    for comparison in &mut comparisons {
        comparison.expectation = comparison.met();
    }
    manifest.comparisons = comparisons;
    manifest.noise_floor = noise_floor(resolved, manifest)
        .map(|floor| NoiseFloor { trial_noise_ratio: noise, ..floor });
}

fn summary(variant: &Variant, manifest: &Manifest, resolved: &Resolved) -> VariantSummary {
    let trials = manifest.counted(&variant.name);
    let names: BTreeSet<&String> = trials.iter().flat_map(|trial| trial.metrics.keys()).collect();
    let seed = resolved.trials.seed;
    let metrics =
        names.into_iter().filter_map(|name| Some((name.clone(), summarised(name, &trials, seed)?)));
    let judged = trials.iter().filter_map(|trial| Some((*trial, trial.verdict.clone()?)));
    let (verdict, agreement) = agreed(&judged.collect::<Vec<_>>(), &manifest.main_metric).unzip();
    VariantSummary {
        name: variant.name.clone(),
        what: variant.what.clone(),
        settings: variant.settings.clone(),
        not_available: variant.not_available.clone(),
        trials_count: trials.len() as u32,
        metrics: metrics.into_map(),
        verdict,
        agreement,
        pooled_quantiles: Vec::new(),
    }
}

/// A trial's value of a metric. A loss that is exact has no bounds of its own.
fn value(name: &str, trial: &Trial) -> Option<f64> {
    let exact = || match name {
        "loss_least_ratio" | "loss_most_ratio" => trial.metrics.get("loss_ratio"),
        _ => None,
    };
    trial.metrics.get(name).or_else(exact).copied()
}

fn summarised(name: &str, trials: &[&Trial], seed: u64) -> Option<Metric> {
    let values: Vec<f64> = trials.iter().filter_map(|trial| value(name, trial)).collect();
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

/// Which trials of a block count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempts {
    /// The undisturbed one.
    Valid,
    /// The first, disturbed or not.
    First,
}

/// Values of both variants from the blocks in which both ran; block 0 holds one variant only.
fn pairs(compare: &Compare, trials: &[Trial], attempts: Attempts) -> Vec<(f64, f64)> {
    let by_block = |variant: &str| -> BTreeMap<u32, f64> {
        let counted = trials
            .iter()
            .filter(|trial| trial.variant == variant && trial.block > 0)
            .filter(|trial| attempts == Attempts::First || trial.void.is_none());
        let value = |trial: &Trial| Some((trial.block, *trial.metrics.get(&compare.metric)?));
        // From the last on, so that the first one of a block stays.
        counted.rev().filter_map(value).into_map()
    };
    let (base, variant) = (by_block(&compare.base), by_block(&compare.variant));
    base.iter().filter_map(|(block, value)| Some((*value, *variant.get(block)?))).collect()
}

/// The differences that the scenario asks about, judged together; those of which no block has both variants are left out.
fn found<'a>(
    resolved: &'a Resolved,
    manifest: &Manifest,
    attempts: Attempts,
) -> Vec<(&'a Compare, VariantDifference)> {
    let trials = &resolved.trials;
    let looks = Looks::of(trials.blocks as usize, trials.max_blocks as usize);
    let (asked, mut found): (Vec<_>, Vec<_>) = resolved
        .compare
        .iter()
        .filter_map(|compare| {
            let scale = metric::scale(&compare.metric);
            let pairs = pairs(compare, &manifest.trials, attempts);
            Some((compare, difference(&pairs, scale, trials.threshold_ratio, looks)?))
        })
        .unzip();
    difference::family(&mut found);
    asked.into_iter().zip(found).collect()
}

/// Trials that other load disturbed are left out and repeated. If they are more of one variant than of the other, leaving
/// them out may have made the difference: then the verdict must be the same over the first attempts.
fn doubt_selection(resolved: &Resolved, manifest: &Manifest, comparisons: &mut [Comparison]) {
    let voids = |variant: &str| {
        let is_of_it = |trial: &&Trial| trial.variant == variant && trial.block > 0;
        let all: Vec<&Trial> = manifest.trials.iter().filter(is_of_it).collect();
        (all.iter().filter(|trial| trial.void.is_some()).count() as u64, all.len() as u64)
    };
    let first = found(resolved, manifest, Attempts::First);
    for comparison in comparisons {
        let chance = unequal_voids(voids(&comparison.base), voids(&comparison.variant));
        let with_all = first.iter().find(|(compare, _)| {
            (&compare.metric, &compare.base, &compare.variant)
                == (&comparison.metric, &comparison.base, &comparison.variant)
        });
        let good = metric::good(&comparison.metric);
        let other = with_all.map(|(_, found)| found.word(good));
        let effect = &mut comparison.effect;
        if chance < UNEQUAL && other.is_some_and(|word| word != effect.outcome) {
            effect.outcome = Outcome::Inconclusive;
            effect.inconclusive_because = Some(Reason::VoidsDiffer);
        }
    }
}

/// Below this probability of coming by chance, one variant was disturbed more often than the other.
const UNEQUAL: f64 = 0.05;

fn noise_floor(resolved: &Resolved, manifest: &Manifest) -> Option<NoiseFloor> {
    let metric = resolved.compare.first().map_or(&manifest.main_metric, |compare| &compare.metric);
    let counts = |trial: &&Trial| trial.block == 0 && trial.void.is_none();
    let mut twice = manifest.trials.iter().filter(counts);
    let (first, second) = (twice.next()?, twice.next()?);
    let (one, two) = (first.metrics.get(metric)?, second.metrics.get(metric)?);
    (first.variant == second.variant).then(|| NoiseFloor {
        metric: metric.into(),
        variant: first.variant.clone(),
        ratio: (*one > 0.0).then(|| two / one),
        difference: Some(two - one),
        trial_noise_ratio: None,
    })
}

/// Whether more blocks are of no use: each difference that the scenario asks about has its verdict, or is unlikely to get
/// one; and each is known as closely as the scenario asks, if it does.
pub fn settled(resolved: &Resolved, manifest: &Manifest) -> bool {
    let precision = resolved.trials.precision_ratio;
    let precise = |found: &VariantDifference| {
        precision.is_none_or(|asked| found.precision().is_some_and(|known| known <= asked))
    };
    let found = found(resolved, manifest, Attempts::Valid);
    let all_there = found.len() == resolved.compare.len();
    all_there && found.iter().all(|(_, found)| found.settled().is_some() && precise(found))
}

/// The kind of trial that alone can decide the verdict of a variant.
pub fn undecided(manifest: &Manifest, variant: &str) -> Option<PairedTrial> {
    manifest.summary(variant)?.verdict.as_ref()?.paired_trial
}

/// Replaces a variant's verdict by the one that its paired trials decide.
pub fn decide(manifest: &mut Manifest, variant: &str, pairs: &[[WindowEvidence; 2]]) {
    let pairs: Vec<TrialPair> =
        pairs.iter().map(|[before, after]| TrialPair { before, after }).collect();
    let Some(summary) = manifest.variants.iter_mut().find(|summary| summary.name == variant) else {
        return;
    };
    let Some(verdict) = &mut summary.verdict else { return };
    *verdict = combine(verdict, &pairs);
    if let Some(agreement) = &summary.agreement {
        verdict.confidence = agreement.limit(verdict.confidence);
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
        assert!(found.effect.difference.as_ref().unwrap().interval.unwrap()[0] >= 0.28);
        assert!(settled(&resolved, &manifest));
        let headline = crate::run::headline::of(&manifest);
        assert!(headline.contains("0.00 % to 30.50 %, +30."), "{headline}");
        assert!(headline.contains(", 6 blocks): worse."), "{headline}");
        assert_eq!(manifest.noise_floor, None, "one trial in the A/A block is no pair");
    }

    #[test]
    fn a_loss_that_is_sometimes_zero_is_not_decided_early() {
        let (resolved, manifest) =
            made(&[f64::NAN, 0.0, 0.1, 0.0, 0.0, 0.4], &[f64::NAN, 0.3, 0.0, 0.3, 0.0, 0.3]);
        let effect = &manifest.comparisons[0].effect;
        assert_eq!(effect.outcome, Outcome::Inconclusive);
        let verdict = effect.verdict("blocks");
        assert!(verdict.starts_with("inconclusive: no difference larger than "), "{verdict}");
        assert!(!settled(&resolved, &manifest), "five blocks are too few to give up");
    }

    #[test]
    fn trials_left_out_of_one_variant_only_must_not_make_the_difference() {
        let base = [f64::NAN, 0.10, 0.11, 0.10, 0.11, 0.10, 0.11, 0.10, 0.11];
        let (resolved, mut manifest) =
            made(&base, &[f64::NAN, 0.2, 0.21, 0.2, 0.21, 0.2, 0.21, 0.2, 0.21]);
        assert_eq!(manifest.comparisons[0].effect.outcome, Outcome::Worse);
        // Each block's first trial of the variant was disturbed, and did as well as the base.
        let others: Vec<Trial> =
            manifest.trials.iter().filter(|trial| trial.variant == "b").cloned().collect();
        for (at, trial) in others.into_iter().enumerate() {
            let metrics = [("loss_ratio".to_owned(), 0.10 + at as f64 / 1e4)].into();
            let void = Some("other programs took 50 % of CPU 1".into());
            manifest.trials.insert(0, Trial { metrics, void, ..trial });
        }
        update(&resolved, &mut manifest);
        let effect = &manifest.comparisons[0].effect;
        assert_eq!(effect.inconclusive_because, Some(Reason::VoidsDiffer));
        assert!(effect.verdict("blocks").contains("more of one variant"));
    }

    #[test]
    fn a_comparison_that_no_block_has_both_variants_of_is_not_dropped() {
        let (resolved, manifest) = made(&[0.1, 0.1, 0.1], &[f64::NAN]);
        let found = &manifest.comparisons[0];
        assert_eq!((found.pairs_count, found.effect.outcome), (0, Outcome::Inconclusive));
        let told = crate::run::headline::of(&manifest);
        assert!(
            told.contains("not measured (no interval, 0 blocks): inconclusive: no block"),
            "{told}"
        );
        assert!(!settled(&resolved, &manifest));
    }

    #[test]
    fn bounds_of_a_loss_are_of_all_trials_those_with_an_exact_loss_too() {
        let (_, mut manifest) = made(&[f64::NAN, 0.0, 0.0, 0.1], &[]);
        let bounds = [("loss_least_ratio".to_owned(), 0.05), ("loss_most_ratio".to_owned(), 0.2)];
        manifest.trials[2].metrics.extend(bounds);
        let trials: Vec<&Trial> = manifest.trials.iter().collect();
        let of = |name| summarised(name, &trials, 1).unwrap();
        assert_eq!(of("loss_least_ratio").values, [0.0, 0.0, 0.05]);
        let most = of("loss_most_ratio");
        assert_eq!((most.median, most.max), (of("loss_ratio").median, 0.2));
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
