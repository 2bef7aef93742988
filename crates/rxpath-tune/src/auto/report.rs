//! What a search found: what was kept and why, what was dropped and why, and the path to it.

use rxpath_stats::ConfidenceInterval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::candidate::{Prior, Risk};
use super::measure::{Broke, Phase};

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AutoOutcome {
    /// At least one candidate is kept: proven, confirmed, and within all guards.
    Kept,
    /// No candidate is proven.
    NothingProven,
    /// What looked proven is not better than the start on fresh pairs of trials.
    NotConfirmed,
    /// What is proven could not be shown to stay within a guard.
    GuardNotShown,
    /// In too many trials the traffic stopped, or several settings together broke a guard.
    Unsafe,
    /// It was interrupted, or a trial could not be made.
    CutShort,
}

/// An effect on a metric as a ratio to its value without it, with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// With over without; over 1 is more of the metric.
    pub ratio: f64,
    /// Its interval.
    pub interval: ConfidenceInterval,
}

impl Ratio {
    /// From an effect on the logarithmic scale; `sign` is -1 where the scale counts less of the metric as more.
    pub fn of(value: f64, interval: ConfidenceInterval, sign: f64) -> Self {
        let ends = [interval.low, interval.high].map(|end| (sign * end).exp());
        let interval = ConfidenceInterval { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
        Self { ratio: (sign * value).exp(), interval }
    }
}

/// A candidate that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// What it sets.
    pub sets: Vec<String>,
    /// Why it was a candidate.
    pub because: Vec<String>,
    /// What was expected of it.
    pub prior: Prior,
    /// What it risks.
    pub risk: Risk,
    /// Its effect in the search; too large on average, because it was chosen by it.
    pub search: Option<Ratio>,
    /// What is lost without it, on fresh trials; `None` where the budget did not suffice.
    pub contribution: Option<Ratio>,
    /// Kept only together with others: its own effect is not proven.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_bundle: bool,
}

/// Why a candidate is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// No gain was shown.
    NoGainShown,
    /// It makes a guard's metric worse than its limit.
    Harms(String),
    /// Almost nothing got through with it.
    Harmful,
    /// A limit was broken while it was on, and held again without it: which one.
    Broke(String),
    /// It could not be made: why.
    Refused(String),
    /// The others do as well without it.
    Redundant,
    /// It was proven, and is undone because the whole was not confirmed.
    NotConfirmed,
    /// The budget ended before it was tried.
    NotTried,
    /// Another value of the same setting looked better: which one.
    OtherValue(String),
    /// The search was cut short before this was decided.
    NotDecided,
}

impl Why {
    /// In words that follow the candidate's name.
    pub fn words(&self) -> String {
        match self {
            Self::NoGainShown => "no gain shown".into(),
            Self::Harms(guard) => format!("breaks {guard}"),
            Self::Harmful => "lets too little through".into(),
            Self::Broke(limit) => format!("with it {limit}, without it not"),
            Self::Refused(why) => why.clone(),
            Self::Redundant => "contributes nothing next to the others".into(),
            Self::NotConfirmed => "proven in the search, undone with the rest".into(),
            Self::NotTried => "not tried in this budget".into(),
            Self::NotDecided => "not decided when the search was cut short".into(),
            Self::OtherValue(other) => format!("{other} looked better in a few trials"),
        }
    }
}

impl From<Broke> for Why {
    fn from(broke: Broke) -> Self {
        match broke {
            Broke::Limit(what) | Broke::Stopped(what) => Self::Broke(what),
            Broke::Refused(why) => Self::Refused(why),
        }
    }
}

/// A candidate that is not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// Its name.
    pub name: String,
    /// What it would have set.
    pub sets: Vec<String>,
    /// Why not.
    pub why: Why,
    /// Its effect in the search.
    pub effect: Option<Ratio>,
    /// More trials that would probably prove an effect like this; `None` where there is none to prove.
    pub trials_for_proof: Option<u64>,
}

/// The gain of all that is kept together, on fresh pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// Kept over start.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// Pairs of trials.
    pub pairs_count: usize,
}

/// A guard over the confirming pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuardShown {
    /// As it was asked for.
    pub guard: String,
    /// Its metric.
    pub metric: String,
    /// Kept over start; of shares, with the step of their scale added.
    pub ratio: Option<Ratio>,
    /// Whether it was shown to hold.
    pub holds: bool,
    /// Whether it was shown to be broken.
    pub broken: bool,
}

/// One step of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathStep {
    /// Trials made until then.
    pub trials_count: usize,
    /// The phase.
    pub phase: Phase,
    /// What happened, in words.
    pub what: String,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AutoResult {
    /// How it ended.
    pub ended: AutoOutcome,
    /// The candidates that are kept.
    pub kept: Vec<Kept>,
    /// Their gain together.
    pub gain: Option<Gain>,
    /// The guards over the confirming pairs.
    pub guards: Vec<GuardShown>,
    /// The others.
    pub dropped: Vec<Dropped>,
    /// Trials that were made.
    pub trials_count: usize,
    /// How much single trials scatter, as a share of their value.
    pub trial_noise_ratio: Option<f64>,
    /// The smallest effect that this budget would probably have proven with this noise, as a share.
    pub smallest_effect_ratio: Option<f64>,
    /// The steps.
    pub path: Vec<PathStep>,
}

impl AutoResult {
    /// The same, of which nothing is kept: what was searched with is not as it was at the end.
    #[must_use]
    pub fn cut_short(mut self) -> Self {
        let dropped = self.kept.drain(..).map(|kept| Dropped {
            name: kept.name,
            sets: kept.sets,
            why: Why::NotDecided,
            effect: kept.search,
            trials_for_proof: None,
        });
        self.dropped.extend(dropped);
        Self { ended: AutoOutcome::CutShort, gain: None, ..self }
    }
}
