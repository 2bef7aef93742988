//! `rxpath compare A B`: is the second run better, worse or the same as the first?

mod hosts;

use std::path::{Path, PathBuf};

use clap::Args;
use rxpath_core::{Envelope, Warning};
use rxpath_record::manifest::{Manifest, VariantSummary};
use rxpath_record::run::RunReader;
use rxpath_stats::difference::{Word, between};
use rxpath_stats::metric;
use schemars::JsonSchema;
use serde::Serialize;

use crate::exit::{Exit, Failure, Outcome};
use crate::output::format::FormatArgs;
use crate::output::{self, json};
use hosts::Changed;

/// Of the resamples: the same runs get the same words.
const SEED: u64 = 1;
/// Lines on what differs between the hosts that people are shown; `--json` has them all.
const SHOWN: usize = 8;

/// `rxpath compare`
#[derive(Debug, Args)]
pub struct CompareCommand {
    /// The run that is the base
    #[arg(value_name = "A")]
    base: PathBuf,
    /// The run that is held against it
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Compare this metric; repeatable [default: the one that the runs are about]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Compare this variant alone; repeatable [default: all that both runs have]
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Ratios within 1 +- this are the same
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
    /// The worst word of all differences: worse, inconclusive, same, better.
    outcome: Word,
    /// One for each variant and metric.
    differences: Vec<Difference>,
    /// Facts of the hosts that are not the same: reasons for a difference that are none of the variant's.
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
    /// Ratio of the medians.
    ratio: f64,
    /// Its 95 % interval, resampled in each run apart; `null` under five trials of either.
    interval: Option<[f64; 2]>,
    /// Smallest and largest ratio of any two trials.
    range: [f64; 2],
    /// What it is for this metric.
    outcome: Word,
}

impl CompareCommand {
    /// Reads both runs and says the difference.
    pub fn run(self) -> Outcome {
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
            Word::Better | Word::Same => Exit::Done,
            Word::Worse => Exit::Negative,
            Word::Inconclusive => Exit::Inconclusive,
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
                "variants of A: {}; of B: {}; metrics of a variant stand in manifest.json",
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
        let found = between(&one.values, &two.values, SEED)?;
        Some(Difference {
            variant: base.name.clone(),
            metric: name.to_owned(),
            medians: [one.median, two.median],
            trials_count: [one.values.len(), two.values.len()],
            ratio: found.ratio,
            interval: found.interval.map(|interval| [interval.low, interval.high]),
            range: [found.range.0, found.range.1],
            outcome: found.word(metric::good(name), self.threshold),
        })
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The word of all together: a loss anywhere is a loss.
fn worst(differences: &[Difference]) -> Word {
    let any = |word: Word| differences.iter().any(|difference| difference.outcome == word);
    [Word::Worse, Word::Inconclusive, Word::Same]
        .into_iter()
        .find(|word| any(*word))
        .unwrap_or(Word::Better)
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
        let sure = match d.interval {
            Some([low, high]) => format!("95 % interval {low:.3} to {high:.3}"),
            None => format!(
                "range {:.3} to {:.3}, under five trials of a run give no interval",
                d.range[0], d.range[1]
            ),
        };
        let word = format!("{:?}", d.outcome).to_lowercase();
        let [one, two] = d.medians.map(rxpath_core::units::si);
        out += &format!(
            "{}: {one} to {two}, {:.3} times the {} ({sure}): {word}\n",
            d.variant, d.ratio, d.metric
        );
    }
    if hosts.is_empty() {
        out += "the hosts are the same by all facts that were recorded\n";
    }
    for change in hosts.iter().take(SHOWN) {
        out += &format!("host: {} was {}, is {}\n", change.fact, change.base, change.other);
    }
    if hosts.len() > SHOWN {
        out += &format!("host: {} further facts differ (--json)\n", hosts.len() - SHOWN);
    }
    out
}
