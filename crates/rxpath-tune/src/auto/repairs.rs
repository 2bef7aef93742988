//! Candidates that repair a setting and that the arrays did not prove: each alone against the start.
//!
//! An array shows the mean effect over the other candidates on and off. A setting that is wrong shows little there once
//! another candidate is on that makes up for it: RPS to the reader's CPU costs half of the rate, and nothing more where
//! interrupts are deferred. Who searches wants to know what is wrong at the start, so these few are compared with it.

use super::measure::{Measure, Phase};
use super::pairs::{Ask, Shown};
use super::report::Why;
use super::search::{Searching, State};

/// Candidates that are tried, at most, and pairs of each.
const MOST: usize = 3;
const MOST_PAIRS: usize = 12;
const FEWEST_PAIRS: usize = 5;
/// The error that all of them share, two-sided.
const ERROR: f64 = 0.02;
/// Trials that the confirmation may need after them.
const CONFIRMATION: usize = 40;

impl<M: Measure> Searching<'_, M> {
    /// Tries those whose effect may be a gain, the likeliest first.
    pub(super) fn repairs(&mut self) -> Result<(), M::Error> {
        let mut all: Vec<usize> = (0..self.state.len()).filter(|at| self.may_repair(*at)).collect();
        let weight = |at: &usize| self.plan.candidates[*at].prior.weight();
        all.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        all.truncate(MOST);
        let error = ERROR / all.len().max(1) as f64;
        for (tried, candidate) in all.iter().copied().enumerate() {
            let left = self.measure.left().saturating_sub(CONFIRMATION);
            let most = (left / 2 / (all.len() - tried)).min(MOST_PAIRS);
            if most < FEWEST_PAIRS {
                return Ok(());
            }
            let ask = Ask { phase: Phase::Repair, most, error };
            match self.pairs(&[], &[candidate], ask)?.0 {
                Shown::Better => {
                    self.state[candidate] = State::Proven;
                    let text = format!("{} alone is better than the start", self.name(candidate));
                    self.step(Phase::Repair, text);
                }
                Shown::Broke(broke) => self.state[candidate] = State::Out(broke.into()),
                Shown::NotBetter | Shown::Guard(_) => {}
            }
        }
        Ok(())
    }

    /// Whether it repairs something, and the arrays neither proved it nor showed it to be worse.
    fn may_repair(&self, at: usize) -> bool {
        let candidate = &self.plan.candidates[at];
        let is_open = matches!(self.state[at], State::Open | State::Out(Why::NoGainShown));
        let is_worse = self
            .objective
            .effect(at)
            .is_some_and(|effect| effect.value + effect.half(self.plan.error) < 0.0);
        candidate.repairs && !candidate.risk.is_slow() && is_open && !is_worse
    }
}
