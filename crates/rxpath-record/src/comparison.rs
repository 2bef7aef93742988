//! The difference between two variants in one metric, and its wording in text, Markdown and page.

use rxpath_core::units::si;
use rxpath_stats::bootstrap::Interval;
use rxpath_stats::difference::{Difference, Undecided, Word};
use rxpath_stats::looks::{FIRST, MOST};
use rxpath_stats::{Looks, Scale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{self, Good};

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
    /// `variant / base`; `null` for shares, and where a value is not above 0. Runs of older versions have the ratio of
    /// medians.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio, which holds at every look of the run; `null` without a ratio and under five blocks.
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
    /// How the verdict controls its error, and what more blocks would show; runs of older versions have none: their
    /// intervals are bootstrap intervals of one look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
}

/// How a verdict controls its error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// How the interval is made: `t-and-trimmed-t` of paired blocks, `welch` of two runs.
    pub method: Method,
    /// Most blocks of the run, at each of which the interval holds at once; `null` for one look.
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
pub enum Method {
    /// The overlap of Student's t and of the trimmed t, over differences within blocks.
    TAndTrimmedT,
    /// Welch's t, of two lists that were not measured in the same blocks.
    Welch,
}

/// `variant - base`, in the unit of the metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
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

    /// Whether it met the scenario's expectation; `None` if nothing was expected or decided.
    pub fn is_as_expected(&self) -> Option<bool> {
        let came = match (self.effect.outcome, metric::good(&self.metric)) {
            (Word::Same, _) => "same",
            (Word::Better, Good::Up) | (Word::Worse, Good::Down) => "up",
            (Word::Better, Good::Down) | (Word::Worse, Good::Up) => "down",
            (Word::Inconclusive, _) => return None,
        };
        self.expected.as_deref().map(|expected| expected == came)
    }
}

impl Effect {
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
    pub fn of(found: &Difference, metric: &str) -> Self {
        let ends = |interval: Interval| [interval.low, interval.high];
        let outcome = found.word(metric::good(metric));
        let (change, change_interval) = found.change();
        let ratio = found.ratio();
        let (base, variant) = found.medians;
        Self {
            ratio: ratio.map(|(ratio, _)| ratio).or_else(|| (base > 0.0).then(|| variant / base)),
            interval: ratio.map(|(_, interval)| ends(interval)),
            range: found.ratio_range.map(|(low, high)| [low, high]),
            difference: Some(Change {
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
    pub fn change(&self) -> Option<&Change> {
        let by_difference = self.judged_by == JudgedBy::Difference || self.ratio.is_none();
        self.difference.as_ref().filter(|_| by_difference)
    }

    /// How much, in words: `+7.2 %`, `3.62 times`, `+12.30 percentage points`, `no ratio: the base is 0; +13`.
    pub fn amount(&self, metric: &str) -> String {
        match (self.change(), self.ratio) {
            (Some(change), _) if self.judged_by == JudgedBy::Difference => {
                step(metric, change.value)
            }
            (Some(change), _) => {
                format!("no ratio: the base is 0; {}", step(metric, change.value))
            }
            (None, Some(ratio)) => format!("{} {}", end(ratio, ratio), unit(ratio)),
            (None, None) if self.inconclusive_because == Some(Reason::NotMeasured) => {
                "not measured".into()
            }
            (None, None) => "no ratio: the base is 0".into(),
        }
    }

    /// How sure, in words: the interval, or the range where there is none.
    pub fn sureness(&self, metric: &str) -> String {
        let by_change = self.change();
        let (interval, range) = match by_change {
            Some(change) => (change.interval, Some(change.range)),
            None => (self.interval, self.range),
        };
        let ends = |[low, high]: [f64; 2]| match (by_change, self.ratio) {
            (None, Some(ratio)) => {
                format!("{} to {} {}", end(low, ratio), end(high, ratio), unit(ratio))
            }
            _ => format!("{} to {}", signed(metric, low), signed(metric, high)),
        };
        match (interval, range) {
            (Some(interval), _) => format!("95 % interval {}", ends(interval)),
            (None, Some(range)) => format!("range {}, no interval", ends(range)),
            (None, None) => "no interval".into(),
        }
    }

    /// The outcome, how large the difference at least is, and the reason for an inconclusive one; `of` are the things of
    /// which there may be too few.
    pub fn verdict(&self, of: &str) -> String {
        if let Some(reason) = self.inconclusive_because {
            return format!("inconclusive: {}", self.reason(reason, of));
        }
        let word = word(self.outcome);
        let (Some(control), Some(same)) = (&self.control, self.same_within) else {
            return word.into();
        };
        match self.outcome {
            Word::Same => format!("{word} within {}", self.size(same)),
            Word::Better | Word::Worse if !control.clears_threshold => {
                format!("{word}, perhaps by less than {}", self.size(same))
            }
            _ => word.into(),
        }
    }

    /// A size of a difference, in words: `3 %`, `0.50 percentage points`.
    fn size(&self, size: f64) -> String {
        match self.judged_by {
            JudgedBy::Ratio => format!("{} %", rounded(size * 100.0)),
            JudgedBy::Difference => format!("{} percentage points", rounded(size * 100.0)),
        }
    }

    fn reason(&self, reason: Reason, of: &str) -> String {
        match reason {
            Undecided::TooFew => {
                let fewest = match self.control.as_ref().map(|control| control.method) {
                    Some(Method::Welch) => rxpath_stats::welch::FEWEST,
                    _ => FIRST,
                };
                format!("fewer than {fewest} {of} give no interval")
            }
            Undecided::NotMeasured => "no block has a value of both variants".into(),
            Undecided::NotPositive => "a value is not above 0, so there is no ratio".into(),
            Undecided::VoidsDiffer => "disturbed trials are left out, more of one variant than of \
                                       the other, and with them the verdict is another"
                .into(),
            Undecided::HoldsNoChange => {
                let mut text = match (self.judged_by, &self.control) {
                    (JudgedBy::Ratio, None) => return "the interval holds 1, no change".into(),
                    (JudgedBy::Difference, None) => {
                        return "the interval holds 0, no change".into();
                    }
                    (_, Some(control)) => match control.no_larger_than {
                        Some(size) => format!("no difference larger than {}", self.size(size)),
                        None => "no change is not ruled out".into(),
                    },
                };
                text += &self.control.as_ref().map_or_else(String::new, |c| self.plan(c));
                text
            }
        }
    }

    /// What more blocks would show, in words that go on a sentence; empty where nothing is known.
    fn plan(&self, control: &Control) -> String {
        let (Some(noise), Some(same)) = (control.trial_noise_ratio, self.same_within) else {
            return String::new();
        };
        let noise = format!("trials scatter by {} %", rounded(noise * 100.0));
        let same = self.size(same);
        match control.blocks_for_threshold {
            Some(blocks) => {
                format!("; {noise}: about {blocks} blocks would show {same}, or longer trials")
            }
            None => {
                format!("; {noise}: {same} would need more than {MOST} blocks, or longer trials")
            }
        }
    }
}

impl Control {
    fn of(found: &Difference) -> Self {
        let blocks = |count: Option<usize>| count.map(|count| count as u32);
        Self {
            method: match found.looks {
                Looks::Plain => Method::Welch,
                Looks::EveryBlock { .. } | Looks::Once { .. } => Method::TAndTrimmedT,
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

/// One digit after the point under 10, none above, no trailing zero.
fn rounded(value: f64) -> String {
    let text = if value < 1.0 {
        format!("{value:.2}")
    } else if value < 10.0 {
        format!("{value:.1}")
    } else {
        return format!("{value:.0}");
    };
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Ratios beyond a factor of this are given as a factor, nearer ones as a change in per cent.
const FACTOR: f64 = 2.0;

/// The unit of a ratio and of its interval's ends.
fn unit(ratio: f64) -> &'static str {
    if is_factor(ratio) { "times" } else { "%" }
}

fn is_factor(ratio: f64) -> bool {
    !(1.0 / FACTOR..FACTOR).contains(&ratio)
}

/// A ratio, or an end of its interval, in the [`unit`] of `ratio`.
fn end(value: f64, ratio: f64) -> String {
    if is_factor(ratio) {
        return if value < 1.0 { format!("{value:.3}") } else { format!("{value:.2}") };
    }
    format!("{:+.1}", (value - 1.0) * 100.0)
}

/// The word of an outcome.
pub fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Word::Better => "better",
        Word::Worse => "worse",
        Word::Same => "the same",
        Word::Inconclusive => "inconclusive",
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
mod tests {
    use super::*;
    use rxpath_stats::difference::difference;

    fn effect(metric: &str, pairs: &[(f64, f64)]) -> Effect {
        let looks = Looks::of(5, 20);
        Effect::of(&difference(pairs, metric::scale(metric), 0.03, looks).unwrap(), metric)
    }

    #[test]
    fn a_share_is_told_in_percentage_points() {
        let found = effect("loss_ratio", &[(0.0, 0.25); 6]);
        assert_eq!(found.amount("loss_ratio"), "+25.00 percentage points");
        assert_eq!(found.sureness("loss_ratio"), "95 % interval +25.00 to +25.00");
        assert_eq!(found.verdict("blocks"), "worse");
        let none = effect("loss_ratio", &[(0.0, 0.0); 6]);
        assert_eq!(none.verdict("blocks"), "the same within 0.1 percentage points");
    }

    #[test]
    fn a_small_ratio_is_a_change_and_a_large_one_a_factor() {
        let more = effect(
            "delivered_pps",
            &[(1.0, 1.2), (1.0, 1.21), (1.0, 1.19), (1.0, 1.2), (1.0, 1.2)],
        );
        assert_eq!(more.amount("delivered_pps"), "+20.0 %");
        assert_eq!(more.sureness("delivered_pps"), "95 % interval +18.2 to +21.8 %");
        let most = effect("delivered_pps", &[(1.0, 3.6); 5]);
        assert_eq!(most.amount("delivered_pps"), "3.60 times");
        assert_eq!(most.sureness("delivered_pps"), "95 % interval 3.60 to 3.60 times");
        let least = effect("delivered_pps", &[(1.0, 0.1); 5]);
        assert_eq!(least.amount("delivered_pps"), "0.100 times");
    }

    #[test]
    fn a_base_of_zero_is_said() {
        let found = effect("service_time_p99_us", &[(0.0, 13.0); 6]);
        assert_eq!(found.outcome, Outcome::Inconclusive);
        assert_eq!(found.amount("service_time_p99_us"), "no ratio: the base is 0; +13 us");
        assert_eq!(
            found.verdict("blocks"),
            "inconclusive: a value is not above 0, so there is no ratio"
        );
        let json = serde_json::to_value(&found).unwrap();
        assert!(json["ratio"].is_null() && json["outcome"] == "inconclusive", "{json}");
        assert_eq!(serde_json::from_value::<Effect>(json).unwrap(), found);
    }

    #[test]
    fn an_inconclusive_outcome_has_its_reason_and_says_what_would_help() {
        let told = |pairs: &[(f64, f64)]| effect("delivered_pps", pairs).verdict("blocks");
        assert_eq!(told(&[(1.0, 2.0); 3]), "inconclusive: fewer than 5 blocks give no interval");
        let noisy = [0.95, 1.06, 0.99, 1.03, 0.98].map(|ratio| (1.0, ratio));
        let noisy = told(&noisy);
        assert!(noisy.starts_with("inconclusive: no difference larger than "), "{noisy}");
        assert!(noisy.contains("; trials scatter by ") && noisy.contains(" blocks"), "{noisy}");
        assert!(
            noisy.ends_with("3 %, or longer trials") || noisy.ends_with("blocks, or longer trials"),
            "{noisy}"
        );
    }

    #[test]
    fn a_small_difference_that_is_shown_is_called_small() {
        let near = [1.02, 1.032, 1.024, 1.041, 1.028, 1.035].map(|ratio| (1.0, ratio));
        let near = effect("delivered_pps", &near);
        assert_eq!(near.verdict("blocks"), "better, perhaps by less than 3 %");
    }

    #[test]
    fn a_comparison_of_an_older_run_is_read() {
        let old = r#"{"metric": "delivered_pps", "base": "a", "variant": "b", "ratio": 1.5, "interval": [1.4, 1.6],
            "range": [1.3, 1.7], "pairs_count": 6, "outcome": "better", "expected": null}"#;
        let found: Comparison = serde_json::from_str(old).unwrap();
        assert_eq!(found.effect.amount(&found.metric), "+50.0 %");
        assert_eq!(found.sureness(), "95 % interval +40.0 to +60.0 %, 6 blocks");
        assert_eq!(found.effect.verdict("blocks"), "better");
        assert_eq!(found.effect.judged_by, JudgedBy::Ratio);
        let none = old.replace("better", "no-ratio");
        let none: Comparison = serde_json::from_str(&none).unwrap();
        assert_eq!(none.effect.outcome, Outcome::Inconclusive);
    }
}
