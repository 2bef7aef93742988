//! The highest load that holds, as a lower and an upper bound: a state machine that says the next trial and takes what
//! came of it.
//!
//! ```text
//! climb     short trials, doubled until one fails twice       brackets the capacity within a factor of two
//! narrow    one full trial at the geometric middle            to 8 %
//! classify  all trials at a load, the lower load first        to the goal's width
//! confirm   fresh trials at the lower bound                   one width down if most of them fail
//! ```
//!
//! When the time is short and no load is known to hold, one well below what failed comes first.
//!
//! A search that looks at many loads and keeps the best one is biased upward: the loads that were lucky are kept. Fresh
//! trials, made after the choice, are not. **Source** of the classification: RFC 9971; of the fresh trials: the
//! simulations in `tests/load_search.rs`. It knows no clock: the caller says how long a trial took.

mod going;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load_class::{Class, LoadTrials, SearchGoal, TrialResult};

/// Single trials bracket the capacity to this ratio before loads are classified.
const BRACKET: f64 = 1.08;
/// A bound that fails moves outward by this share, and each time half as much further.
const OUTWARD: f64 = 0.04;
/// Lower bounds that may fail their fresh trials.
const FRESH_FAILURES: u32 = 6;
/// Void trials in a row that are repeated; those after them count as they are.
const VOIDS: u32 = 3;
/// Trials in which the sender falls short before a load counts as out of its reach.
const SHORTS: u32 = 2;

/// What to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// When a load holds.
    pub goal: SearchGoal,
    /// Fresh trials at the lower bound, at most; 0 = none.
    pub fresh: u32,
    /// Where the climb begins. **Unit** events/s.
    pub first: f64,
    /// No load below this one is tried. **Unit** events/s.
    pub lowest: f64,
    /// No load above this one is tried. **Unit** events/s.
    pub most: f64,
    /// The search ends before a trial that would pass this time. **Unit** s.
    pub time_s: Option<f64>,
}

/// Why a trial is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStep {
    /// To bracket the capacity.
    Climb,
    /// To narrow the bracket.
    Narrow,
    /// To classify a load.
    Classify,
    /// To confirm the lower bound.
    Confirm,
}

/// A trial to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Next {
    /// The load. **Unit** events/s.
    pub rate: f64,
    /// Its length. **Unit** s.
    pub seconds: f64,
    /// Why.
    pub step: SearchStep,
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialOutcome {
    /// The objectives were met.
    Good {
        /// Share of the load that was lost all the same.
        loss_ratio: f64,
    },
    /// They were missed.
    Bad {
        /// Share of the load that was lost.
        loss_ratio: f64,
    },
    /// The sender did not reach the load, and nothing else failed: it says nothing of the receiver.
    Short,
    /// Something else disturbed the trial; it may have been good.
    Void {
        /// Whether the objectives were met all the same; `None` if the sender fell short.
        is_good: Option<bool>,
        /// Share of the load that was lost.
        loss_ratio: f64,
    },
}

/// Why a search has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// Both bounds are found, and the fresh trials agree.
    Found,
    /// Even the lowest load fails.
    LowestFails,
    /// The sender reaches no load that fails.
    SenderLimited,
    /// The highest load that was allowed holds.
    MostHolds,
    /// The lower bounds failed their fresh trials too often.
    FreshFailed,
    /// The time was over.
    Time,
    /// Its caller ended it: after an interruption, an error, or trials that other load disturbed.
    #[default]
    Interrupted,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// Make this trial and give its outcome to [`LoadSearch::take`].
    Try(Next),
    /// The search has ended.
    Over(SearchEnd),
}

/// Fresh trials at a lower bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fresh {
    /// The lower bound.
    pub rate: f64,
    /// Trials that met the objectives.
    pub good: u32,
    /// Trials that missed them.
    pub bad: u32,
}

/// What is known so far, or in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadBounds {
    /// The highest load that holds.
    pub lower: Option<f64>,
    /// The lowest load that fails.
    pub upper: Option<f64>,
    /// What arrives of the lower bound's load. See [`LoadTrials::conditional_throughput`].
    pub conditional_throughput: Option<f64>,
    /// The fresh trials at the lower bound.
    pub fresh: Option<Fresh>,
    /// Both bounds are there, as close as the goal asks, and confirmed.
    pub is_regular: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Climb,
    Narrow,
    Classify { at: Option<f64> },
    Confirm(Fresh),
}

/// The search. [`LoadSearch::next`] and [`LoadSearch::take`] alternate.
#[derive(Clone, Debug)]
pub struct LoadSearch {
    plan: SearchPlan,
    loads: Vec<LoadTrials>,
    phase: Phase,
    /// The bracket of single trials: highest that was good, lowest that was not.
    good: Option<f64>,
    over: Option<f64>,
    /// Good and bad trials of the climb at its present load.
    climbed: [u32; 2],
    /// The lowest load that the sender did not reach.
    ceiling: Option<f64>,
    outward: f64,
    voids_in_row: u32,
    shorts_in_row: u32,
    fresh_failures: u32,
    /// The lowest load that failed its fresh trials.
    fresh_upper: Option<f64>,
    now: Option<Next>,
    end: Option<SearchEnd>,
    /// Trials made, void ones too; how many were repeated; their length and the time that they took.
    trials: u32,
    voids: u32,
    planned_s: f64,
    elapsed_s: f64,
}

impl LoadSearch {
    /// A search that has not begun.
    pub fn new(plan: SearchPlan) -> Self {
        Self {
            plan,
            loads: Vec::new(),
            phase: Phase::Climb,
            good: None,
            over: None,
            climbed: [0; 2],
            ceiling: None,
            outward: plan.goal.width_ratio.max(OUTWARD),
            voids_in_row: 0,
            shorts_in_row: 0,
            fresh_failures: 0,
            fresh_upper: None,
            now: None,
            end: None,
            trials: 0,
            voids: 0,
            planned_s: 0.0,
            elapsed_s: 0.0,
        }
    }

    /// The next trial, or the end.
    #[expect(
        clippy::should_implement_trait,
        reason = "a search that waits for outcomes iterates nothing"
    )]
    pub fn next(&mut self) -> Turn {
        loop {
            if let Some(end) = self.end {
                return Turn::Over(end);
            }
            let Some(next) = self.due() else { continue };
            let is_beyond = |limit: f64| self.elapsed_s + self.cost_s(next.seconds) > limit;
            if self.plan.time_s.is_some_and(is_beyond) {
                self.end = Some(SearchEnd::Time);
                continue;
            }
            self.now = Some(next);
            return Turn::Try(next);
        }
    }

    /// Takes what came of the trial that [`LoadSearch::next`] asked for, and the time that it took with everything
    /// around it.
    pub fn take(&mut self, outcome: TrialOutcome, took_s: f64) {
        let Some(now) = self.now.take() else { return };
        self.trials += 1;
        self.planned_s += now.seconds;
        self.elapsed_s += took_s;
        // While everything is disturbed nothing is gained by repeating: trials count until one is not.
        match outcome {
            TrialOutcome::Void { .. } if self.voids_in_row < VOIDS => {
                self.voids_in_row += 1;
                self.voids += 1;
                return;
            }
            TrialOutcome::Void { .. } => {}
            _ => self.voids_in_row = 0,
        }
        let (is_good, loss_ratio) = match outcome {
            TrialOutcome::Short | TrialOutcome::Void { is_good: None, .. } => {
                return self.fell_short(now);
            }
            TrialOutcome::Void { is_good: Some(is_good), loss_ratio } => (is_good, loss_ratio),
            TrialOutcome::Good { loss_ratio } => (true, loss_ratio),
            TrialOutcome::Bad { loss_ratio } => (false, loss_ratio),
        };
        self.shorts_in_row = 0;
        let seen = TrialResult { seconds: now.seconds, is_good, loss_ratio };
        self.load(now.rate).trials.push(seen);
        match self.phase {
            Phase::Climb => self.climbed(now.rate, is_good),
            Phase::Narrow => self.bracket(now.rate, is_good),
            Phase::Classify { .. } => {}
            Phase::Confirm(fresh) => self.confirmed(fresh, is_good),
        }
    }

    /// Full trials become longer, where the receiver or the objective needs that. Only before the first full trial.
    pub fn lengthen(&mut self, final_s: f64) -> bool {
        let short_s = self.plan.goal.short_s();
        let mut all = self.loads.iter().flat_map(|load| &load.trials);
        if final_s <= self.plan.goal.final_s || all.any(|seen| seen.seconds > short_s) {
            return false;
        }
        let goal = &mut self.plan.goal;
        goal.sum_s *= final_s / goal.final_s;
        goal.final_s = final_s;
        true
    }

    /// The highest load that was good in the climb, right after the climb: the time to call [`LoadSearch::lengthen`].
    pub fn climbed_to(&self) -> Option<f64> {
        let is_over = |good: f64| self.over.is_some() || good >= self.plan.most;
        self.good.filter(|good| self.phase == Phase::Climb && is_over(*good))
    }

    /// The goal, lengthened or not.
    pub fn goal(&self) -> SearchGoal {
        self.plan.goal
    }

    /// Every load that was tried, from the lowest.
    pub fn loads(&self) -> Vec<&LoadTrials> {
        let mut all: Vec<&LoadTrials> = self.loads.iter().collect();
        all.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        all
    }

    /// Trials so far, void ones too.
    pub fn trials(&self) -> u32 {
        self.trials
    }

    /// Trials that were repeated because something else disturbed them.
    pub fn voids(&self) -> u32 {
        self.voids
    }

    /// Time of all trials with everything around them. **Unit** s.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    /// What is known.
    pub fn bounds(&self) -> LoadBounds {
        let fresh = match self.phase {
            Phase::Confirm(fresh) if self.end != Some(SearchEnd::FreshFailed) => Some(fresh),
            _ => None,
        };
        let lower = fresh.map(|fresh| fresh.rate).or_else(|| self.lower());
        let upper = self.upper();
        let of = |rate: f64| self.loads.iter().find(|load| is_same(load.rate, rate));
        let conditional_throughput = lower
            .and_then(of)
            .map(|load| load.conditional_throughput(&self.plan.goal))
            .filter(|rate| *rate > 0.0);
        let is_regular = self.end == Some(SearchEnd::Found) && upper.is_some();
        LoadBounds { lower, upper, conditional_throughput, fresh, is_regular }
    }

    fn load(&mut self, rate: f64) -> &mut LoadTrials {
        let at = self.loads.iter().position(|load| is_same(load.rate, rate)).unwrap_or_else(|| {
            self.loads.push(LoadTrials { rate, trials: Vec::new() });
            self.loads.len() - 1
        });
        &mut self.loads[at]
    }

    fn class(&self, rate: f64) -> Class {
        let found = self.loads.iter().find(|load| is_same(load.rate, rate));
        found.map_or(Class::Undecided, |load| load.class(&self.plan.goal))
    }

    /// The lowest load that fails.
    fn upper(&self) -> Option<f64> {
        let failing =
            self.loads.iter().filter(|load| load.class(&self.plan.goal) == Class::UpperBound);
        failing.map(|load| load.rate).chain(self.fresh_upper).reduce(f64::min)
    }

    /// The highest load that holds, below any that fails.
    fn lower(&self) -> Option<f64> {
        let below = self.upper().unwrap_or(f64::INFINITY);
        let holding =
            self.loads.iter().filter(|load| load.rate < below && !is_same(load.rate, below));
        let holding = holding.filter(|load| load.class(&self.plan.goal) == Class::LowerBound);
        holding.map(|load| load.rate).reduce(f64::max)
    }
}

/// Loads closer than this are one load.
fn is_same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-6
}

#[cfg(test)]
mod tests;
