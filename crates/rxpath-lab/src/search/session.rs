//! The search over trials of a scenario: the start, the candidates, the trials, the comparison of what is kept.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rxpath_model::calibration::Calibration;
use rxpath_record::manifest::Trial;
use rxpath_record::metric::METRICS;
use rxpath_record::verdict::Stage;
use rxpath_tune::Goal;
use rxpath_tune::auto::{self, AutoResult, Failed, MetricGuard};

use super::answer::AutoAnswer;
use super::ask::{self, NotMeasured, Objective, SearchOptions};
use super::axes;
use super::candidates::{CandidateSource, Chosen};
use super::catalogue::entries;
use super::confirming::confirmation;
use super::ground::{Ground, InLab};
use super::in_variant::InVariant;
use super::made::{KEPT, Made, START};
use super::searched::Searched;
use super::trials::{TrialOf, Trials};
use crate::error::LabError;
use crate::hosts::Hosts;
use crate::predict::setting::ratio_with;
use crate::run::steps::Steps;
use crate::scenario::spec::{Compare, Resolved, Search, Variant};

/// Makes the scenario with these keys set; in words why there is none.
pub type Resolve<'a> = dyn Fn(&[String]) -> Result<Resolved, String> + 'a;

/// What is searched.
pub struct SearchSession<'a> {
    /// The hosts, where it is not the lab.
    pub hosts: Option<&'a Hosts>,
    /// Makes the scenario with other keys set.
    pub resolve: Box<Resolve<'a>>,
    /// The costs of this host, from which it is predicted what a candidate does.
    pub calibration: Option<Calibration>,
    /// Name of the scenario.
    pub name: String,
    /// The scenario, with the start as its only variant.
    pub resolved: Resolved,
    /// The start.
    pub variant: Variant,
    /// `--set`s of the whole scenario.
    pub sets: Vec<String>,
    /// What names the variant in further ones; empty where keys hold for all.
    pub prefix: String,
    /// What is made better.
    pub objective: Objective,
    /// What must not become worse.
    pub guards: Vec<MetricGuard>,
    /// CPUs that the programs may use.
    pub cpus: Vec<u32>,
    /// Workload goal for which the rules are asked.
    pub goal: Option<Goal>,
    /// What the scenario itself names as candidates, instead of the rules and the catalogue.
    pub axes: Option<Search>,
}

/// Why a search ends without a result.
#[derive(Debug)]
pub enum Stop {
    /// In the lab.
    Lab(LabError),
    /// The start does not measure what is asked for.
    NotMeasured(NotMeasured),
    /// The budget is too short.
    TooShort {
        /// Trials that a search needs at least.
        needed: usize,
        /// What one takes.
        full: Duration,
    },
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

impl SearchSession<'_> {
    /// One trial of the start, the candidates, the search. What is known when it ends is in the answer, however it ends.
    ///
    /// # Errors
    /// Of a trial; and if the start does not measure what is asked for, or the budget is too short.
    pub fn search(
        &self,
        steps: &mut Steps<'_, '_>,
        asked: &SearchOptions<'_>,
        answer: &mut AutoAnswer,
    ) -> Result<(), Stop> {
        let measure = self.resolved.trials.measure;
        // The budget begins when the lab is free.
        let begun = Instant::now();
        let deadline = begun + asked.budget.as_duration();
        // The variant as it is.
        let start = Variant { name: "diagnosis".into(), ..self.variant.clone() };
        let trial = steps.trial(&start, 0, measure)?;
        // Numbers are from 0; a disturbed trial was repeated.
        let full = begun.elapsed() / (trial.trial + 1);
        let about = (&trial.metrics, self.name.as_str());
        ask::measured(&self.objective, &self.guards, about).map_err(Stop::NotMeasured)?;
        answer.trial_s = full.as_secs_f64();
        answer.start = trial.metrics.get(&self.objective.metric).copied();
        answer.limit = trial.verdict.as_ref().map(|verdict| verdict.sentence.clone());
        let chosen = self.candidates(steps, &trial, asked.only)?;
        (answer.candidates, answer.not_available) = (chosen.candidates, chosen.left_out);
        if asked.dry_run || answer.candidates.is_empty() {
            return Ok(());
        }
        let candidates = answer.candidates.clone();
        let (objective, guards) = (&self.objective, self.guards.as_slice());
        let searched = Searched { candidates: &candidates, objective, guards, deadline };
        let with = |sets: &[String]| self.with(sets);
        let mut trials = Trials {
            steps,
            with: &with,
            searched,
            measure,
            full,
            made: Vec::new(),
            variants: BTreeMap::new(),
            full_count: 1,
        };
        let found =
            auto::search(&mut trials, &searched.plan(asked)).map_err(|failed| match failed {
                Failed::Measure(error, known) => {
                    (answer.found, answer.trials) =
                        (Some(*known), std::mem::take(&mut trials.made));
                    Stop::Lab(error)
                }
                Failed::TooShort(short) => Stop::TooShort { needed: short.needed, full },
            })?;
        let on: Vec<usize> = (0..candidates.len())
            .filter(|at| found.kept.iter().any(|kept| kept.name == candidates[*at].name))
            .collect();
        let kept = trials.variant(&on)?;
        answer.trials = std::mem::take(&mut trials.made);
        self.compare(steps, &found, (kept, &answer.trials))?;
        answer.found = Some(found);
        Ok(())
    }

    /// The variant with these keys set.
    fn with(&self, sets: &[String]) -> Result<Variant, String> {
        let own = sets.iter().map(|set| format!("{}{set}", self.prefix));
        let sets: Vec<String> = self.sets.iter().cloned().chain(own).collect();
        let made = (self.resolve)(&sets)?;
        let found = made.variants.into_iter().find(|variant| variant.name == self.variant.name);
        found
            .map(|variant| Variant { settings: self.variant.settings.clone(), ..variant })
            .ok_or_else(|| format!("{} has no variant {} any more", self.name, self.variant.name))
    }

    fn candidates(
        &self,
        steps: &Steps<'_, '_>,
        trial: &Trial,
        only: &[String],
    ) -> Result<Chosen, LabError> {
        let lab = || steps.lab(&self.variant);
        let in_lab = InLab(&lab);
        let ground: &dyn Ground = match self.hosts {
            Some(hosts) => hosts,
            None => &in_lab,
        };
        let here = InVariant { variant: &self.variant, ground, with: &|sets| self.with(sets) };
        if let Some(search) = &self.axes {
            return axes::candidates(search, &|entry| here.available(entry));
        }
        let (advice, left_out) = ground.advice(self.goal)?;
        let source = CandidateSource {
            stage: trial.verdict.as_ref().map_or(Stage::Unknown, |verdict| verdict.stage),
            only,
            advice,
            entries: entries(&self.variant, trial, &self.cpus),
            available: &|entry| here.available(entry),
            predict: &|sets| {
                let calibration = self.calibration.as_ref()?;
                let metric = &self.objective.metric;
                let ratio = ratio_with(&self.variant, trial, calibration, sets, metric)?;
                Some(ratio.powf(self.objective.sign()))
            },
        };
        let mut chosen = source.choose()?;
        chosen.left_out.splice(0..0, left_out);
        Ok(chosen)
    }

    /// The run is about the start and what is kept: their pairs are compared in every metric that both have.
    fn compare(
        &self,
        steps: &mut Steps<'_, '_>,
        found: &AutoResult,
        (kept, made): (Variant, &[TrialOf]),
    ) -> Result<(), LabError> {
        let start = Variant {
            name: START.into(),
            what: "as the scenario sets it".into(),
            ..self.variant.clone()
        };
        if found.gain.is_none() && found.guards.is_empty() {
            return steps.about(vec![start], Vec::new());
        }
        let what = found.kept.iter().map(|kept| kept.name.clone()).collect::<Vec<_>>().join(", ");
        let kept = Variant { name: KEPT.into(), what, ..kept };
        let own = &self.objective.metric;
        let others = METRICS.iter().map(|metric| metric.name).filter(|name| name != own);
        let compare = std::iter::once(own.as_str()).chain(others);
        let compare = compare.map(|metric| Compare::of(metric, START, KEPT));
        let names = found.kept.iter().map(|kept| kept.name.as_str()).collect();
        let trials: Vec<Made<'_>> = made.iter().map(TrialOf::made).collect();
        let confirming = confirmation(&trials, &names);
        // A disturbed attempt at its first trial belongs to it.
        let before = confirming.start.checked_sub(1).and_then(|at| made.get(at));
        let first = before.map_or(0, |trial| trial.trial + 1);
        let last = made.get(confirming).and_then(<[_]>::last).map_or(0, |trial| trial.trial);
        steps.about_within(first..=last, vec![start, kept], compare.collect())
    }
}
