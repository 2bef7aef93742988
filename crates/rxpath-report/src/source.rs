//! What the report is made of: everything that could be read from one run directory, and a list of what could not.

use rxpath_record::environment::Environment;
use rxpath_record::event::Event;
use rxpath_record::manifest::{Manifest, Trial, VariantSummary};

/// One run as far as it is readable.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Name of the directory: shown when there is no manifest.
    pub name: String,
    /// `manifest.json`, when it could be read.
    pub manifest: Option<Manifest>,
    /// `environment.json`, when it could be read.
    pub environment: Option<Environment>,
    /// The whole lines of `events.jsonl`.
    pub events: Vec<Event>,
    /// What could not be read, what was changed by hand, what is missing: one sentence each, shown at the top.
    pub problems: Vec<String>,
}

impl Run {
    /// Trials that count, of one variant, in the order of running.
    pub(crate) fn valid_trials<'a>(&'a self, variant: &'a str) -> impl Iterator<Item = &'a Trial> {
        self.manifest
            .iter()
            .flat_map(|manifest| &manifest.trials)
            .filter(move |trial| trial.variant == variant && trial.void.is_none())
    }

    /// The variant's trial whose delivered rate is nearest to the median: the one that is shown in pictures.
    pub(crate) fn typical_trial<'a>(&'a self, variant: &'a str) -> Option<&'a Trial> {
        let of = |trial: &Trial| trial.evidence.delivered_pps;
        let mut rates: Vec<f64> = self.valid_trials(variant).map(of).collect();
        rates.sort_by(f64::total_cmp);
        let (low, high) = (rates.len().checked_sub(1)? / 2, rates.len() / 2);
        let median = f64::midpoint(rates[low], rates[high]);
        let distance = |trial: &Trial| (of(trial) - median).abs();
        self.valid_trials(variant).min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// The variants that were run, with their typical trial, in the scenario's order.
    pub(crate) fn shown(&self) -> Vec<(usize, &VariantSummary, &Trial)> {
        let variants = self.manifest.iter().flat_map(|manifest| &manifest.variants).enumerate();
        variants.filter_map(|(at, v)| self.typical_trial(&v.name).map(|t| (at, v, t))).collect()
    }
}
