//! Made-up hosts whose every configuration has a known value: how often a search finds what helps, and nothing else.
//!
//! A trial gives the logarithm of the objective with noise. Sixteen settings interact: on the first surface their gains
//! add up with some pairwise terms; on the second they widen one of five stages, of which the narrowest limits, so that
//! most settings hide each other.

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rxpath_tune::auto::{Broke, Candidate, Measure, Phase, Prior, Risk, TrialReading};

/// Settings of each surface.
pub const SETTINGS: usize = 16;
const STAGES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Additive,
    Bottleneck,
    /// Nothing does anything.
    Null,
}

/// A host: the gain of every configuration over none, by the bits of its settings.
pub struct Surface {
    gains: Vec<f64>,
    pub priors: Vec<Prior>,
}

fn normal(dice: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(dice)
}

fn exponential(dice: &mut ChaCha8Rng) -> f64 {
    Exp1.sample(dice)
}

impl Surface {
    pub fn new(kind: Kind, seed: u64) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        match kind {
            Kind::Bottleneck => Self::bottleneck(&mut dice),
            Kind::Additive | Kind::Null => Self::additive(kind == Kind::Additive, &mut dice),
        }
    }

    fn additive(acts: bool, dice: &mut ChaCha8Rng) -> Self {
        let mut gain = [0.0f64; SETTINGS];
        let mut pairs = [[0.0f64; SETTINGS]; SETTINGS];
        for at in 0..SETTINGS {
            if acts && dice.random_bool(0.35) {
                let size = (0.05 * exponential(dice)).min(0.3);
                gain[at] = if dice.random_bool(0.65) { size } else { -size };
            }
            for other in 0..at {
                if gain[at] != 0.0 && gain[other] != 0.0 && dice.random_bool(0.25) {
                    pairs[at][other] = 0.03 * normal(dice);
                }
            }
        }
        let mut gains = vec![0.0; 1 << SETTINGS];
        for set in 1..gains.len() {
            let top = set.ilog2() as usize;
            let rest = set & !(1 << top);
            let with: f64 =
                (0..top).filter(|at| rest >> at & 1 == 1).map(|at| pairs[top][at]).sum();
            gains[set] = gains[rest] + gain[top] + with;
        }
        // A model speaks of seven settings in ten, with an error of 4 %.
        let prior = |own: f64, dice: &mut ChaCha8Rng| {
            let error = 0.04 * normal(dice);
            if !dice.random_bool(0.7) {
                return Prior::NONE;
            }
            let share = 0.0036 / (0.0036 + 0.0016);
            Prior { gain: share * (own + error), spread: (0.0016f64 * share).sqrt() }
        };
        let priors = gain.iter().map(|own| prior(*own, dice)).collect();
        Self { gains, priors }
    }

    fn bottleneck(dice: &mut ChaCha8Rng) -> Self {
        let stage = |dice: &mut ChaCha8Rng| dice.random_range(0..STAGES);
        let settings: Vec<(usize, f64, usize, f64)> = (0..SETTINGS)
            .map(|_| {
                let (widens, costs) = (stage(dice), stage(dice));
                let gain = (0.12 * exponential(dice)).min(0.5);
                let gain = if dice.random_bool(0.6) { gain } else { 0.0 };
                let cost = if dice.random_bool(0.4) { 0.03 * dice.random::<f64>() } else { 0.0 };
                (widens, gain, costs, cost)
            })
            .collect();
        let mut capacity = vec![[0.0f64; STAGES]; 1 << SETTINGS];
        capacity[0] = std::array::from_fn(|_| 0.25 * normal(dice));
        for set in 1..capacity.len() {
            let top = set.ilog2() as usize;
            let (widens, gain, costs, cost) = settings[top];
            let mut own = capacity[set & !(1 << top)];
            own[widens] += gain;
            own[costs] -= cost;
            capacity[set] = own;
        }
        let soft =
            |own: &[f64; STAGES]| -own.iter().map(|c| (-6.0 * c).exp()).sum::<f64>().ln() / 6.0;
        let base = soft(&capacity[0]);
        let gains: Vec<f64> = capacity.iter().map(|own| soft(own) - base).collect();
        // The diagnosis names the limiting stage in 85 of 100 cases; the model predicts most settings of that stage.
        let least = |a: &usize, b: &usize| capacity[0][*a].total_cmp(&capacity[0][*b]);
        let limiting = (0..STAGES).min_by(least).unwrap();
        let named = if dice.random_bool(0.85) { limiting } else { stage(dice) };
        let prior = |(at, (widens, ..)): (usize, &(usize, f64, usize, f64))| {
            let predicted = gains[1 << at] * (0.5 * normal(dice)).exp();
            let speaks = dice.random_bool(0.8);
            match (*widens == named, speaks) {
                (true, true) => Prior { gain: 0.7 * predicted, spread: 0.06 },
                (true, false) => Prior::STAGE,
                (false, _) => Prior { gain: 0.0, spread: 0.02 },
            }
        };
        let priors = settings.iter().enumerate().map(prior).collect();
        Self { gains, priors }
    }

    pub fn gain(&self, on: &[usize]) -> f64 {
        self.gains[bits(on)]
    }

    pub fn best(&self) -> f64 {
        self.gains.iter().copied().fold(0.0, f64::max)
    }

    pub fn candidates(&self) -> Vec<Candidate> {
        self.priors.iter().enumerate().map(|(at, prior)| candidate(at, *prior)).collect()
    }
}

fn bits(on: &[usize]) -> usize {
    on.iter().map(|at| 1 << at).sum()
}

/// Its name is its number.
pub fn candidate(at: usize, prior: Prior) -> Candidate {
    let (name, because) = (at.to_string(), vec!["made up".into()]);
    let sets = vec![format!("{name} = 1")];
    Candidate { name, axis: None, sets, because, prior, risk: Risk::None, repairs: false }
}

/// The candidates with these names.
pub fn numbers<'a>(names: impl Iterator<Item = &'a String>) -> Vec<usize> {
    names.map(|name| name.parse().unwrap()).collect()
}

/// Trials of a host.
pub struct Trials<'a> {
    /// The logarithm of the objective, and of each guard, of a configuration.
    pub value: &'a dyn Fn(&[usize]) -> (f64, Vec<f64>),
    pub noise: f64,
    /// A tenth of the trials loses this on average.
    pub theft: f64,
    /// Why a trial of a configuration is ended early.
    pub broke: fn(&[usize]) -> Option<Broke>,
    pub budget: f64,
    pub used: f64,
    pub dice: ChaCha8Rng,
}

impl<'a> Trials<'a> {
    pub fn new(
        value: &'a dyn Fn(&[usize]) -> (f64, Vec<f64>),
        noise: f64,
        budget: usize,
        seed: u64,
    ) -> Self {
        let dice = ChaCha8Rng::seed_from_u64(seed ^ 0x005e_ed00);
        Self { value, noise, theft: 0.0, broke: |_| None, budget: budget as f64, used: 0.0, dice }
    }
}

impl Measure for Trials<'_> {
    type Error = std::convert::Infallible;

    fn trial(&mut self, on: &[usize], phase: Phase, _: usize) -> Result<TrialReading, Self::Error> {
        self.used += if phase == Phase::Alone { 0.5 } else { 1.0 };
        let (value, guards) = (self.value)(on);
        let mut objective = value + self.noise * normal(&mut self.dice);
        if self.theft > 0.0 && self.dice.random_bool(0.1) {
            objective -= (self.theft * exponential(&mut self.dice)).min(2.0);
        }
        let guards =
            guards.iter().map(|guard| Some(guard + self.noise * normal(&mut self.dice))).collect();
        Ok(TrialReading { objective, guards, flow: objective.exp(), broke: (self.broke)(on) })
    }

    fn left(&self) -> usize {
        (self.budget - self.used).max(0.0) as usize
    }
}
