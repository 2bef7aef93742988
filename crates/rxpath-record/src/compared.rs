//! Two runs compared: the differences of their variants, and what else differs between them.

mod conditions;
mod facts;

use rxpath_core::Warning;
use rxpath_stats::difference::{self, VariantDifference, between};
use rxpath_stats::welch::run_scatter;
use schemars::JsonSchema;
use serde::Serialize;

use crate::comparison::{MeasuredEffect, Outcome};
use crate::doubts::doubts;
use crate::manifest::{Manifest, VariantSummary};
use crate::metric;
use crate::run::RunReader;

pub use conditions::scenario;
pub use facts::{Changed, changed};

/// The `result` object.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Compared {
    /// The worst verdict of all differences: worse, inconclusive, same, better.
    pub outcome: Outcome,
    /// Whether the differences hold only if two runs of the same code do not differ: no `--history` was given.
    pub assumes_no_run_scatter: bool,
    /// One entry for each variant and metric.
    pub differences: Vec<RunDifference>,
    /// Keys of the scenario that differ: durations of a trial and settings of variants that both runs have.
    pub scenario_changed: Vec<Changed>,
    /// Host facts that differ: possible causes of a difference, other than the variant.
    pub hosts_changed: Vec<Changed>,
}

/// `other / base` of one metric of one variant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunDifference {
    /// Variant name.
    pub variant: String,
    /// Metric name, with its unit.
    pub metric: String,
    /// Median of each run: base, other; `null` where the run has none.
    pub medians: [Option<f64>; 2],
    /// Trials of each run.
    pub trials_count: [usize; 2],
    /// The difference; the ranges cover any two trials.
    #[serde(flatten)]
    pub effect: MeasuredEffect,
}

/// What of two runs is compared.
#[derive(Clone, Copy, Debug)]
pub struct CompareRequest<'a> {
    /// These variants; if empty, all of the base run.
    pub variants: &'a [String],
    /// These metrics; if empty, the main metric of the base run.
    pub metrics: &'a [String],
    /// Ratios within 1 +- this count as the same.
    pub threshold: f64,
}

/// Why there is no comparison, and what there is instead.
#[derive(Debug)]
pub struct NotComparable {
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub hint: String,
}

impl CompareRequest<'_> {
    /// The differences of the variants; the scatter of `history`, further runs of the base's code, counts.
    pub fn differences(
        &self,
        base: &Manifest,
        other: &Manifest,
        history: &[RunReader],
    ) -> Result<Vec<RunDifference>, NotComparable> {
        let common: Vec<String> =
            names(base).into_iter().filter(|name| names(other).contains(name)).collect();
        if let Some(unknown) = self.variants.iter().find(|name| !common.contains(name)) {
            let what = format!("--variant {unknown}: not in both runs");
            return Err(NotComparable { what, hint: format!("both have {}", listed(&common)) });
        }
        // What A measured and B did not is a row too: a lost measurement is not the same.
        let chosen = if self.variants.is_empty() { names(base) } else { self.variants.to_vec() };
        let metrics = match self.metrics {
            [] => vec![base.main_metric.clone()],
            asked => asked.to_vec(),
        };
        let (mut rows, mut found, mut at) = (Vec::new(), Vec::new(), Vec::new());
        for name in &chosen {
            let sides = [base, other].map(|run| run.summary(name));
            let earlier: Vec<&VariantSummary> =
                history.iter().filter_map(|run| run.manifest.summary(name)).collect();
            for metric in &metrics {
                if let Some(difference) = self.difference(metric, sides, &earlier) {
                    at.push(rows.len());
                    found.push(difference);
                }
                // What neither run measured is no loss of a measurement.
                let mut known = sides.iter().flatten();
                if known.any(|summary| summary.metrics.contains_key(metric)) {
                    rows.push(RunDifference::not_measured(name, metric, sides));
                }
            }
        }
        let is_known = |metric: &&String| {
            let all = base.variants.iter().chain(&other.variants);
            all.clone().any(|variant| variant.metrics.contains_key(*metric))
        };
        let unknown = metrics.iter().find(|metric| !is_known(metric));
        if let Some(metrics) =
            unknown.map(|name| vec![name.clone()]).or(found.is_empty().then_some(metrics))
        {
            let what =
                format!("nothing to compare: no variant has {} in both runs", listed(&metrics));
            let hint = format!(
                "variants of A: {}; of B: {}; manifest.json lists the metrics of each variant",
                listed(&names(base)),
                listed(&names(other))
            );
            return Err(NotComparable { what, hint });
        }
        difference::family(&mut found);
        for (at, found) in at.into_iter().zip(&found) {
            rows[at].measured(found);
        }
        Ok(rows)
    }

    fn difference(
        &self,
        name: &str,
        [base, other]: [Option<&VariantSummary>; 2],
        history: &[&VariantSummary],
    ) -> Option<VariantDifference> {
        let scale = metric::scale(name);
        let of = |summary: &VariantSummary| summary.metrics.get(name).map(|m| m.values.clone());
        let (one, two) = (of(base?)?, of(other?)?);
        let mut runs = vec![one.clone()];
        runs.extend(history.iter().filter_map(|summary| of(summary)));
        let on_scale = |values: &Vec<f64>| values.iter().filter_map(|v| scale.of(*v)).collect();
        let runs: Vec<Vec<f64>> = runs.iter().map(on_scale).collect();
        let scatter = run_scatter(&runs).map(|deviation| (deviation, runs.len()));
        between(&one, &two, scale, self.threshold, scatter)
    }
}

impl RunDifference {
    /// Of what one run at least did not measure.
    fn not_measured(variant: &str, metric: &str, sides: [Option<&VariantSummary>; 2]) -> Self {
        let of = sides.map(|side| side.and_then(|summary| summary.metrics.get(metric)));
        Self {
            variant: variant.to_owned(),
            metric: metric.to_owned(),
            medians: of.map(|side| side.map(|found| found.median)),
            trials_count: of.map(|side| side.map_or(0, |found| found.values.len())),
            effect: MeasuredEffect::not_measured(),
        }
    }

    fn measured(&mut self, found: &VariantDifference) {
        self.medians = [Some(found.medians.0), Some(found.medians.1)];
        self.effect = MeasuredEffect::of(found, &self.metric);
    }
}

fn names(manifest: &Manifest) -> Vec<String> {
    manifest.variants.iter().map(|variant| variant.name.clone()).collect()
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// What is doubtful about two runs and their comparison, with the keys of the scenario that changed.
pub fn warnings(base: &RunReader, other: &RunReader, changed: &[Changed]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for run in [base, other] {
        for problem in &run.problems {
            let text = format!("{}: {problem}", run.directory.display());
            warnings.push(Warning::new("run-not-whole", text));
        }
        warnings.extend(doubts(run));
    }
    let before = names(&base.manifest);
    let added: Vec<String> =
        names(&other.manifest).into_iter().filter(|name| !before.contains(name)).collect();
    if !added.is_empty() {
        let text = format!("not compared: A has no variant {}", listed(&added));
        warnings.push(Warning::new("variant-without-base", text));
    }
    warnings.extend(conditions::warnings(base, other, changed));
    warnings
}
