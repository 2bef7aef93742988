//! What a search is about: the scenario, its start, and where both live.

use rxpath_lab::LabError;
use rxpath_lab::hosts::Hosts;
use rxpath_lab::run::steps::Steps;
use rxpath_lab::scenario::spec::{Compare, Resolved, Search, Variant};
use rxpath_model::calibration::Calibration;
use rxpath_record::manifest::Trial;
use rxpath_record::metric::METRICS;
use rxpath_record::verdict::Stage;
use rxpath_tune::Goal;
use rxpath_tune::auto::{AutoResult, Guard};

use super::ask::Objective;
use super::axes;
use super::candidates::{Chosen, Source};
use super::catalogue::entries;
use super::cost;
use super::ground::{Ground, InLab};
use super::in_variant::InVariant;
use super::made::{KEPT, Made, START};
use super::trials::TrialOf;
use crate::cmd::run::{resolved, resolved_between};
use crate::cmd::tune::predicted::ratio_with;
use crate::exit::Failure;

/// What is searched.
pub struct Session<'a> {
    /// The hosts, where it is not the lab.
    pub hosts: Option<&'a Hosts>,
    /// Name or file of the scenario, and its name.
    pub scenario: String,
    pub name: String,
    pub resolved: Resolved,
    pub variant: Variant,
    /// `--set`s of the whole scenario, and what names the variant in further ones.
    pub sets: Vec<String>,
    pub prefix: String,
    pub objective: Objective,
    pub guards: Vec<Guard>,
    pub cpus: Vec<u32>,
    pub calibration: Option<Calibration>,
    pub goal: Option<Goal>,
    /// What the scenario itself names as candidates, instead of the rules and the catalogue.
    pub axes: Option<Search>,
}

/// The scenario with these keys set, for the lab or for hosts that may be changed.
pub fn made_of(
    scenario: &str,
    sets: &[String],
    hosts: Option<&Hosts>,
) -> Result<Resolved, Failure> {
    match hosts {
        Some(hosts) => resolved_between(scenario, sets, (hosts, true)),
        None => resolved(scenario, sets),
    }
}

impl Session<'_> {
    /// The variant with these keys set.
    pub fn with(&self, sets: &[String]) -> Result<Variant, String> {
        let own = sets.iter().map(|set| format!("{}{set}", self.prefix));
        let sets: Vec<String> = self.sets.iter().cloned().chain(own).collect();
        let made = made_of(&self.scenario, &sets, self.hosts).map_err(|failure| failure.line())?;
        let found = made.variants.into_iter().find(|variant| variant.name == self.variant.name);
        found
            .map(|variant| Variant { settings: self.variant.settings.clone(), ..variant })
            .ok_or_else(|| format!("{} has no variant {} any more", self.name, self.variant.name))
    }

    pub fn candidates(
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
        let source = Source {
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
    pub fn compare(
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
        let compare = std::iter::once(own.as_str()).chain(others).map(|metric| Compare {
            metric: metric.into(),
            base: START.into(),
            variant: KEPT.into(),
            expected: None,
            published: None,
        });
        let names = found.kept.iter().map(|kept| kept.name.as_str()).collect();
        let trials: Vec<Made<'_>> = made.iter().map(TrialOf::made).collect();
        let confirming = cost::confirmation(&trials, &names);
        // A disturbed attempt at its first trial belongs to it.
        let before = confirming.start.checked_sub(1).and_then(|at| made.get(at));
        let first = before.map_or(0, |trial| trial.trial + 1);
        let last = made.get(confirming).and_then(<[_]>::last).map_or(0, |trial| trial.trial);
        steps.about_within(first..=last, vec![start, kept], compare.collect())
    }
}
