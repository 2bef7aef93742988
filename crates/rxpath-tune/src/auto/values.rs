//! Several values of one setting: of them only one can be on, so that a few trials choose it before the arrays.
//!
//! These trials prove nothing: what they choose is proven in the arrays on trials of its own, as any other candidate.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rxpath_stats::quantile::median;

use super::candidate::Candidate;
use super::keeping::Unmade;
use super::measure::{Phase, TrialReading};
use super::report::Why;
use super::searching::{Searching, State};

/// Trials of each value.
const ROUNDS: usize = 3;

/// Candidates of which one excludes the other, those of one axis together.
fn rivals(candidates: &[Candidate], is_in: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let mut by_axis: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate().filter(|(at, _)| is_in(*at)) {
        if let Some(axis) = &candidate.axis {
            by_axis.entry(axis).or_default().push(at);
        }
    }
    by_axis.into_values().filter(|values| values.len() > 1).collect()
}

/// Trials that choose values, and how many of those that are not slow are left for the arrays.
pub(super) fn cost(candidates: &[Candidate]) -> (usize, usize) {
    let rivals = rivals(candidates, |_| true);
    let values: usize = rivals.iter().map(Vec::len).sum();
    let is_fast = |at: usize| !candidates[at].risk.is_slow();
    let fast = (0..candidates.len()).filter(|at| is_fast(*at)).count();
    let more =
        |values: &Vec<usize>| values.iter().filter(|at| is_fast(**at)).count().saturating_sub(1);
    (ROUNDS * values, fast - rivals.iter().map(more).sum::<usize>())
}

impl Searching<'_> {
    /// Leaves one value of each axis open: the one with the best objective among those that break no guard.
    pub(super) fn choose_values(&mut self) -> Result<(), Unmade> {
        let rivals = rivals(self.plan.candidates, |at| self.state[at] == State::Open);
        let mut order: Vec<usize> = rivals.iter().flatten().copied().collect();
        let mut readings: BTreeMap<usize, Vec<TrialReading>> = BTreeMap::new();
        for round in 0..ROUNDS {
            order.shuffle(&mut self.dice);
            for value in &order {
                if self.has_stopped() {
                    return Ok(());
                }
                let reading = self.trial(&[*value], Phase::Value, round)?;
                readings.entry(*value).or_default().push(reading);
            }
        }
        for values in rivals {
            self.choose(&values, &readings);
        }
        Ok(())
    }

    fn choose(&mut self, values: &[usize], readings: &BTreeMap<usize, Vec<TrialReading>>) {
        let middle = |value: usize, of: &dyn Fn(&TrialReading) -> Option<f64>| {
            let told: Vec<f64> =
                readings.get(&value).into_iter().flatten().filter_map(of).collect();
            median(&told)
        };
        let rank = |value: usize| {
            let breaks = (0..self.plan.guards.len()).any(|at| {
                let now = middle(value, &|reading| reading.guard(at));
                let limit = self.start_guards[at].map(|start| start + self.margins[at].max(0.0));
                now.zip(limit).is_some_and(|(now, limit)| now > limit)
            });
            let objective = middle(value, &|reading| Some(reading.objective));
            (!breaks, objective.unwrap_or(f64::NEG_INFINITY))
        };
        let ahead = |a: &&usize, b: &&usize| {
            let (a, b) = (rank(**a), rank(**b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        let Some(best) = values.iter().max_by(ahead).copied() else { return };
        for other in values.iter().filter(|value| **value != best) {
            self.state[*other] = State::Out(Why::OtherValue(self.name(best).to_owned()));
        }
        let text = format!("of {} values {} looks best", values.len(), self.name(best));
        self.step(Phase::Value, text);
    }
}
