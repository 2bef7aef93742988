//! How much a finding matters: what the host is for, how bad it is, how large the effect of its remedy.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

rxpath_core::named! {
    /// What the host is set up for.
    #[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Goal {
        /// Short, predictable time from wire to application.
        Latency => "latency",
        /// Many packets or bytes per second.
        Throughput => "throughput",
        /// Little CPU time taken from other work.
        Fairness => "fairness",
        /// Measurements that repeat from run to run.
        Benchmark => "benchmark",
    }
    /// The word of the command line.
    pub fn as_str(self) -> &'static str
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

rxpath_core::named! {
    /// How bad a finding is.
    #[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Severity {
        /// Could be better; many hosts are well with it.
        #[cfg_attr(feature = "clap", value(skip))]
        Info => "info",
        /// Costs something for the goal.
        #[cfg_attr(feature = "clap", value(help = "Warnings and failures"))]
        Warn => "warn",
        /// Loses packets, contradicts itself or makes the goal impossible.
        #[cfg_attr(feature = "clap", value(help = "Failures only"))]
        Fail => "fail",
    }
    /// The word of the command line and of results.
    pub fn as_str(self) -> &'static str
}

/// How much a rule's finding matters, by goal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Weight {
    /// Whatever the host is for; `None` if the rule judges only for the goals below.
    any: Option<Severity>,
    /// The remedy's effect on a goal, where it is not the rule's own figure.
    #[serde(default)]
    sizes: BTreeMap<Goal, Magnitude>,
    #[serde(flatten)]
    goals: BTreeMap<Goal, Severity>,
}

impl Default for Weight {
    /// `info` for every goal.
    fn default() -> Self {
        Self { any: Some(Severity::Info), sizes: BTreeMap::new(), goals: BTreeMap::new() }
    }
}

impl Weight {
    /// How large the effect on what was asked for is; `None` where the rule's own figure is for it.
    pub fn size(&self, goal: Option<Goal>) -> Option<Magnitude> {
        goal.and_then(|goal| self.sizes.get(&goal).copied())
    }

    /// The severity for what was asked; `None` when the rule has nothing to say about it.
    pub fn of(&self, goal: Option<Goal>) -> Option<Severity> {
        goal.and_then(|goal| self.goals.get(&goal).copied()).or(self.any)
    }

    /// Goals that the rule judges for; empty when it judges for any.
    pub fn goals(&self) -> Vec<Goal> {
        if self.any.is_some() { Vec::new() } else { self.goals.keys().copied().collect() }
    }
}

/// How large the effect of a remedy is expected to be; findings of one severity are ordered by it, the largest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Magnitude {
    /// No public figure: measure it.
    #[default]
    Unmeasured,
    /// A few percent.
    Percents,
    /// Tens of percent.
    Tens,
    /// A factor of two or more.
    Multiple,
    /// Packets are lost, or nothing works as it is set.
    Loss,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Weight {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_goal_has_its_own_weight_and_falls_back_to_any() {
        let weight = read("any = 'info'\nlatency = 'fail'");
        assert_eq!(weight.of(None), Some(Severity::Info));
        assert_eq!(weight.of(Some(Goal::Latency)), Some(Severity::Fail));
        assert_eq!(weight.of(Some(Goal::Fairness)), Some(Severity::Info));
        let weight = read("benchmark = 'warn'\nsizes = { benchmark = 'percents' }");
        assert_eq!((weight.of(None), weight.of(Some(Goal::Latency))), (None, None));
        assert_eq!(weight.goals(), [Goal::Benchmark]);
        assert_eq!(weight.size(Some(Goal::Benchmark)), Some(Magnitude::Percents));
        assert_eq!((weight.size(Some(Goal::Latency)), weight.size(None)), (None, None));
    }

    #[test]
    fn what_loses_packets_comes_first() {
        assert!(Magnitude::Loss > Magnitude::Multiple && Magnitude::Tens > Magnitude::Percents);
        assert!(Magnitude::Unmeasured < Magnitude::Percents);
    }
}
