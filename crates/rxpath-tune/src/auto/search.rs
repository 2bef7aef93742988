//! The search: each candidate alone for safety, then arrays until nothing more can be proven.

use rxpath_stats::quantile::median;
use rxpath_stats::student::{normal_cdf, two_sided};
use thiserror::Error;

use super::array::{self, Block};
use super::candidate::Candidate;
use super::keeping::{Keeping, Unmade};
use super::level::level;
use super::measure::{Measure, Phase};
use super::pairs::FEWEST_PAIRS;
use super::report::{AutoOutcome, AutoResult, Why};
use super::searching::{Plan, Searching, State};
use super::tally::Tally;
use super::values;

/// Trials of the start alone.
const START_TRIALS: usize = 3;
/// Share of the budget that arrays leave to the confirmation.
const RESERVE: f64 = 0.2;
/// With less of the events of the start's worst trial, alone, a candidate is harmful.
const LEAST_ALONE: f64 = 0.85;
/// A gain up to this is none: a candidate that probably has no more is dropped.
const NO_GAIN: f64 = 0.01;
/// A gain under this is not kept, however sure it is: where nothing is lost, trials agree so well that a difference
/// without any use would be proven.
pub(super) const LEAST_GAIN: f64 = 0.005;
/// Candidates go on while a gain, or a proof, is at least this likely.
const HOPE: f64 = 0.05;
/// Blocks before which the arrays do not end for lack of hope.
const HOPE_FROM: usize = 3;

/// The budget does not suffice for any proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the budget holds {have} trials, and {needed} are needed at least")]
pub struct TooShort {
    /// Trials that fit.
    pub have: usize,
    /// Trials that are needed.
    pub needed: usize,
}

/// Why there is no result.
#[derive(Debug)]
pub enum Failed<E> {
    /// The budget is too short.
    TooShort(TooShort),
    /// A trial could not be made; what was found until then, of which nothing is kept.
    Measure(E, Box<AutoResult>),
}

/// Trials without which these candidates cannot be judged: the start, each alone for half a trial, those that choose
/// values, two blocks, and five pairs, with the reserve on top.
pub fn fewest_trials(candidates: &[Candidate]) -> usize {
    let fast = candidates.iter().filter(|candidate| !candidate.risk.is_slow()).count();
    let (choice, chosen) = values::cost(candidates);
    let search = START_TRIALS + fast.div_ceil(2) + choice + 2 * array::runs(chosen);
    let confirm = 2 * FEWEST_PAIRS;
    (search + confirm).max((search as f64 / (1.0 - RESERVE)).ceil() as usize)
}

/// Searches.
///
/// # Errors
/// As [`Failed`] says; nothing is kept then.
pub fn search<M: Measure>(
    measure: &mut M,
    plan: &Plan<'_>,
) -> Result<AutoResult, Failed<M::Error>> {
    let mut keeping = Keeping { measure, error: None };
    let found = found(&mut keeping, plan).map_err(Failed::TooShort)?;
    match keeping.error {
        None => Ok(found),
        Some(error) => Err(Failed::Measure(error, Box::new(found))),
    }
}

/// What a search finds; what it knows by then where a trial could not be made.
fn found(
    measure: &mut dyn Measure<Error = Unmade>,
    plan: &Plan<'_>,
) -> Result<AutoResult, TooShort> {
    let (have, needed) = (measure.left(), fewest_trials(plan.candidates));
    if have < needed {
        return Err(TooShort { have, needed });
    }
    let mut searching = Searching::new(measure, plan, (have as f64 * RESERVE) as usize);
    Ok(match searching.all() {
        Ok(ended) => searching.into_result(ended),
        Err(Unmade) => searching.cut_short(),
    })
}

impl Searching<'_> {
    fn all(&mut self) -> Result<AutoOutcome, Unmade> {
        self.start()?;
        self.each_alone()?;
        self.choose_values()?;
        self.arrays()?;
        if self.has_stopped() { Ok(self.undo(AutoOutcome::Unsafe)) } else { self.finish() }
    }

    fn start(&mut self) -> Result<(), Unmade> {
        let trials = (0..START_TRIALS).map(|number| self.trial(&[], Phase::Start, number));
        let readings = trials.collect::<Result<Vec<_>, _>>()?;
        self.flow = readings.iter().map(|reading| reading.flow).fold(f64::INFINITY, f64::min);
        for (at, guard) in self.plan.guards.iter().enumerate() {
            let values: Vec<f64> =
                readings.iter().filter_map(|reading| reading.guard(at)).collect();
            self.start_guards[at] = median(&values);
            self.margins[at] = self.start_guards[at].map_or(0.0, |start| guard.margin(start));
            if self.margins[at] < 0.0 {
                let text =
                    format!("the start does not fulfil {}: what is kept must reach it", guard.text);
                self.step(Phase::Start, text);
            }
        }
        Ok(())
    }

    /// A candidate with which almost nothing gets through must not spoil the arrays.
    fn each_alone(&mut self) -> Result<(), Unmade> {
        // One of several values has trials of its own behind this, however slow it is.
        let is_next = |at: &usize| {
            let candidate = &self.plan.candidates[*at];
            !candidate.risk.is_slow() || candidate.axis.is_some()
        };
        for candidate in (0..self.state.len()).filter(is_next).collect::<Vec<_>>() {
            if self.has_stopped() {
                return Ok(());
            }
            if let Some(why) = self.alone(candidate)? {
                self.rule_out(candidate, why, Phase::Alone);
            }
        }
        Ok(())
    }

    /// Why a candidate is out after trials with it alone. Of too little that gets through a second trial must agree,
    /// because one may be disturbed; a broken limit was compared with what holds without it already.
    fn alone(&mut self, candidate: usize) -> Result<Option<Why>, Unmade> {
        for number in 0..2 {
            let reading = self.trial(&[candidate], Phase::Alone, number)?;
            if let Some(broke) = reading.broke {
                return Ok(Some(broke.into()));
            }
            if reading.flow >= LEAST_ALONE * self.flow {
                return Ok(None);
            }
        }
        Ok(Some(Why::Harmful))
    }

    /// Trials that the arrays may still make.
    fn left(&self) -> usize {
        self.measure.left().saturating_sub(self.reserve)
    }

    fn arrays(&mut self) -> Result<(), Unmade> {
        let mut blocks = 0;
        loop {
            let open = self.open(false);
            let runs = array::runs(open.len());
            if open.is_empty() || self.left() < runs || self.has_stopped() {
                return Ok(());
            }
            blocks += 1;
            self.one_block(&open, blocks)?;
            let most = blocks + self.left() / runs;
            self.blocks = (blocks, most);
            if self.objective.noise().is_none() || blocks < 2 {
                continue;
            }
            self.prove(&open, most);
            self.drop_hopeless(&open, most);
            if blocks >= HOPE_FROM && !self.has_hope(&open, most) {
                self.step(Phase::Array, "nothing more can be proven in this budget".into());
                return Ok(());
            }
        }
    }

    fn one_block(&mut self, open: &[usize], number: usize) -> Result<(), Unmade> {
        let block = array::block(open.len(), &mut self.dice);
        let always = self.on();
        let mut readings = Vec::new();
        for trial in &block.on {
            let chosen = open.iter().zip(trial).filter(|(_, on)| **on).map(|(at, _)| *at);
            let mut on: Vec<usize> = always.iter().copied().chain(chosen).collect();
            on.sort_unstable();
            readings.push(self.trial(&on, Phase::Array, number)?);
        }
        let values = readings.iter().map(|reading| reading.objective).collect();
        into_tally(&mut self.objective, open, &block, values);
        for (at, tally) in self.guards.iter_mut().enumerate() {
            // A block without one of its values is not balanced.
            if let Some(values) = readings.iter().map(|reading| reading.guard(at)).collect() {
                into_tally(tally, open, &block, values);
            }
        }
        Ok(())
    }

    /// The level of a candidate's test: its weight's share of the error among all that are not proven, dropped ones too.
    /// Values that were not chosen never were in an array.
    fn level(&self, candidate: usize, most: usize) -> f64 {
        let counts =
            |state: &State| !matches!(state, State::Proven | State::Out(Why::OtherValue(_)));
        let not_proven = (0..self.state.len()).filter(|at| counts(&self.state[*at]));
        let all: f64 = not_proven.map(|at| self.weight(at)).sum();
        // Twice: only a gain proves it, so the other side's half is not used.
        level(most, 2.0 * self.plan.error * self.weight(candidate) / all)
    }

    /// Holm's steps: each proof makes the others' levels less strict.
    fn prove(&mut self, open: &[usize], most: usize) {
        loop {
            let mut any = false;
            for candidate in open.iter().copied() {
                if self.state[candidate] != State::Open || !self.is_proven(candidate, most) {
                    continue;
                }
                self.state[candidate] = State::Proven;
                any = true;
                let gain = self.objective.effect(candidate).map_or(0.0, |effect| effect.value);
                let text = format!(
                    "{} is proven: {:.3} times the objective in the search",
                    self.name(candidate),
                    (self.plan.sign * gain).exp()
                );
                self.step(Phase::Array, text);
            }
            if !any {
                return;
            }
        }
    }

    fn is_proven(&self, candidate: usize, most: usize) -> bool {
        let Some(effect) = self.objective.effect(candidate) else { return false };
        let within = |(tally, margin): (&Tally, &f64)| {
            tally.effect(candidate).is_none_or(|guard| guard.value <= margin.max(0.0))
        };
        let guards = self.guards.iter().zip(&self.margins).all(within);
        effect.value > LEAST_GAIN && effect.p() <= self.level(candidate, most) && guards
    }

    fn drop_hopeless(&mut self, open: &[usize], most: usize) {
        for candidate in open.iter().copied() {
            let is_open = self.state[candidate] == State::Open;
            let effect = self.objective.effect(candidate).filter(|_| is_open);
            let Some(effect) = effect else { continue };
            let (mean, spread) =
                self.plan.candidates[candidate].prior.after(effect.value, effect.error);
            let harmed = self.guards.iter().zip(&self.margins).position(|(tally, margin)| {
                tally.effect(candidate).is_some_and(|guard| {
                    guard.value - guard.half(level(most, self.plan.error)) > margin.max(0.0)
                })
            });
            if let Some(at) = harmed {
                let guard = self.plan.guards[at].text.clone();
                let text = format!("{} is out: it breaks {guard}", self.name(candidate));
                self.state[candidate] = State::Out(Why::Harms(guard));
                self.step(Phase::Array, text);
            } else if normal_cdf((mean - NO_GAIN) / spread) < HOPE {
                self.state[candidate] = State::Out(Why::NoGainShown);
            }
        }
    }

    /// Whether any open candidate may still be proven by the last block.
    fn has_hope(&self, open: &[usize], most: usize) -> bool {
        let still = |at: &&usize| self.state[**at] == State::Open;
        open.iter().filter(still).any(|candidate| {
            let Some(effect) = self.objective.effect(*candidate) else { return true };
            let unit = effect.error * effect.error * effect.weight;
            let last = (unit / (effect.weight + self.left() as f64)).sqrt();
            let moves = (effect.error * effect.error - last * last).max(1e-12).sqrt();
            let limit = two_sided(self.level(*candidate, most), 1e6) * last;
            normal_cdf((effect.value - limit) / moves) > HOPE
        })
    }
}

fn into_tally(tally: &mut Tally, open: &[usize], block: &Block, mut values: Vec<f64>) {
    array::clamp(&mut values);
    let runs = values.len();
    let contrast = |on: &mut dyn Iterator<Item = bool>| {
        let signed = on.zip(&values).map(|(on, value)| if on { *value } else { -value });
        2.0 * signed.sum::<f64>() / runs as f64
    };
    for (at, candidate) in open.iter().enumerate() {
        tally.add(*candidate, runs, contrast(&mut block.on.iter().map(|trial| trial[at])));
    }
    for column in &block.free {
        tally.add_free(runs, contrast(&mut column.iter().copied()));
    }
}
