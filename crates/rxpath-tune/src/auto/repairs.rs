//! Candidates that repair a setting and that the arrays did not prove: each alone against the start.
//!
//! An array shows the mean effect over the other candidates on and off. A setting that is wrong shows little there once
//! another candidate is on that makes up for it: RPS to the reader's CPU costs half of the rate, and nothing more where
//! interrupts are deferred. Who searches wants to know what is wrong at the start, so these few are compared with it.

use rxpath_core::SortFew;

use super::keeping::Unmade;
use super::measure::Phase;
use super::pairs::{Ask, FEWEST_PAIRS, Pairs, Shown};
use super::report::Why;
use super::search::LEAST_GAIN;
use super::searching::{Searching, State};
use super::tally::Effect;

/// Candidates that are tried, at most, and pairs of each.
const MOST: usize = 3;
const MOST_PAIRS: usize = 12;
/// The error that all of them share, two-sided.
const ERROR: f64 = 0.02;
/// Trials that the confirmation needs after them, where nothing else is proven.
const CONFIRMATION: usize = 40;

impl Searching<'_> {
    /// Tries those whose effect may be a gain, the likeliest first. Gives those that are proven.
    pub(super) fn repairs(&mut self) -> Result<Vec<usize>, Unmade> {
        let mut all: Vec<usize> = (0..self.state.len()).filter(|at| self.may_repair(*at)).collect();
        all.sort_few_by(|a, b| self.weight(*b).total_cmp(&self.weight(*a)));
        // What is proven already keeps most of the pairs that confirm it.
        let keep =
            if self.on().is_empty() { CONFIRMATION } else { CONFIRMATION.max(self.reserve / 2) };
        let pairs_left = self.measure.left().saturating_sub(keep) / 2;
        all.truncate(MOST.min(pairs_left / FEWEST_PAIRS));
        let error = ERROR / all.len().max(1) as f64;
        let mut proven = Vec::new();
        for (tried, candidate) in all.iter().copied().enumerate() {
            let left = self.measure.left().saturating_sub(keep) / 2;
            let most = (left / (all.len() - tried)).min(MOST_PAIRS);
            if most < FEWEST_PAIRS || self.has_stopped() {
                break;
            }
            let ask = Ask { phase: Phase::Repair, most, error };
            let (shown, pairs) = self.pairs(&[], &[candidate], ask)?;
            if self.repaired(candidate, shown, (&pairs, ask)) {
                proven.push(candidate);
            }
        }
        Ok(proven)
    }

    /// Where a candidate stands after its pairs; whether it is proven.
    fn repaired(&mut self, at: usize, shown: Shown, (pairs, ask): (&Pairs, Ask)) -> bool {
        let gain = pairs.gain(ask).map_or(0.0, |gain| gain.value);
        let why = match shown {
            Shown::Better if gain > LEAST_GAIN => {
                let ratio = (self.plan.sign * gain).exp();
                let text = format!("{} alone is {ratio:.3} times the start", self.name(at));
                self.state[at] = State::Proven;
                self.step(Phase::Repair, text);
                return true;
            }
            Shown::Better | Shown::NotBetter => return false,
            Shown::Guard(guard) => Why::Harms(self.plan.guards[guard].text.clone()),
            Shown::Broke(broke) => broke.into(),
        };
        self.rule_out(at, why, Phase::Repair);
        false
    }

    /// Whether it repairs something, and the arrays neither proved it nor showed it to be worse.
    fn may_repair(&self, at: usize) -> bool {
        let candidate = &self.plan.candidates[at];
        let is_open = matches!(self.state[at], State::Open | State::Out(Why::NoGainShown));
        let worse = |effect: Effect| effect.value + effect.half(self.plan.error) < 0.0;
        let is_worse = self.objective.effect(at).is_some_and(worse);
        candidate.repairs && !candidate.risk.is_slow() && is_open && !is_worse
    }
}
