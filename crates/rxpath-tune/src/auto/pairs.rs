//! Pairs of trials, without and with: an effect and its guards at every pair from the fifth on.

use rxpath_stats::Looks;
use rxpath_stats::paired::{EffectEstimate, Paired};
use rxpath_stats::student::{normal_cdf, two_sided};

use super::measure::{Broke, Phase};

/// Pairs without which nothing is confirmed.
pub(super) const FEWEST_PAIRS: usize = 5;
/// Pairs before which nothing is called hopeless.
const HOPE_FROM: usize = 6;
/// Pairs go on while a decision is at least this likely.
const HOPE: f64 = 0.05;

/// What a series of pairs is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub phase: Phase,
    /// Pairs at most.
    pub most: usize,
    /// Error over all looks, two-sided.
    pub error: f64,
}

/// What pairs show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The gain is shown, and every guard holds.
    Better,
    /// No gain is shown.
    NotBetter,
    /// A gain is shown, and this guard is not shown to hold.
    Guard(usize),
    /// A trial with it was ended early.
    Broke(Broke),
}

/// The differences of pairs.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    pub objective: Vec<f64>,
    /// By guard.
    pub guards: Vec<Vec<f64>>,
}

impl Pairs {
    /// The effect on the objective at the level of one analysis.
    pub fn gain(&self, ask: Ask) -> Option<EffectEstimate> {
        estimate(&self.objective, ask)
    }

    /// What the pairs show so far, and whether that is all they will show.
    pub fn judge(&self, ask: Ask, margins: &[f64]) -> (Shown, bool) {
        let Some(gain) = self.gain(ask) else { return (Shown::NotBetter, false) };
        let is_better = gain.interval.low > 0.0;
        let mut open = None;
        for (at, margin) in margins.iter().enumerate() {
            match estimate(&self.guards[at], ask) {
                Some(guard) if guard.interval.high <= *margin => {}
                Some(guard) if guard.interval.low > *margin => return (Shown::Guard(at), true),
                _ => open = Some(at),
            }
        }
        match (is_better, open) {
            (true, None) => (Shown::Better, true),
            (true, Some(at)) => (Shown::Guard(at), false),
            (false, _) => {
                (Shown::NotBetter, gain.interval.high < 0.0 || self.is_hopeless(gain, ask))
            }
        }
    }

    fn is_hopeless(&self, gain: EffectEstimate, ask: Ask) -> bool {
        let (now, last) = (self.objective.len() as f64, ask.most as f64);
        if self.objective.len() < HOPE_FROM || gain.scatter == 0.0 {
            return false;
        }
        let limit = two_sided(looks(ask).level(ask.error), last - 1.0) * gain.scatter / last.sqrt();
        let moves = gain.scatter * (1.0 / now - 1.0 / last).max(1e-12).sqrt();
        normal_cdf((gain.value - limit) / moves) < HOPE
    }
}

fn looks(ask: Ask) -> Looks {
    Looks::EveryBlock { most: ask.most }
}

/// The effect with its interval at one analysis; `None` under five values.
pub(super) fn estimate(values: &[f64], ask: Ask) -> Option<EffectEstimate> {
    let enough = values.len() >= looks(ask).fewest();
    Some(Paired::of(values).filter(|_| enough)?.at(looks(ask).level(ask.error)))
}
