//! A difference in words: how much, how sure, which verdict, and what would decide it.

use rxpath_core::number::si;
use rxpath_stats::difference::{Undecided, Word};
use rxpath_stats::looks::{FIRST, MOST};

use super::{Control, IntervalMethod, JudgedBy, MeasuredEffect, Outcome, Reason};
use crate::metric;

impl MeasuredEffect {
    /// How much, in words: `+7.2 %`, `3.62 times`, `+12.30 percentage points`, `no ratio: the base is 0; +13`.
    pub fn amount(&self, metric: &str) -> String {
        match (self.change(), self.ratio) {
            (Some(change), _) if self.judged_by == JudgedBy::Difference => {
                step(metric, change.value)
            }
            (Some(change), _) => {
                format!("no ratio: the base is 0; {}", step(metric, change.value))
            }
            (None, Some(ratio)) => times(ratio),
            (None, None) if self.inconclusive_because == Some(Reason::NotMeasured) => {
                "not measured".into()
            }
            (None, None) => "no ratio: the base is 0".into(),
        }
    }

    /// The interval, and the range within blocks, in words: `+6.1 to +8.3 %`.
    pub fn spans(&self, metric: &str) -> [Option<String>; 2] {
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
        [interval.map(ends), range.map(ends)]
    }

    /// How sure, in words: the interval, or the range where there is none.
    pub fn sureness(&self, metric: &str) -> String {
        match self.spans(metric) {
            [Some(interval), _] => format!("95 % interval {interval}"),
            [None, Some(range)] => format!("range {range}, no interval"),
            [None, None] => "no interval".into(),
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
                    Some(IntervalMethod::Welch) => rxpath_stats::welch::FEWEST,
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

/// One digit after the point under 10, none above, no trailing zero.
pub(super) fn rounded(value: f64) -> String {
    let text = if value < 1.0 {
        format!("{value:.2}")
    } else if value < 10.0 {
        format!("{value:.1}")
    } else {
        return format!("{value:.0}");
    };
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// A ratio with its unit: `3.80 times`, `-27.0 %`.
pub(super) fn times(ratio: f64) -> String {
    format!("{} {}", end(ratio, ratio), unit(ratio))
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
