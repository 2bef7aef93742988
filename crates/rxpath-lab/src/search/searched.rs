//! What a search is about, on any traffic: what is tried, what is made better, and until when.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rxpath_tune::auto::{self, Candidate, MetricGuard, TrialReading};

use super::ask::{Objective, SearchOptions};

/// The probability that any useless candidate is proven.
const ERROR: f64 = 0.05;

/// What is searched.
#[derive(Clone, Copy, Debug)]
pub struct Searched<'a> {
    /// What is tried.
    pub candidates: &'a [Candidate],
    /// What is made better.
    pub objective: &'a Objective,
    /// What must not become worse.
    pub guards: &'a [MetricGuard],
    /// When the budget ends.
    pub deadline: Instant,
}

impl<'a> Searched<'a> {
    /// How it is searched.
    pub fn plan(&self, asked: &SearchOptions<'_>) -> auto::Plan<'a> {
        let Self { candidates, objective, guards, .. } = *self;
        let (sign, bundle, seed) = (objective.sign(), asked.bundle, asked.seed);
        auto::Plan { candidates, guards, sign, error: ERROR, bundle, seed }
    }

    /// The settings of these candidates.
    pub(super) fn sets(&self, on: &[usize]) -> Vec<String> {
        on.iter().flat_map(|at| self.candidates[*at].sets.iter().cloned()).collect()
    }

    /// The names of these candidates.
    pub(super) fn names(&self, on: &[usize]) -> Vec<String> {
        on.iter().map(|at| self.candidates[*at].name.clone()).collect()
    }

    /// What a trial with these metrics says; `flow` is the rate that got through. `None` without the
    /// objective.
    pub(super) fn reading(
        &self,
        metrics: &BTreeMap<String, f64>,
        flow: f64,
    ) -> Option<TrialReading> {
        let value = |metric: &str| metrics.get(metric).copied();
        let objective = self.objective.reading(value(&self.objective.metric)?);
        let guards = self.guards.iter().map(|guard| guard.reading(value(&guard.metric)?)).collect();
        Some(TrialReading { objective, guards, flow, broke: None })
    }

    /// Trials of this length that end before the deadline.
    pub(super) fn trials_left(&self, full: Duration) -> usize {
        (self.time_left().as_secs_f64() / full.as_secs_f64().max(1e-3)) as usize
    }

    /// A step of the search, and the seconds until the deadline.
    pub(super) fn step(&self, text: &str) -> String {
        format!("{text} (at most {} s to go)", self.time_left().as_secs())
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_whole_trials_and_never_less_than_none() {
        let (now, objective) = (Instant::now(), Objective::read("delivered_pps").unwrap());
        let until =
            |deadline| Searched { candidates: &[], objective: &objective, guards: &[], deadline };
        let later = until(now + Duration::from_secs(3599));
        assert_eq!(later.trials_left(Duration::from_secs(1000)), 3);
        assert_eq!(until(now).trials_left(Duration::ZERO), 0);
        assert_eq!(until(now).step("arrays"), "arrays (at most 0 s to go)");
    }
}
