//! The input of the report: everything that could be read from one run directory, and a list of what could not.

use rxpath_record::agreement::median_trial;
use rxpath_record::environment::Environment;
use rxpath_record::event::RunEvent;
use rxpath_record::manifest::{Manifest, Status, Trial, VariantSummary};
use rxpath_record::run::RunReader;
use rxpath_record::samples::TrialSamples;

/// The readable parts of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the directory.
    pub(crate) name: String,
    /// `manifest.json`, or its content reconstructed from the events.
    pub(crate) manifest: Manifest,
    /// `environment.json`, when it could be read.
    pub(crate) environment: Option<Environment>,
    /// The whole lines of `events.jsonl`.
    pub(crate) events: Vec<RunEvent>,
    /// Queues over time, one entry per sampled trial.
    pub(crate) samples: Vec<TrialSamples>,
    /// Parts that could not be read, were changed by hand, or are missing: one sentence each, shown at the top.
    pub(crate) problems: Vec<String>,
}

impl From<RunReader> for Run {
    fn from(reader: RunReader) -> Self {
        let name = reader.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut problems: Vec<String> = reader.problems.iter().map(ToString::to_string).collect();
        // A run that ended early is consistent, but not what was requested.
        if matches!(reader.manifest.status, Status::Interrupted | Status::Failed) {
            problems.extend(reader.partial());
        }
        Self {
            name: name.unwrap_or_else(|| reader.manifest.run_id.clone()),
            manifest: reader.manifest,
            environment: reader.environment,
            events: reader.events,
            samples: reader.samples,
            problems,
        }
    }
}

impl Run {
    /// The run's title: its scenario, or its directory if the scenario is not known.
    pub(crate) fn title(&self) -> &str {
        if self.manifest.scenario.is_empty() { &self.name } else { &self.manifest.scenario }
    }

    /// The main metric of the run.
    pub(crate) fn main_metric(&self) -> &str {
        &self.manifest.main_metric
    }

    /// What its ledgers count, in the plural.
    pub(crate) fn unit(&self) -> &'static str {
        self.manifest.trials.first().map_or("datagrams", |trial| trial.ledger.unit.word())
    }

    /// The variant's trial whose main metric is nearest to its median: the trial shown in pictures.
    pub(crate) fn typical_trial<'a>(&'a self, variant: &'a str) -> Option<&'a Trial> {
        median_trial(&self.manifest.counted(variant), self.main_metric())
    }

    /// The variants that were run, with their typical trial, in the scenario's order.
    pub(crate) fn shown(&self) -> Vec<(&VariantSummary, &Trial)> {
        let variants = self.manifest.variants.iter();
        variants.filter_map(|v| self.typical_trial(&v.name).map(|t| (v, t))).collect()
    }

    /// The same, each with a part of that trial; without those whose trial lacks it.
    pub(crate) fn shown_with<T>(
        &self,
        part: impl Fn(&Trial) -> Option<&T>,
    ) -> Vec<(&VariantSummary, &T)> {
        let shown = self.shown().into_iter();
        shown.filter_map(|(variant, trial)| Some((variant, part(trial)?))).collect()
    }
}
