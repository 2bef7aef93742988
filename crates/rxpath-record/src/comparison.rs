//! The difference between two variants in one metric, and its wording in text, Markdown and page.

use rxpath_stats::bootstrap::ConfidenceInterval;
use rxpath_stats::difference::{VariantDifference, Word};
use rxpath_stats::{Looks, Scale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{self, Good};

mod published;
mod wording;

pub use published::Published;
use wording::rounded;
pub use wording::{step, word};

pub use rxpath_stats::difference::{Undecided as Reason, Word as Outcome};

/// The difference between two variants in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Metric name.
    pub metric: String,
    /// The variant that is the base.
    pub base: String,
    /// The other one.
    pub variant: String,
    /// The difference, and its verdict.
    #[serde(flatten)]
    pub effect: MeasuredEffect,
    /// Blocks in which both ran.
    pub pairs_count: u32,
    /// What the scenario expected: `up`, `down`, `same`.
    pub expected: Option<String>,
    /// What became of it; absent if nothing was expected, and in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expectation: Option<Expectation>,
    /// What others have published for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

rxpath_core::named! {
    /// What became of a scenario's expectation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Expectation {
        /// The metric went the way that was expected.
        Confirmed => "confirmed",
        /// It went another way.
        Contradicted => "contradicted",
        /// The comparison is inconclusive.
        Undecided => "undecided",
    }
    /// The word for it.
    pub fn word(self) -> &'static str
}

/// The difference between two sets of trials in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredEffect {
    /// `variant / base`; `null` for shares, and where a value is not above 0. Runs of older versions have the ratio of
    /// medians.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio, which holds after every block of the run at once; `null` without a ratio and under five blocks.
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest ratio; `null` when the base is 0.
    pub range: Option<[f64; 2]>,
    /// `variant - base`; runs of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<MetricDifference>,
    /// The basis of the outcome.
    #[serde(default)]
    pub judged_by: JudgedBy,
    /// The statistical verdict.
    pub outcome: Outcome,
    /// Why it is `inconclusive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inconclusive_because: Option<Reason>,
    /// Ratios within 1 +- this, or differences up to this, count as the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_within: Option<f64>,
    /// How the verdict controls its error, and what more blocks would show; runs of older versions have none: their
    /// intervals are bootstrap intervals of the end of the run only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
}

/// How a verdict controls its error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// How the interval is made: `t-and-trimmed-t` of paired blocks, `welch` of two runs.
    pub method: IntervalMethod,
    /// Most blocks of the run, at each of which the interval holds at once; `null` where only the end of the run is judged.
    pub looks_max: Option<u32>,
    /// Comparisons among which this one is judged, by Holm's steps.
    pub family_count: u32,
    /// Whether the whole interval lies beyond what counts as the same.
    pub clears_threshold: bool,
    /// The least difference that was shown, as a ratio; `null` when none was.
    pub at_least_ratio: Option<f64>,
    /// No difference is larger than this (90 % interval: each side 5 %), as a share of the base, or in the unit of a
    /// share.
    pub no_larger_than: Option<f64>,
    /// How much single trials scatter, as a share of their value.
    pub trial_noise_ratio: Option<f64>,
    /// Blocks after which a difference as large as `same_within` would be shown in four of five runs with this noise;
    /// `null` when more than 100.
    pub blocks_for_threshold: Option<u32>,
    /// Blocks after which equal variants would be shown to be the same.
    pub blocks_for_same: Option<u32>,
}

/// How an interval is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// The overlap of Student's t and of the trimmed t, over differences within blocks.
    TAndTrimmedT,
    /// Welch's t, of two lists that were not measured in the same blocks.
    Welch,
}

/// `variant - base`, in the unit of the metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricDifference {
    /// The difference.
    pub value: f64,
    /// Its 95 % interval; `null` under five blocks.
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest difference.
    pub range: [f64; 2],
}

/// What the outcome of a comparison rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JudgedBy {
    /// The ratio.
    #[default]
    Ratio,
    /// The difference: shares and counts of errors, of which 0 is an ordinary value.
    Difference,
}

impl Comparison {
    /// How sure, in words: the interval with the blocks that it rests on.
    pub fn sureness(&self) -> String {
        let blocks = if self.pairs_count == 1 { "block" } else { "blocks" };
        format!("{}, {} {blocks}", self.effect.sureness(&self.metric), self.pairs_count)
    }

    /// `3.68 times (95 % interval 3.60 to 3.77 times, 5 blocks): better`: how much, how sure, and the verdict.
    pub fn finding(&self) -> String {
        let (amount, verdict) = (self.effect.amount(&self.metric), self.effect.verdict("blocks"));
        format!("{amount} ({}): {verdict}", self.sureness())
    }

    /// What became of the scenario's expectation; `None` if nothing was expected.
    pub fn met(&self) -> Option<Expectation> {
        let came = match (self.effect.outcome, metric::good(&self.metric)) {
            (Word::Same, _) => "same",
            (Word::Better, Good::Up) | (Word::Worse, Good::Down) => "up",
            (Word::Better, Good::Down) | (Word::Worse, Good::Up) => "down",
            (Word::Inconclusive, _) => {
                return self.expected.as_ref().map(|_| Expectation::Undecided);
            }
        };
        let met = |expected: &String| {
            if expected == came { Expectation::Confirmed } else { Expectation::Contradicted }
        };
        self.expected.as_ref().map(met)
    }
}

impl MeasuredEffect {
    /// Nothing was found: no block has a value of both variants.
    pub fn not_measured() -> Self {
        Self {
            ratio: None,
            interval: None,
            range: None,
            difference: None,
            judged_by: JudgedBy::Ratio,
            outcome: Outcome::Inconclusive,
            inconclusive_because: Some(Reason::NotMeasured),
            same_within: None,
            control: None,
        }
    }

    /// What was found of the metric of this name.
    pub fn of(found: &VariantDifference, metric: &str) -> Self {
        let ends = |interval: ConfidenceInterval| [interval.low, interval.high];
        let outcome = found.word(metric::good(metric));
        let (change, change_interval) = found.change();
        let ratio = found.ratio();
        let (base, variant) = found.medians;
        Self {
            ratio: ratio.map(|(ratio, _)| ratio).or_else(|| (base > 0.0).then(|| variant / base)),
            interval: ratio.map(|(_, interval)| ends(interval)),
            range: found.ratio_range.map(|(low, high)| [low, high]),
            difference: Some(MetricDifference {
                value: change,
                interval: change_interval.map(ends),
                range: [found.range.0, found.range.1],
            }),
            judged_by: match found.scale {
                Scale::Ratio => JudgedBy::Ratio,
                Scale::Share { .. } => JudgedBy::Difference,
            },
            outcome,
            inconclusive_because: (outcome == Word::Inconclusive).then(|| found.undecided()),
            same_within: Some(found.same_within()),
            control: Some(Control::of(found)),
        }
    }

    /// The difference, where the outcome rests on it or there is no ratio.
    pub fn change(&self) -> Option<&MetricDifference> {
        let by_difference = self.judged_by == JudgedBy::Difference || self.ratio.is_none();
        self.difference.as_ref().filter(|_| by_difference)
    }
}

impl Control {
    fn of(found: &VariantDifference) -> Self {
        let blocks = |count: Option<usize>| count.map(|count| count as u32);
        Self {
            method: match found.looks {
                Looks::Plain => IntervalMethod::Welch,
                Looks::EveryBlock { .. } | Looks::Once { .. } => IntervalMethod::TAndTrimmedT,
            },
            looks_max: match found.looks {
                Looks::EveryBlock { most } => Some(most as u32),
                Looks::Once { .. } | Looks::Plain => None,
            },
            family_count: found.family as u32,
            clears_threshold: found.clears_threshold(),
            at_least_ratio: found.at_least(),
            no_larger_than: found.no_larger_than(),
            trial_noise_ratio: found.trial_noise(),
            blocks_for_threshold: blocks(found.blocks_for_threshold()),
            blocks_for_same: blocks(found.blocks_for_same()),
        }
    }
}

/// The A/A comparison: how far two trials of one variant were apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseFloor {
    /// Metric name.
    pub metric: String,
    /// The variant run twice.
    pub variant: String,
    /// Second over first; `null` when the first is 0.
    pub ratio: Option<f64>,
    /// Second minus first; runs of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// How much single trials scatter, as a share of their value, over all blocks of the first comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial_noise_ratio: Option<f64>,
}

impl NoiseFloor {
    /// How far apart, as a share of the first or in the metric's unit: `2.74 %`, `0.30 percentage points`.
    pub fn apart(&self) -> String {
        let by_difference = metric::scale(&self.metric) != Scale::Ratio || self.ratio.is_none();
        match (self.difference, self.ratio) {
            (Some(difference), _) if by_difference => {
                step(&self.metric, difference.abs())[1..].into()
            }
            (_, Some(ratio)) => format!("{:.2} %", (ratio - 1.0).abs() * 100.0),
            _ => "an unknown amount".into(),
        }
    }

    /// How far apart two trials of one variant were, and how much trials scatter, in words.
    pub fn text(&self) -> String {
        let scatter = self.trial_noise_ratio.map_or_else(String::new, |noise| {
            format!("; over all blocks, single trials scatter by {} %", rounded(noise * 100.0))
        });
        let (variant, apart, metric) = (&self.variant, self.apart(), &self.metric);
        format!("two trials of `{variant}` were {apart} apart in {metric}{scatter}")
    }
}

#[cfg(test)]
mod tests;
