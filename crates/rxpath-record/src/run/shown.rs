//! What a page shows of a run: its title, what is wrong with it, and the trial that stands for each variant.

use super::RunReader;
use crate::agreement::median_trial;
use crate::manifest::{Status, Trial, VariantSummary};

impl RunReader {
    /// Name of its directory.
    pub fn name(&self) -> String {
        let name = self.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| self.manifest.run_id.clone())
    }

    /// Its title: its scenario, or its directory if the scenario is not known.
    pub fn title(&self) -> String {
        let scenario = &self.manifest.scenario;
        if scenario.is_empty() { self.name() } else { scenario.clone() }
    }

    /// Parts that could not be read, were changed by hand, or are missing: one sentence each; and that it ended early.
    pub fn faults(&self) -> Vec<String> {
        // A run that ended early is consistent, but not what was requested. Its problems say it of a killed one.
        let early = self.partial().filter(|_| self.manifest.status != Status::Running);
        self.problems.iter().map(ToString::to_string).chain(early).collect()
    }

    /// Its main metric.
    pub fn main_metric(&self) -> &str {
        &self.manifest.main_metric
    }

    /// What its ledgers count, in the plural.
    pub fn unit(&self) -> &'static str {
        self.manifest.trials.first().map_or("datagrams", |trial| trial.ledger.unit.word())
    }

    /// The variant's trial whose main metric is nearest to its median: the trial shown in pictures.
    pub fn typical_trial<'a>(&'a self, variant: &'a str) -> Option<&'a Trial> {
        median_trial(&self.manifest.counted(variant), self.main_metric())
    }

    /// The variants that were run, with their typical trial, in the scenario's order.
    pub fn shown(&self) -> Vec<(&VariantSummary, &Trial)> {
        let variants = self.manifest.variants.iter();
        variants.filter_map(|v| self.typical_trial(&v.name).map(|t| (v, t))).collect()
    }

    /// The same, each with a part of that trial; without those whose trial lacks it.
    pub fn shown_with<T>(&self, part: impl Fn(&Trial) -> Option<&T>) -> Vec<(&VariantSummary, &T)> {
        let shown = self.shown().into_iter();
        shown.filter_map(|(variant, trial)| Some((variant, part(trial)?))).collect()
    }
}
