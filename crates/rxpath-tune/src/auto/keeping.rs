//! The error of a trial, kept outside of the search.

use super::measure::{Measure, Phase, TrialReading};

/// A trial could not be made.
pub(super) struct Unmade;

/// Makes trials and keeps the error of one that could not be made: the search is compiled once for all kinds of trials.
pub(super) struct Keeping<'a, M: Measure> {
    pub measure: &'a mut M,
    pub error: Option<M::Error>,
}

impl<M: Measure> Measure for Keeping<'_, M> {
    type Error = Unmade;

    fn trial(&mut self, on: &[usize], phase: Phase, block: usize) -> Result<TrialReading, Unmade> {
        self.measure.trial(on, phase, block).map_err(|error| {
            self.error = Some(error);
            Unmade
        })
    }

    fn left(&self) -> usize {
        self.measure.left()
    }

    fn step(&mut self, text: &str) {
        self.measure.step(text);
    }
}
