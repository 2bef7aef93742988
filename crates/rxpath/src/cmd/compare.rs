//! `rxpath compare A B`: is the second run better, worse or the same as the first?

mod conditions;
mod hosts;

use rxpath_record::comparison::{MeasuredEffect, Outcome};
use rxpath_record::doubts::doubts;
use rxpath_record::manifest::{Manifest, VariantSummary};
use rxpath_record::metric;
use rxpath_record::run::RunReader;
use rxpath_stats::difference::{self, between};
use rxpath_stats::welch::run_scatter;

use crate::cmd::gate::{self, FailOn};
use crate::cmd::prelude::*;
use crate::exit::Outcome as Ended;
use crate::output::json;
use hosts::Changed;

/// Host differences that the text shows at most; `--json` has them all.
const SHOWN: usize = 8;

/// `rxpath compare`
#[derive(Debug, Args)]
pub struct CompareCommand {
    /// The base run
    #[arg(value_name = "A")]
    base: PathBuf,
    /// The run to compare with the base
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Compare this metric; repeatable [default: the main metric of the runs]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Compare only this variant; repeatable [default: all variants of A]
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Ratios within 1 +- this count as the same; shares (`*_ratio`) are compared by difference near zero
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    threshold: f64,
    /// A further run of the same code as A; repeatable. With two or more, the scatter between runs counts: without it,
    /// a difference may be that of two boots or two hours
    #[arg(long, value_name = "RUN")]
    history: Vec<PathBuf>,
    /// Without the scatter between runs, report every difference as inconclusive
    #[arg(long)]
    strict: bool,
    /// What ends with exit 1
    #[arg(long, value_enum, value_name = "WORD", default_value_t)]
    fail_on: FailOn,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Serialize)]
struct Settings<'a> {
    base: &'a Path,
    other: &'a Path,
    threshold_ratio: f64,
}

/// The `result` object.
#[derive(Serialize, JsonSchema)]
pub struct Compared {
    /// The worst verdict of all differences: worse, inconclusive, same, better.
    outcome: Outcome,
    /// Whether the differences hold only if two runs of the same code do not differ: no `--history` was given.
    assumes_no_run_scatter: bool,
    /// One entry for each variant and metric.
    differences: Vec<Difference>,
    /// Keys of the scenario that differ: durations of a trial and settings of variants that both runs have.
    scenario_changed: Vec<Changed>,
    /// Host facts that differ: possible causes of a difference, other than the variant.
    hosts_changed: Vec<Changed>,
}

/// `other / base` of one metric of one variant.
#[derive(Serialize, JsonSchema)]
struct Difference {
    /// Variant name.
    variant: String,
    /// Metric name, with its unit.
    metric: String,
    /// Median of each run: base, other; `null` where the run has none.
    medians: [Option<f64>; 2],
    /// Trials of each run.
    trials_count: [usize; 2],
    /// The difference; the ranges cover any two trials.
    #[serde(flatten)]
    effect: MeasuredEffect,
}

impl CompareCommand {
    /// Reads both runs and reports the difference.
    pub fn run(self) -> Ended {
        if !(0.0..1.0).contains(&self.threshold) {
            return Err(Failure::usage(format!(
                "--threshold {}: a share from 0 to 1",
                self.threshold
            ))
            .hint("0.03 calls ratios from 0.97 to 1.03 the same"));
        }
        let open = |path: &Path| RunReader::open(path).map_err(Failure::usage_of);
        let (base, other) = (open(&self.base)?, open(&self.other)?);
        let history: Vec<RunReader> =
            self.history.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
        if history.len() == 1 {
            return Err(Failure::usage("--history: one further run shows no scatter between runs")
                .hint("give two or more runs of the same code as A"));
        }
        let differences = self.differences(&base.manifest, &other.manifest, &history)?;
        let assumes_no_run_scatter = history.is_empty();
        let hosts_changed = hosts::changed(base.environment.as_ref(), other.environment.as_ref());
        let scenario_changed = conditions::scenario(&base.manifest, &other.manifest);
        let mut warnings = warnings(&base, &other, &scenario_changed);
        let mut outcome =
            gate::worst(differences.iter().map(|one| gate::word(&one.effect, self.fail_on)));
        if assumes_no_run_scatter && matches!(outcome, Outcome::Better | Outcome::Worse) {
            let text = "the differences hold only if two runs of the same code do not differ";
            let why = "another boot or another hour can change a rate by more than trials scatter";
            let cure =
                "give further runs of A's code by --history, or make both variants of one run";
            warnings.push(Warning::new("run-scatter-unknown", text).because(why).cure(cure));
            if self.strict {
                outcome = Outcome::Inconclusive;
            }
        }
        if self.format.is_json() {
            let settings =
                Settings { base: &self.base, other: &self.other, threshold_ratio: self.threshold };
            let result = Compared {
                outcome,
                assumes_no_run_scatter,
                differences,
                scenario_changed,
                hosts_changed,
            };
            json(&Envelope::new("compare", settings, result, warnings))?;
        } else {
            for warning in &warnings {
                output::warning(warning);
            }
            output::text(&text(&differences, &hosts_changed))?;
        }
        Ok(gate::exit(outcome))
    }

    fn differences(
        &self,
        base: &Manifest,
        other: &Manifest,
        history: &[RunReader],
    ) -> Result<Vec<Difference>, Failure> {
        let common: Vec<String> =
            names(base).into_iter().filter(|name| names(other).contains(name)).collect();
        if let Some(unknown) = self.variants.iter().find(|name| !common.contains(name)) {
            return Err(Failure::usage(format!("--variant {unknown}: not in both runs"))
                .hint(format!("both have {}", listed(&common))));
        }
        // What A measured and B did not is a row too: a lost measurement is not the same.
        let chosen = if self.variants.is_empty() { names(base) } else { self.variants.clone() };
        let metrics = match self.metrics.as_slice() {
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
                    rows.push(Difference::not_measured(name, metric, sides));
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
            return Err(Failure::usage(what).hint(format!(
                "variants of A: {}; of B: {}; manifest.json lists the metrics of each variant",
                listed(&names(base)),
                listed(&names(other))
            )));
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
    ) -> Option<difference::VariantDifference> {
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

impl Difference {
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

    fn measured(&mut self, found: &difference::VariantDifference) {
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

fn warnings(base: &RunReader, other: &RunReader, changed: &[Changed]) -> Vec<Warning> {
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

fn text(differences: &[Difference], hosts: &[Changed]) -> String {
    let mut out = String::new();
    for d in differences {
        let (metric, effect) = (&d.metric, &d.effect);
        let [Some(one), Some(two)] = d.medians.map(|median| Some(shown(metric, median?))) else {
            let by = if d.medians[0].is_none() { "A" } else { "B" };
            out += &format!("{}: {metric}: inconclusive: {by} did not measure it\n", d.variant);
            continue;
        };
        out += &format!(
            "{}: {metric}: {one} to {two}, {} ({}): {}\n",
            d.variant,
            effect.amount(metric),
            effect.sureness(metric),
            effect.verdict("trials of each run")
        );
    }
    if hosts.is_empty() {
        out += "the hosts agree in all recorded facts\n";
    }
    for change in hosts.iter().take(SHOWN) {
        out += &format!("host: {} was {}, is {}\n", change.fact, change.base, change.other);
    }
    if hosts.len() > SHOWN {
        out += &format!("host: {} further facts differ (--json)\n", hosts.len() - SHOWN);
    }
    out
}

fn shown(metric: &str, value: f64) -> String {
    if metric::is_share(metric) {
        return format!("{:.2} %", value * 100.0);
    }
    rxpath_core::units::si(value)
}
