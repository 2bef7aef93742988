//! Trials one at a time, each chosen by a caller from what the last ones gave: for searches.
//!
//! The run directory holds every trial like those of any run. When the caller says what the run was about, those
//! trials are summarised and compared.

use std::ops::RangeInclusive;

use rxpath_core::Nanos;
use rxpath_record::event::What;
use rxpath_record::manifest::Trial;

use super::progress::Progress;
use super::{FinishedRun, Options, Running, as_json, summary, within};
use crate::error::{LabError, cannot};
use crate::scenario::spec::{Compare, Resolved, Variant};
use crate::testbed::netns::NetnsTestbed;

/// Trials that replace a disturbed one, at most. A search can better bear one that is disturbed than lose its time.
const REPLACEMENTS: u32 = 1;
/// A disturbed trial is not repeated where one in so many is disturbed: the next one would be, too.
const OFTEN: usize = 4;

/// A run whose trials the caller chooses.
pub struct Steps<'r, 'o> {
    running: &'r mut Running<'o>,
}

/// Does this with the lab locked and a run directory made.
///
/// # Errors
/// As [`super::run`].
pub fn run(
    resolved: &Resolved,
    options: &Options<'_>,
    progress: &mut dyn Progress,
    work: impl FnOnce(&mut Steps<'_, '_>) -> Result<(), LabError>,
) -> Result<FinishedRun, LabError> {
    within(resolved, options, progress, |running| work(&mut Steps { running }))
}

impl Steps<'_, '_> {
    /// One trial over this window, as a trial of `variant.name` in this block; repeated when it was disturbed.
    ///
    /// # Errors
    /// Those of a trial.
    pub fn trial(
        &mut self,
        variant: &Variant,
        block: u32,
        measure: Nanos,
    ) -> Result<Trial, LabError> {
        self.running.resolved.trials.measure = measure;
        for attempt in 0.. {
            let made = self.running.trial(variant, block);
            if let Err(LabError::NotAvailable { why }) = &made {
                let trial = self.running.next_trial.saturating_sub(1);
                self.running.tell(What::TrialEnded { trial, void: Some(why.clone()) })?;
            }
            let mut trial = made?;
            let counts =
                trial.void.is_none() || attempt == REPLACEMENTS || self.is_often_disturbed();
            if counts {
                trial.void = None;
            }
            self.running.tell(What::TrialEnded { trial: trial.trial, void: trial.void.clone() })?;
            self.running.manifest.trials.push(trial.clone());
            if counts {
                return Ok(trial);
            }
        }
        Err(LabError::internal("no trial counts"))
    }

    fn is_often_disturbed(&self) -> bool {
        let trials = &self.running.manifest.trials;
        trials.iter().filter(|trial| trial.void.is_some()).count() * OFTEN > trials.len()
    }

    /// The lab of a variant without load, for reading it and trying settings.
    ///
    /// # Errors
    /// Where it can't be made.
    pub fn lab(&self, variant: &Variant) -> Result<NetnsTestbed, LabError> {
        let what = "this scenario runs on loopback, which has no settings of its own";
        let no_lab = || cannot(what, "leave out topology.kind=local");
        let owner = self.running.owner.as_ref().ok_or_else(no_lab)?;
        NetnsTestbed::make(owner, &variant.lab, &variant.tune)
    }

    /// Says something to the user.
    pub fn say(&mut self, text: &str) {
        self.running.progress.found(text);
    }

    /// What the run was about: these variants' trials are summarised and compared.
    ///
    /// # Errors
    /// Where the run directory can't be written.
    pub fn about(&mut self, variants: Vec<Variant>, compare: Vec<Compare>) -> Result<(), LabError> {
        let running = &mut *self.running;
        (running.resolved.variants, running.resolved.compare) = (variants, compare);
        running.manifest.resolved = as_json("scenario", &running.resolved)?;
        summary::update(&running.resolved, &mut running.manifest);
        Ok(running.writer.manifest(&running.manifest)?)
    }

    /// The same; all trials but these become block 0, which no comparison counts.
    ///
    /// # Errors
    /// Where the run directory can't be written.
    pub fn about_within(
        &mut self,
        trials: RangeInclusive<u32>,
        variants: Vec<Variant>,
        compare: Vec<Compare>,
    ) -> Result<(), LabError> {
        let others = self.running.manifest.trials.iter_mut();
        for trial in others.filter(|trial| !trials.contains(&trial.trial)) {
            trial.block = 0;
        }
        self.about(variants, compare)
    }
}
