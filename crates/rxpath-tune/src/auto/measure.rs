//! What a search needs of the world: trials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a trial is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The start alone: its noise and what gets through.
    Start,
    /// One candidate alone, shortly: does anything get through at all?
    Alone,
    /// One of several values of a setting: which is tried further?
    Value,
    /// A trial of an array.
    Array,
    /// A pair of the kept settings and one that disturbs.
    Slow,
    /// A pair of the start and one candidate that repairs a setting.
    Repair,
    /// A fresh pair of the start and what is proven.
    Confirm,
    /// A kept setting is left out.
    Contribution,
}

/// Why a trial was ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broke {
    /// A limit was broken while the settings were on, and held again once they were off: which one, in words.
    Limit(String),
    /// The same, and the traffic stopped: almost nothing came or got through.
    Stopped(String),
    /// The settings could not be made: why.
    Refused(String),
}

/// What one trial gave. Values are on the scale on which they are compared: logarithms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialReading {
    /// The objective; more is better.
    pub objective: f64,
    /// Each guard's metric in the order of the guards; more is worse. `None` where the trial does not have it.
    pub guards: Vec<Option<f64>>,
    /// What got through, in events per second: a candidate that stops traffic is out.
    pub flow: f64,
    /// It was ended early; the values are those until then.
    pub broke: Option<Broke>,
}

impl TrialReading {
    /// The metric of the guard of this number, if the trial has it.
    pub fn guard(&self, at: usize) -> Option<f64> {
        self.guards.get(at).copied().flatten()
    }
}

/// Makes trials.
pub trait Measure {
    /// Why no more trials can be made.
    type Error;

    /// One trial with exactly these candidates on; number of the block or pair within its phase.
    fn trial(
        &mut self,
        on: &[usize],
        phase: Phase,
        block: usize,
    ) -> Result<TrialReading, Self::Error>;

    /// Full trials that fit into what is left of the budget.
    fn left(&self) -> usize;

    /// Hears of each step of the search, in words.
    fn step(&mut self, _text: &str) {}
}
