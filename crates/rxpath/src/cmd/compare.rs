//! `rxpath compare A B`: is the second run better, worse or the same as the first?

mod hosts;

use std::path::{Path, PathBuf};

use clap::Args;
use rxpath_core::{Envelope, Warning};
use rxpath_record::comparison::{Effect, Outcome};
use rxpath_record::manifest::{Manifest, VariantSummary};
use rxpath_record::run::RunReader;
use rxpath_stats::difference::between;
use rxpath_stats::metric;
use schemars::JsonSchema;
use serde::Serialize;

use crate::exit::{Exit, Failure, Outcome as Ended};
use crate::output::format::FormatArgs;
use crate::output::{self, json};
use hosts::Changed;

/// Seed of the resampling: the same runs give the same verdicts.
const SEED: u64 = 1;
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
    /// Compare only this variant; repeatable [default: all variants that both runs have]
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Ratios within 1 +- this count as the same; shares (`*_ratio`) are compared by difference and count as the same
    /// within half a percentage point
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    threshold: f64,
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
    /// The worst verdict of all differences: worse, inconclusive, no-ratio, same, better.
    outcome: Outcome,
    /// One entry for each variant and metric.
    differences: Vec<Difference>,
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
    /// Median of each run: base, other.
    medians: [f64; 2],
    /// Trials of each run.
    trials_count: [usize; 2],
    /// The difference, with each run resampled separately; the ranges cover any two trials.
    #[serde(flatten)]
    effect: Effect,
}

impl CompareCommand {
    /// Reads both runs and reports the difference.
    pub fn run(self) -> Ended {
        if !(0.0..1.0).contains(&self.threshold) {
            return Err(Failure::usage(format!(
                "--threshold {}: a share from 0 to 1",
                self.threshold
            ))
            .hint("0.02 calls ratios from 0.98 to 1.02 the same"));
        }
        let open = |path: &Path| RunReader::open(path).map_err(|e| Failure::new(Exit::Usage, e));
        let (base, other) = (open(&self.base)?, open(&self.other)?);
        let differences = self.differences(&base.manifest, &other.manifest)?;
        let hosts_changed = hosts::changed(base.environment.as_ref(), other.environment.as_ref());
        let warnings = warnings(&base, &other);
        let outcome = worst(&differences);
        if self.format.is_json() {
            let settings =
                Settings { base: &self.base, other: &self.other, threshold_ratio: self.threshold };
            let result = Compared { outcome, differences, hosts_changed };
            json(&Envelope::new("compare", settings, result, warnings))?;
        } else {
            for warning in &warnings {
                output::warning(warning);
            }
            output::text(&text(&differences, &hosts_changed))?;
        }
        Ok(match outcome {
            Outcome::Better | Outcome::Same => Exit::Done,
            Outcome::Worse => Exit::Negative,
            Outcome::Inconclusive | Outcome::NoRatio => Exit::Inconclusive,
        })
    }

    fn differences(&self, base: &Manifest, other: &Manifest) -> Result<Vec<Difference>, Failure> {
        let names = |manifest: &Manifest| -> Vec<String> {
            manifest.variants.iter().map(|variant| variant.name.clone()).collect()
        };
        let common: Vec<String> =
            names(base).into_iter().filter(|name| names(other).contains(name)).collect();
        if let Some(unknown) = self.variants.iter().find(|name| !common.contains(name)) {
            return Err(Failure::usage(format!("--variant {unknown}: not in both runs"))
                .hint(format!("both have {}", listed(&common))));
        }
        let metrics = match self.metrics.as_slice() {
            [] => vec![base.main_metric.clone()],
            asked => asked.to_vec(),
        };
        let chosen =
            common.iter().filter(|name| self.variants.is_empty() || self.variants.contains(name));
        let mut found = Vec::new();
        for name in chosen {
            let of = |manifest: &Manifest| -> Option<VariantSummary> {
                manifest.variants.iter().find(|variant| variant.name == *name).cloned()
            };
            let (Some(one), Some(two)) = (of(base), of(other)) else { continue };
            found.extend(metrics.iter().filter_map(|metric| self.difference(metric, &one, &two)));
        }
        if found.is_empty() {
            let what =
                format!("nothing to compare: no variant of both runs has {}", listed(&metrics));
            return Err(Failure::usage(what).hint(format!(
                "variants of A: {}; of B: {}; manifest.json lists the metrics of each variant",
                listed(&names(base)),
                listed(&names(other))
            )));
        }
        Ok(found)
    }

    fn difference(
        &self,
        name: &str,
        base: &VariantSummary,
        other: &VariantSummary,
    ) -> Option<Difference> {
        let (one, two) = (base.metrics.get(name)?, other.metrics.get(name)?);
        let found = between(&one.values, &two.values, metric::scale(name), SEED)?;
        Some(Difference {
            variant: base.name.clone(),
            metric: name.to_owned(),
            medians: [one.median, two.median],
            trials_count: [one.values.len(), two.values.len()],
            effect: Effect::of(&found, name, self.threshold),
        })
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The overall verdict: worse if anything is worse.
fn worst(differences: &[Difference]) -> Outcome {
    let any = |word: Outcome| differences.iter().any(|found| found.effect.outcome == word);
    [Outcome::Worse, Outcome::Inconclusive, Outcome::NoRatio, Outcome::Same]
        .into_iter()
        .find(|word| any(*word))
        .unwrap_or(Outcome::Better)
}

fn warnings(base: &RunReader, other: &RunReader) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for run in [base, other] {
        for problem in &run.problems {
            let text = format!("{}: {problem}", run.directory.display());
            warnings.push(Warning::new("run-not-whole", text));
        }
    }
    let (one, two) = (&base.manifest, &other.manifest);
    if one.scenario != two.scenario {
        let text =
            format!("the runs are of different scenarios, {} and {}", one.scenario, two.scenario);
        let why = "variants of one name may not be the same thing";
        warnings.push(Warning::new("other-scenario", text).because(why));
    }
    for variant in &one.variants {
        let same = two.variants.iter().find(|other| other.name == variant.name);
        if same.is_some_and(|other| other.settings != variant.settings) {
            let text = format!("variant {} has other settings in the two runs", variant.name);
            warnings.push(Warning::new("other-settings", text));
        }
    }
    warnings
}

fn text(differences: &[Difference], hosts: &[Changed]) -> String {
    let mut out = String::new();
    for d in differences {
        let (metric, effect) = (&d.metric, &d.effect);
        let [one, two] = d.medians.map(|median| shown(metric, median));
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
