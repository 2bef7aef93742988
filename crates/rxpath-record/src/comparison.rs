//! The difference between two variants in one metric, and its wording in text, Markdown and page.

use rxpath_core::units::si;
use rxpath_stats::bootstrap::{FEWEST, Interval};
use rxpath_stats::difference::{Difference, Undecided, Word};
use rxpath_stats::metric::{self, Good, Scale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    pub effect: Effect,
    /// Blocks in which both ran.
    pub pairs_count: u32,
    /// What the scenario expected: `up`, `down`, `same`.
    pub expected: Option<String>,
}

/// The difference between two sets of trials in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// Ratio of medians, `variant / base`; `null` when the base is 0.
    pub ratio: Option<f64>,
    /// 95 % bootstrap interval of the ratio; `null` under five pairs and when a base among the resamples is 0.
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest ratio; `null` when the base is 0.
    pub range: Option<[f64; 2]>,
    /// `variant - base`; runs of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Change>,
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
}

/// `variant - base`, in the unit of the metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Difference of medians.
    pub value: f64,
    /// Its 95 % bootstrap interval; `null` under five pairs.
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
    /// Whether it met the scenario's expectation; `None` if nothing was expected or decided.
    pub fn is_as_expected(&self) -> Option<bool> {
        let came = match (self.effect.outcome, metric::good(&self.metric)) {
            (Word::Same, _) => "same",
            (Word::Better, Good::Up) | (Word::Worse, Good::Down) => "up",
            (Word::Better, Good::Down) | (Word::Worse, Good::Up) => "down",
            (Word::Inconclusive | Word::NoRatio, _) => return None,
        };
        self.expected.as_deref().map(|expected| expected == came)
    }
}

impl Effect {
    /// What was found of the metric of this name; ratios within 1 +- `threshold` are the same.
    pub fn of(found: &Difference, metric: &str, threshold: f64) -> Self {
        let ends = |interval: Interval| [interval.low, interval.high];
        let outcome = found.word(metric::good(metric), threshold);
        let (judged_by, same_within) = match found.scale {
            Scale::Ratio => (JudgedBy::Ratio, threshold),
            Scale::Difference { same_within } => (JudgedBy::Difference, same_within),
        };
        Self {
            ratio: found.ratio,
            interval: found.interval.map(ends),
            range: found.range.map(|(low, high)| [low, high]),
            difference: Some(Change {
                value: found.change.value,
                interval: found.change.interval.map(ends),
                range: [found.change.range.0, found.change.range.1],
            }),
            judged_by,
            outcome,
            inconclusive_because: (outcome == Word::Inconclusive)
                .then(|| found.undecided(threshold)),
            same_within: Some(same_within),
        }
    }

    /// The difference, where the outcome rests on it or there is no ratio.
    pub fn change(&self) -> Option<&Change> {
        let by_difference = self.judged_by == JudgedBy::Difference || self.ratio.is_none();
        self.difference.as_ref().filter(|_| by_difference)
    }

    /// How much, in words: `1.072 times`, `+12.30 percentage points`, `no ratio: the base is 0; +13`.
    pub fn amount(&self, metric: &str) -> String {
        match (self.change(), self.ratio) {
            (Some(change), _) if self.judged_by == JudgedBy::Difference => {
                step(metric, change.value)
            }
            (Some(change), _) => {
                format!("no ratio: the base is 0; {}", step(metric, change.value))
            }
            (None, Some(ratio)) => format!("{ratio:.3} times"),
            (None, None) => "no ratio: the base is 0".into(),
        }
    }

    /// How sure, in words: the interval, or the range where there is none.
    pub fn sureness(&self, metric: &str) -> String {
        let (interval, range) = match self.change() {
            Some(change) => (change.interval, Some(change.range)),
            None => (self.interval, self.range),
        };
        let end = |value: f64| match self.change() {
            Some(_) => signed(metric, value),
            None => format!("{value:.3}"),
        };
        match (interval, range) {
            (Some([low, high]), _) => format!("95 % interval {} to {}", end(low), end(high)),
            (None, Some([low, high])) => {
                format!("range {} to {}, no interval", end(low), end(high))
            }
            (None, None) => "no interval".into(),
        }
    }

    /// The outcome, and the reason for an inconclusive one; `of` are the things that there may be too few of.
    pub fn verdict(&self, of: &str) -> String {
        match self.inconclusive_because {
            Some(reason) => format!("inconclusive: {}", self.reason(reason, of)),
            None => word(self.outcome).into(),
        }
    }

    fn reason(&self, reason: Reason, of: &str) -> String {
        let by_ratio = self.judged_by == JudgedBy::Ratio;
        match reason {
            Undecided::TooFew => format!("fewer than {FEWEST} {of} give no interval"),
            Undecided::HoldsNoChange if by_ratio => "the interval holds 1, no change".into(),
            Undecided::HoldsNoChange => "the interval holds 0, no change".into(),
            Undecided::ReachesThreshold => {
                let same = self.same_within.unwrap_or_default() * 100.0;
                let unit = if by_ratio { "%" } else { "percentage points" };
                format!(
                    "a part of the interval lies within ± {same} {unit}, which count as the same"
                )
            }
            Undecided::BaseOftenZero => {
                format!("the base is 0 in so many {of} that the ratio has no interval")
            }
        }
    }
}

/// The word of an outcome.
pub fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Word::Better => "better",
        Word::Worse => "worse",
        Word::Same => "the same",
        Word::Inconclusive => "inconclusive",
        Word::NoRatio => "no ratio",
    }
}

/// A difference with its sign, in the unit of the metric: `+12.30 percentage points`, `-1.2k datagrams/s`.
pub fn step(metric: &str, value: f64) -> String {
    let number = signed(metric, value);
    match metric::unit(metric) {
        _ if metric::is_share(metric) => format!("{number} percentage points"),
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

/// The number of [`step`].
fn signed(metric: &str, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    let size = value.abs();
    if metric::is_share(metric) {
        format!("{sign}{:.2}", size * 100.0)
    } else {
        format!("{sign}{}", si(size))
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

    /// Whether a comparison found no more than this, in words; `None` for other metrics and larger differences.
    pub fn covers(&self, comparison: &Comparison) -> Option<String> {
        let effect = &comparison.effect;
        if comparison.metric != self.metric {
            return None;
        }
        let inside = match (effect.change(), effect.ratio, self.ratio, self.difference) {
            (Some(change), _, _, Some(noise)) => change.value.abs() <= noise.abs(),
            (None, Some(ratio), Some(noise), _) if ratio > 0.0 && noise > 0.0 => {
                ratio.ln().abs() <= noise.ln().abs()
            }
            _ => false,
        };
        inside.then(|| format!("inside the A/A noise of {}", self.apart()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_stats::difference::difference;

    fn effect(metric: &str, pairs: &[(f64, f64)]) -> Effect {
        Effect::of(&difference(pairs, metric::scale(metric), 1).unwrap(), metric, 0.03)
    }

    #[test]
    fn a_share_is_told_in_percentage_points() {
        let found = effect("loss_ratio", &[(0.0, 0.25); 6]);
        assert_eq!(found.amount("loss_ratio"), "+25.00 percentage points");
        assert_eq!(found.sureness("loss_ratio"), "95 % interval +25.00 to +25.00");
        assert_eq!(found.verdict("blocks"), "worse");
    }

    #[test]
    fn a_base_of_zero_is_said() {
        let found = effect("service_time_p99_us", &[(0.0, 13.0); 6]);
        assert_eq!(found.outcome, Outcome::NoRatio);
        assert_eq!(found.amount("service_time_p99_us"), "no ratio: the base is 0; +13 us");
        let json = serde_json::to_value(&found).unwrap();
        assert!(json["ratio"].is_null() && json["outcome"] == "no-ratio", "{json}");
        assert_eq!(json["difference"]["interval"], serde_json::json!([13.0, 13.0]));
        assert_eq!(serde_json::from_value::<Effect>(json).unwrap(), found);
    }

    #[test]
    fn an_inconclusive_outcome_has_its_reason() {
        let told = |pairs: &[(f64, f64)]| effect("delivered_pps", pairs).verdict("blocks");
        assert_eq!(told(&[(1.0, 2.0); 3]), "inconclusive: fewer than 5 blocks give no interval");
        let noisy = [0.5, 2.0, 0.7, 1.6, 1.1].map(|ratio| (1.0, ratio));
        assert_eq!(told(&noisy), "inconclusive: the interval holds 1, no change");
        let near = [1.01, 1.02, 1.03, 1.05, 1.08].map(|ratio| (1.0, ratio));
        assert_eq!(
            told(&near),
            "inconclusive: a part of the interval lies within ± 3 %, which count as the same"
        );
        let some = [(0.0, 1.0), (0.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0), (1.0, 1.0)];
        assert!(told(&some).contains("the base is 0 in so many blocks"), "{}", told(&some));
    }

    #[test]
    fn a_comparison_of_an_older_run_is_read() {
        let old = r#"{"metric": "delivered_pps", "base": "a", "variant": "b", "ratio": 1.5, "interval": [1.4, 1.6],
            "range": [1.3, 1.7], "pairs_count": 6, "outcome": "better", "expected": null}"#;
        let found: Comparison = serde_json::from_str(old).unwrap();
        assert_eq!(found.effect.amount(&found.metric), "1.500 times");
        assert_eq!(found.effect.judged_by, JudgedBy::Ratio);
        let noise = NoiseFloor {
            metric: "delivered_pps".into(),
            variant: "a".into(),
            ratio: Some(1.6),
            difference: None,
        };
        assert_eq!(noise.covers(&found).unwrap(), "inside the A/A noise of 60.00 %");
    }
}
