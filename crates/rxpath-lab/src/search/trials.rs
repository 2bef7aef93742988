//! Trials of the lab as the search asks for them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rxpath_core::Nanos;
use rxpath_record::manifest::Trial;
use rxpath_tune::auto::{Measure, Phase, TrialReading};
use schemars::JsonSchema;
use serde::Serialize;

use super::made::{KEPT, Made, START};
use super::searched::Searched;
use crate::error::{LabError, cannot};
use crate::run::steps::Steps;
use crate::scenario::spec::Variant;

/// A candidate alone is measured over this share of a full window.
const SHORT: u64 = 2;
/// Trials that are made until one tells the objective, at most.
const ATTEMPTS: u32 = 3;
/// The shortest window of a trial.
const SHORTEST: u64 = 100_000_000;

/// Which candidates a trial of the run directory had on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrialOf {
    /// Its number in the run directory, from 0.
    pub trial: u32,
    /// What it was made for.
    phase: Phase,
    /// The block or pair within the phase, from 0.
    block: usize,
    /// The candidates that were on.
    on: Vec<String>,
}

impl TrialOf {
    /// What it was made for, and with what.
    pub fn made(&self) -> Made<'_> {
        Made { phase: self.phase, block: self.block, on: &self.on }
    }
}

/// Makes the variant with these keys set.
pub type With<'a> = dyn Fn(&[String]) -> Result<Variant, String> + 'a;

/// The lab as the search sees it.
pub struct Trials<'a, 'r, 'o> {
    /// The run that they are made in.
    pub steps: &'a mut Steps<'r, 'o>,
    pub with: &'a With<'a>,
    pub searched: Searched<'a>,
    /// Length of a full window.
    pub measure: Nanos,
    /// What a full trial takes.
    pub full: Duration,
    /// Those made so far.
    pub made: Vec<TrialOf>,
    /// Those made with candidates on.
    pub variants: BTreeMap<Vec<usize>, Variant>,
    /// Full trials so far, that of the start among them.
    pub full_count: u32,
}

impl Trials<'_, '_, '_> {
    /// The variant with these candidates on.
    ///
    /// # Errors
    /// Where they make none.
    pub fn variant(&mut self, on: &[usize]) -> Result<Variant, LabError> {
        if let Some(known) = self.variants.get(on) {
            return Ok(known.clone());
        }
        let made = (self.with)(&self.searched.sets(on)).map_err(LabError::internal)?;
        self.variants.insert(on.to_vec(), made.clone());
        Ok(made)
    }

    /// A trial that tells the objective: one without a rate is repeated, and is no zero.
    fn told(&mut self, variant: &Variant, block: u32, measure: Nanos) -> Result<Trial, LabError> {
        let metric = &self.searched.objective.metric;
        for _ in 0..ATTEMPTS {
            let trial = self.steps.trial(variant, block, measure)?;
            if trial.metrics.contains_key(metric) {
                return Ok(trial);
            }
        }
        let what = format!("{ATTEMPTS} trials in a row did not tell {metric}");
        Err(cannot(what, "longer trials: --set trials.measure=1s"))
    }

    /// A full trial takes the mean of those so far.
    fn took(&mut self, time: Duration) {
        let all = self.full * self.full_count + time;
        self.full_count += 1;
        self.full = all / self.full_count;
    }
}

impl Measure for Trials<'_, '_, '_> {
    type Error = LabError;

    fn trial(
        &mut self,
        on: &[usize],
        phase: Phase,
        block: usize,
    ) -> Result<TrialReading, LabError> {
        let mut variant = self.variant(on)?;
        // Pairs of the confirmation are blocks of the run from 1 on, so that its comparison is that of the report.
        let (name, number) = match phase {
            Phase::Confirm if on.is_empty() => (START.to_owned(), block as u32 + 1),
            Phase::Confirm => (KEPT.to_owned(), block as u32 + 1),
            _ => (format!("{phase:?}").to_lowercase(), 0),
        };
        variant.name = name;
        let measure = match phase {
            Phase::Alone => Nanos((self.measure.0 / SHORT).max(SHORTEST)),
            _ => self.measure,
        };
        let begun = Instant::now();
        let trial = match self.told(&variant, number, measure) {
            // A setting with which the programs can't even start lets nothing through.
            Err(
                LabError::Died { .. }
                | LabError::Silent { .. }
                | LabError::NotAvailable { .. }
                | LabError::Host(_),
            ) if phase == Phase::Alone => {
                return Ok(TrialReading::default());
            }
            other => other?,
        };
        if phase != Phase::Alone {
            self.took(begun.elapsed());
        }
        let names = self.searched.names(on);
        self.made.push(TrialOf { trial: trial.trial, phase, block, on: names });
        let flow = trial.metrics.get(variant.protocol().main_metric()).copied().unwrap_or(0.0);
        Ok(self.searched.reading(&trial.metrics, flow).unwrap_or_default())
    }

    fn left(&self) -> usize {
        self.searched.trials_left(self.full)
    }

    fn step(&mut self, text: &str) {
        self.steps.say(&self.searched.step(text));
    }
}
