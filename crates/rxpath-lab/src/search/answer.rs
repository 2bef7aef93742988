//! The result of a search as JSON.

use std::path::PathBuf;

use rxpath_record::comparison::Comparison;
use rxpath_tune::auto::report::Kept;
use rxpath_tune::auto::{AutoOutcome, AutoResult, Candidate};
use rxpath_tune::plan::{LeftOut, Plan};
use schemars::JsonSchema;
use serde::Serialize;

use super::live::answer::{AppliedHere, LiveAnswer, LiveSettings};
use super::trials::TrialOf;

/// The `settings` object of `rxpath tune auto`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AutoSettings {
    /// The scenario; none on real traffic.
    pub scenario: Option<String>,
    /// The variant at the start; none on real traffic.
    pub variant: Option<String>,
    /// How real traffic was searched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveSettings>,
    /// What is made better: a metric.
    pub objective: String,
    /// What must not become worse.
    pub guards: Vec<String>,
    /// Time for all trials. **Unit** s.
    pub budget_s: f64,
    /// Whether it ran between hosts instead of in the lab.
    pub between_hosts: bool,
    /// Seed of the arrays.
    pub seed: u64,
    /// The run directory.
    pub run: PathBuf,
    /// The plan file; none if nothing is kept.
    pub plan_file: Option<PathBuf>,
}

/// The result of `rxpath tune auto`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AutoAnswer {
    /// The limiting stage of the start, in a sentence.
    pub limit: Option<String>,
    /// The objective at the start: its value in the first trial.
    pub start: Option<f64>,
    /// What could be tried, the likeliest first.
    pub candidates: Vec<Candidate>,
    /// What could not, with the reason.
    pub not_available: Vec<LeftOut>,
    /// What a trial takes. **Unit** s.
    pub trial_s: f64,
    /// What the search found; none without candidates and with `--dry-run`.
    pub found: Option<AutoResult>,
    /// Every metric that the kept settings changed, over the confirming pairs.
    pub compared: Vec<Comparison>,
    /// Each trial, with the candidates that were on.
    pub trials: Vec<TrialOf>,
    /// What was seen of real traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveAnswer>,
    /// The plan of what is kept.
    pub plan: Option<Plan>,
    /// What was kept is in force; none without `--apply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedHere>,
}

impl AutoAnswer {
    /// What is kept, where anything is.
    pub fn kept(&self) -> Option<&[Kept]> {
        let found = self.found.as_ref().filter(|found| found.ended == AutoOutcome::Kept)?;
        Some(&found.kept)
    }
}
