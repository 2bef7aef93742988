//! The state of a search: what is searched, where each candidate stands, and the trials so far.

use chacha20::ChaCha8Rng;
use rand::SeedableRng;
use rxpath_stats::paired::EffectEstimate;

use super::candidate::Candidate;
use super::guard::MetricGuard;
use super::keeping::Unmade;
use super::measure::{Broke, Measure, Phase, TrialReading};
use super::pairs::{Ask, Pairs, Shown};
use super::report::{PathStep, Why};
use super::tally::Tally;

/// A trial with less of the events of the start's worst trial counts as stopped. Other programs can take half of a
/// trial's events; a setting that stops traffic takes nearly all.
const LEAST: f64 = 0.1;
/// So many trials in which traffic stopped, or several settings together broke a guard, end the search.
const MOST_STOPPED: usize = 3;

/// What is searched, and how.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The candidates, at most [`super::array::MOST`] of them without those that are slow.
    pub candidates: &'a [Candidate],
    /// What must not become worse.
    pub guards: &'a [MetricGuard],
    /// -1 where less of the objective is better: results are ratios of the metric itself.
    pub sign: f64,
    /// The probability that any useless candidate is proven.
    pub error: f64,
    /// Also keep what is likely but not proven, if all of it together is better.
    pub bundle: bool,
    /// Seed of arrays and orders.
    pub seed: u64,
}

/// Where a candidate stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Open,
    Proven,
    Bundled,
    Out(Why),
}

pub(super) struct Searching<'a> {
    pub measure: &'a mut dyn Measure<Error = Unmade>,
    pub plan: &'a Plan<'a>,
    pub state: Vec<State>,
    pub objective: Tally,
    pub guards: Vec<Tally>,
    /// How much worse each guard's metric may become.
    pub margins: Vec<f64>,
    /// Each guard's metric at the start, where a trial told it.
    pub start_guards: Vec<Option<f64>>,
    pub dice: ChaCha8Rng,
    pub trials: usize,
    pub path: Vec<PathStep>,
    /// What the last confirmation asked and showed.
    pub confirmed: Option<(Ask, Pairs)>,
    pub contributed: Vec<(usize, EffectEstimate)>,
    /// Blocks of the arrays when they ended, and those that would have fit.
    pub blocks: (usize, usize),
    /// The fewest events of a trial of the start.
    pub flow: f64,
    pub reserve: usize,
    stopped: usize,
}

impl<'a> Searching<'a> {
    pub fn new(
        measure: &'a mut dyn Measure<Error = Unmade>,
        plan: &'a Plan<'a>,
        reserve: usize,
    ) -> Self {
        let count = plan.candidates.len();
        Self {
            measure,
            plan,
            state: vec![State::Open; count],
            objective: Tally::new(count),
            guards: vec![Tally::new(count); plan.guards.len()],
            margins: vec![0.0; plan.guards.len()],
            start_guards: vec![None; plan.guards.len()],
            dice: ChaCha8Rng::seed_from_u64(plan.seed),
            trials: 0,
            path: Vec::new(),
            confirmed: None,
            contributed: Vec::new(),
            blocks: (0, 0),
            flow: 0.0,
            reserve,
            stopped: 0,
        }
    }

    pub fn step(&mut self, phase: Phase, what: String) {
        self.measure.step(&what);
        self.path.push(PathStep { trials_count: self.trials, phase, what });
    }

    pub fn name(&self, candidate: usize) -> &str {
        &self.plan.candidates[candidate].name
    }

    /// How likely a candidate is worth a trial.
    pub fn weight(&self, candidate: usize) -> f64 {
        self.plan.candidates[candidate].prior.weight()
    }

    /// From now on a candidate is out, and the path says why.
    pub fn rule_out(&mut self, candidate: usize, why: Why, phase: Phase) {
        let text = format!("{} is out: {}", self.name(candidate), why.words());
        self.state[candidate] = State::Out(why);
        self.step(phase, text);
    }

    /// Open candidates: those that are tried alone and last, or those of the arrays.
    pub fn open(&self, is_slow: bool) -> Vec<usize> {
        let wanted = |at: &usize| {
            self.state[*at] == State::Open && self.plan.candidates[*at].risk.is_slow() == is_slow
        };
        (0..self.state.len()).filter(wanted).collect()
    }

    /// Whether the search ends: in too many trials traffic stopped, or several settings together broke a guard.
    pub fn has_stopped(&self) -> bool {
        self.stopped >= MOST_STOPPED
    }

    /// What is on for good.
    pub fn on(&self) -> Vec<usize> {
        let is_on = |at: &usize| matches!(self.state[*at], State::Proven | State::Bundled);
        (0..self.state.len()).filter(is_on).collect()
    }

    pub fn trial(
        &mut self,
        on: &[usize],
        phase: Phase,
        block: usize,
    ) -> Result<TrialReading, Unmade> {
        let reading = self.measure.trial(on, phase, block)?;
        self.trials += 1;
        let is_start = matches!(phase, Phase::Start | Phase::Alone);
        let counts = match reading.broke {
            Some(Broke::Stopped(_)) => true,
            // Of one alone it is what its trial is for: the candidate is out.
            Some(Broke::Limit(_)) => on.len() > 1,
            Some(Broke::Refused(_)) | None => !is_start && reading.flow < LEAST * self.flow,
        };
        self.stopped += usize::from(counts);
        Ok(reading)
    }

    /// Makes pairs until they decide; the order within a pair alternates.
    pub fn pairs(
        &mut self,
        without: &[usize],
        with: &[usize],
        ask: Ask,
    ) -> Result<(Shown, Pairs), Unmade> {
        let guards = self.plan.guards.len();
        let mut pairs = Pairs { guards: vec![Vec::new(); guards], ..Pairs::default() };
        let mut shown = Shown::NotBetter;
        // One candidate must make no guard worse; what the start breaks, all that is kept must mend.
        let of_one = matches!(ask.phase, Phase::Slow | Phase::Repair);
        let margin = |margin: &f64| if of_one { margin.max(0.0) } else { *margin };
        let margins: Vec<f64> = self.margins.iter().map(margin).collect();
        for number in 0..ask.most {
            let trials = if number % 2 == 0 { [without, with] } else { [with, without] };
            let first = self.trial(trials[0], ask.phase, number)?;
            let second = self.trial(trials[1], ask.phase, number)?;
            let (base, variant) = if number % 2 == 0 { (first, second) } else { (second, first) };
            if let Some(broke) = variant.broke {
                return Ok((Shown::Broke(broke), pairs));
            }
            pairs.objective.push(variant.objective - base.objective);
            for (at, all) in pairs.guards.iter_mut().enumerate() {
                if let (Some(base), Some(variant)) = (base.guard(at), variant.guard(at)) {
                    all.push(variant - base);
                }
            }
            let over;
            (shown, over) = pairs.judge(ask, &margins);
            if over {
                break;
            }
        }
        Ok((shown, pairs))
    }
}
