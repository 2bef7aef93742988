//! A candidate: one change, or several that only work together, with what is expected of it and what it risks.

use rxpath_stats::student::normal_cdf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effects::Effect;

/// A gain under this is not worth a setting. On the logarithmic scale.
const WORTH: f64 = 0.015;
/// No candidate weighs less: a prior steers the search and proves nothing.
const LEAST_WEIGHT: f64 = 0.05;

/// What is expected of a candidate before any trial: a normal distribution of the gain on the logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prior {
    /// Its mean.
    pub gain: f64,
    /// Its standard deviation.
    pub spread: f64,
}

impl Prior {
    /// Nothing is known.
    pub const NONE: Self = Self { gain: 0.0, spread: 0.04 };
    /// A rule of `rxpath check` asks for it.
    pub const FINDING: Self = Self { gain: 0.02, spread: 0.05 };
    /// It acts on the stage that the diagnosis names.
    pub const STAGE: Self = Self { gain: 0.03, spread: 0.06 };

    /// The model predicts the objective to change by this ratio, in the good direction.
    pub fn predicted(ratio: f64) -> Self {
        // Predictions were too large by about this share where they were compared with measurements.
        Self { gain: 0.7 * ratio.max(f64::MIN_POSITIVE).ln(), spread: 0.06 }
    }

    /// How likely it is worth a trial; weighs the levels of Holm's steps.
    pub fn weight(&self) -> f64 {
        normal_cdf((self.gain - WORTH) / self.spread).max(LEAST_WEIGHT)
    }

    /// What is expected after an estimate with this standard error: mean and standard deviation.
    pub fn after(&self, estimate: f64, error: f64) -> (f64, f64) {
        let own = self.spread * self.spread;
        let share = own / (own + error * error);
        (self.gain + share * (estimate - self.gain), self.spread * (1.0 - share).sqrt())
    }
}

/// How much a trial with the candidate may disturb.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing but the setting changes.
    #[default]
    None,
    /// It costs power or CPU time, or holds for the whole host.
    Wide,
    /// Queues are made again.
    Queues,
    /// The link is lost for a moment.
    Link,
}

impl Risk {
    /// Of a change with these effects; `None` if no search may try it.
    pub fn of(effects: &[Effect]) -> Option<Self> {
        let one = |effect: &Effect| match effect {
            Effect::Security => None,
            Effect::LinkBounce => Some(Self::Link),
            Effect::QueuesRebuilt => Some(Self::Queues),
            Effect::NextInterrupt | Effect::Power | Effect::BurnsCpu | Effect::HostWide => {
                Some(Self::Wide)
            }
            Effect::MovesOthers | Effect::Reorders => Some(Self::None),
        };
        effects.iter().map(one).try_fold(Self::None, |most, risk| Some(most.max(risk?)))
    }

    /// Whether it is tried alone and last.
    pub fn is_slow(self) -> bool {
        self >= Self::Queues
    }
}

/// One change that the search switches on and off as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Its name in reports.
    pub name: String,
    /// The setting of which it is one of several values: of these only one can be on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// What it sets: `NAME = VALUE`.
    pub sets: Vec<String>,
    /// Why it may matter: ids of rules, the stage, the model.
    pub because: Vec<String>,
    /// What is expected of it.
    pub prior: Prior,
    /// What it risks.
    pub risk: Risk,
    /// A rule finds the present value wrong, or the kernel's default is another one. Where arrays do not prove it, it is
    /// tried alone against the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repairs: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prior_weighs_and_gives_way_to_data() {
        assert!(Prior::predicted(1.5).weight() > 0.99);
        assert!((Prior::predicted(0.5).weight() - LEAST_WEIGHT).abs() < 1e-12);
        let weights = [Prior::NONE, Prior::FINDING, Prior::STAGE].map(|prior| prior.weight());
        assert!(weights.windows(2).all(|pair| pair[0] < pair[1]), "{weights:?}");
        let (mean, spread) = Prior::NONE.after(0.1, 0.001);
        assert!((mean - 0.1).abs() < 1e-3 && spread < 0.0011);
        let (mean, spread) = Prior::FINDING.after(0.5, 100.0);
        assert!((mean - 0.02).abs() < 1e-3 && (spread - 0.05).abs() < 1e-3);
    }

    #[test]
    fn the_worst_effect_is_the_risk_and_protections_are_never_tried() {
        assert_eq!(Risk::of(&[]), Some(Risk::None));
        assert_eq!(Risk::of(&[Effect::HostWide, Effect::LinkBounce]), Some(Risk::Link));
        assert_eq!(Risk::of(&[Effect::Security, Effect::HostWide]), None);
        assert!(Risk::Queues.is_slow() && !Risk::Wide.is_slow());
    }
}
