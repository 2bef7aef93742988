//! A difference between two variants, and its verdict with error control.
//!
//! The question it answers: *is the variant better, worse or the same, how sure is that, and is it worth going on?*
//! `Better` and `worse` need an interval without "no change"; `same` needs two one-sided tests (Schuirmann 1987) within
//! the practical threshold, 5 % each. Both hold at every interim analysis of a run at once ([`Looks`]), so a run may stop at any of
//! them. Of several comparisons each is looked at more strictly ([`family`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::ConfidenceInterval;
use crate::looks::{ERROR, Looks, SAME_ERROR};
use crate::paired::{EffectEstimate, Paired};
use crate::quantile::{median, range};
use crate::scale::{Good, Scale};
use crate::welch::Apart;
use crate::{planning, student};

/// A run goes on only while a decision is at least this likely.
const HOPE: f64 = 0.05;
/// Blocks before which nothing is called hopeless.
const HOPE_FROM: usize = 6;

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// There is a difference, in the good direction.
    Better,
    /// There is a difference, in the bad direction.
    Worse,
    /// Any difference is smaller than the practical threshold.
    Same,
    /// Neither is shown.
    #[serde(alias = "no-ratio")]
    Inconclusive,
}

/// Why a difference is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// Fewer blocks than an interval needs.
    TooFew,
    /// No block has a value of both.
    NotMeasured,
    /// Values that are not above 0 have no ratio.
    #[serde(alias = "base-often-zero")]
    NotPositive,
    /// Disturbed trials were left out, more of one variant than of the other, and with them the verdict is another.
    VoidsDiffer,
    /// The interval holds "no change" and reaches beyond the threshold.
    #[serde(alias = "reaches-threshold")]
    HoldsNoChange,
}

/// Why a comparison needs no more blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It has its verdict, and more blocks would not change what it is used for.
    Decided,
    /// The blocks that are left are unlikely to decide it.
    Hopeless,
}

/// Two variants over blocks in which both ran.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantDifference {
    /// How values are compared.
    pub scale: Scale,
    /// Medians: base, variant.
    pub medians: (f64, f64),
    /// Blocks that count.
    pub pairs: usize,
    /// Blocks left out because a value has no logarithm.
    pub not_positive: usize,
    /// Smallest and largest difference within a block, in the unit of the metric.
    pub range: (f64, f64),
    /// Smallest and largest ratio within a block; `None` when the base is 0 in every one.
    pub ratio_range: Option<(f64, f64)>,
    /// When the run looks at it.
    pub looks: Looks,
    /// Comparisons among which it is judged, at its last step.
    pub family: usize,
    /// Effects up to this are the same; on the logarithmic scale.
    threshold: f64,
    /// The effect for a difference and for `same`; `None` where there is no interval.
    found: Option<(EffectEstimate, EffectEstimate)>,
    source: Option<Source>,
}

/// What intervals at any level are made from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Paired(Paired),
    Apart(Apart),
}

impl Source {
    fn at(&self, level: f64) -> EffectEstimate {
        match self {
            Self::Paired(paired) => paired.at(level),
            Self::Apart(apart) => apart.at(level),
        }
    }
}

/// The difference over pairs `(base, variant)` of the same block, for a run that looks at these times; `None` without
/// pairs. Ratios within 1 +- `threshold` are the same.
pub fn difference(
    pairs: &[(f64, f64)],
    scale: Scale,
    threshold: f64,
    looks: Looks,
) -> Option<VariantDifference> {
    let base = median(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>())?;
    let variant = median(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>())?;
    let effects: Vec<f64> = pairs
        .iter()
        .filter_map(|(base, variant)| Some(scale.of(*variant)? - scale.of(*base)?))
        .collect();
    let steps: Vec<f64> = pairs.iter().map(|pair| pair.1 - pair.0).collect();
    let ratios: Vec<f64> =
        pairs.iter().filter(|pair| pair.0 != 0.0).map(|pair| pair.1 / pair.0).collect();
    let enough = effects.len() >= looks.fewest();
    let source = Paired::of(&effects).filter(|_| enough).map(Source::Paired);
    let mut made = VariantDifference {
        scale,
        medians: (base, variant),
        pairs: effects.len(),
        not_positive: pairs.len() - effects.len(),
        range: range(&steps)?,
        ratio_range: range(&ratios),
        looks,
        family: 1,
        threshold: scale.threshold(threshold, base.min(variant)),
        found: None,
        source,
    };
    made.judge_among(1);
    Some(made)
}

/// The difference between two lists that were not measured in the same blocks, with the scatter between runs of the same
/// code where it is known: its standard deviation on the scale, and over how many runs; `None` without values.
pub fn between(
    base: &[f64],
    variant: &[f64],
    scale: Scale,
    threshold: f64,
    between_runs: Option<(f64, usize)>,
) -> Option<VariantDifference> {
    let (below, above) = (median(base)?, median(variant)?);
    let ((low, high), (least, most)) = (range(base)?, range(variant)?);
    let on_scale =
        |values: &[f64]| values.iter().filter_map(|value| scale.of(*value)).collect::<Vec<_>>();
    let (first, second) = (on_scale(base), on_scale(variant));
    let source = Apart::of(&first, &second).map(|apart| match between_runs {
        Some((deviation, runs)) => apart.with_run_scatter(deviation, runs),
        None => apart,
    });
    let mut made = VariantDifference {
        scale,
        medians: (below, above),
        pairs: first.len().min(second.len()),
        not_positive: base.len() + variant.len() - first.len() - second.len(),
        range: (least - high, most - low),
        ratio_range: (low > 0.0).then(|| (least / high, most / low)),
        looks: Looks::Plain,
        family: 1,
        threshold: scale.threshold(threshold, below.min(above)),
        found: None,
        source: source.map(Source::Apart),
    };
    made.judge_among(1);
    Some(made)
}

/// Judges several comparisons together by Holm's steps: as long as none of them is found, each is looked at with the
/// error divided by their number; each that is found makes the others' number smaller.
///
/// S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
pub fn family(comparisons: &mut [VariantDifference]) {
    let mut left: Vec<usize> = (0..comparisons.len()).collect();
    loop {
        let among = left.len();
        for index in &left {
            comparisons[*index].judge_among(among);
        }
        left.retain(|index| !comparisons[*index].excludes_no_change());
        if left.is_empty() || left.len() == among {
            return;
        }
    }
}

impl VariantDifference {
    fn judge_among(&mut self, family: usize) {
        self.family = family.max(1);
        let level = self.looks.level(ERROR / self.family as f64);
        let same = self.looks.level(SAME_ERROR);
        self.found = self.source.map(|source| (source.at(level), source.at(same)));
    }

    /// Ratio and its interval; `None` where there is none, and for shares.
    pub fn ratio(&self) -> Option<(f64, ConfidenceInterval)> {
        let (found, _) = self.found.filter(|_| self.scale == Scale::Ratio)?;
        Some((found.value.exp(), map(found.interval, f64::exp)))
    }

    /// `variant - base` in the unit of the metric, and its interval; from the medians, without one, where there is no
    /// interval.
    pub fn change(&self) -> (f64, Option<ConfidenceInterval>) {
        let (base, variant) = self.medians;
        let Some((found, _)) = self.found else { return (variant - base, None) };
        let difference = |effect| self.scale.difference(effect, base);
        (difference(found.value), Some(map(found.interval, difference)))
    }

    /// Whether "no change" lies outside the interval.
    pub fn excludes_no_change(&self) -> bool {
        self.found.is_some_and(|(found, _)| found.interval.low > 0.0 || found.interval.high < 0.0)
    }

    /// Whether any difference is smaller than the threshold.
    fn is_same(&self) -> bool {
        self.found.is_some_and(|(_, same)| {
            -self.threshold < same.interval.low && same.interval.high < self.threshold
        })
    }

    /// The verdict for a metric that is good in this direction.
    pub fn word(&self, good: Good) -> Word {
        match self.found {
            Some((found, _)) if !self.is_same() && self.excludes_no_change() => {
                let is_up = found.interval.low > 0.0;
                if is_up == (good == Good::Up) { Word::Better } else { Word::Worse }
            }
            Some(_) if self.is_same() => Word::Same,
            _ => Word::Inconclusive,
        }
    }

    /// Why the verdict is [`Word::Inconclusive`]; meaningless for others.
    pub fn undecided(&self) -> Undecided {
        match self.found {
            Some(_) => Undecided::HoldsNoChange,
            None if self.not_positive > 0 => Undecided::NotPositive,
            None => Undecided::TooFew,
        }
    }

    /// Whether the whole interval lies beyond the threshold.
    pub fn clears_threshold(&self) -> bool {
        self.found.is_some_and(|(found, _)| {
            found.interval.low >= self.threshold || found.interval.high <= -self.threshold
        })
    }

    /// The least difference that was shown, as a ratio: the end of the interval nearest to "no change".
    pub fn at_least(&self) -> Option<f64> {
        let (found, _) = self.found.filter(|_| self.excludes_no_change())?;
        let ConfidenceInterval { low, high } = found.interval;
        Some(if low > 0.0 { low.exp() } else { high.exp() })
    }

    /// Effects up to this are the same: as a share of the value, or as a difference of shares.
    pub fn same_within(&self) -> f64 {
        self.size(self.threshold)
    }

    /// The smallest X so that no difference is larger than X, as [`Self::same_within`]; `None` without an interval.
    pub fn no_larger_than(&self) -> Option<f64> {
        let (_, same) = self.found?;
        Some(self.size(same.interval.low.abs().max(same.interval.high.abs())))
    }

    /// An effect as a share of the value, or as a difference of shares.
    fn size(&self, effect: f64) -> f64 {
        match self.scale {
            Scale::Ratio => effect.exp_m1(),
            Scale::Share { .. } => self.scale.difference(effect, self.medians.0),
        }
    }

    /// How much single trials scatter, as a share of their value.
    pub fn trial_noise(&self) -> Option<f64> {
        let (found, _) = self.found?;
        Some((found.scatter / 2.0_f64.sqrt()).exp_m1())
    }

    /// Half of the interval's width, as a share of the ratio.
    pub fn precision(&self) -> Option<f64> {
        Some(self.found?.0.interval.half_width().exp_m1())
    }

    /// Blocks after which a difference as large as the threshold would probably be shown, with this noise; `None` when
    /// more than [`crate::looks::MOST`] or unknown.
    pub fn blocks_for_threshold(&self) -> Option<usize> {
        planning::blocks_for_difference(self.found?.0.scatter, self.threshold, self.family)
    }

    /// Blocks after which `same` would probably be shown of variants that are equal.
    pub fn blocks_for_same(&self) -> Option<usize> {
        planning::blocks_for_same(self.found?.1.scatter, self.threshold)
    }

    /// Whether more blocks are of no use; `None` while they are.
    pub fn settled(&self) -> Option<Settled> {
        let (found, _) = self.found?;
        let is_large = self.excludes_no_change() && found.value.abs() >= self.threshold;
        if self.is_same() || is_large {
            return Some(Settled::Decided);
        }
        (self.pairs >= HOPE_FROM && self.hope()? < HOPE).then_some(Settled::Hopeless)
    }

    /// How likely the last look of the run decides, if the effect is as it looks now.
    fn hope(&self) -> Option<f64> {
        let (found, same) = self.found?;
        let (now, last) = (self.pairs as f64, self.looks.most() as f64);
        let reach = |error: f64, scatter: f64| {
            student::two_sided(self.looks.level(error), last - 1.0) * scatter / last.sqrt()
        };
        let apart = reach(ERROR / self.family as f64, found.scatter);
        let within = (self.threshold - reach(SAME_ERROR, same.scatter)).max(0.0);
        let spread = found.scatter * (1.0 / now - 1.0 / last).max(0.0).sqrt();
        if spread == 0.0 {
            let effect = found.value.abs();
            return Some(f64::from(u8::from(effect > apart || effect < within)));
        }
        let below = |z: f64| student::normal_cdf((z - found.value) / spread);
        let beyond = 1.0 - below(apart) + below(-apart);
        Some(beyond + (below(within) - below(-within)))
    }
}

fn map(interval: ConfidenceInterval, with: impl Fn(f64) -> f64) -> ConfidenceInterval {
    ConfidenceInterval { low: with(interval.low), high: with(interval.high) }
}
