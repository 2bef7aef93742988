//! A rule: what it looks at, when it judges, how much that matters for which goal, and all that `explain` says.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Ask;
use crate::facts::Device;
use crate::finding::Found;
use crate::prelude::{idle, quiet};

/// What the host is set up for.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Short, predictable time from wire to application.
    Latency,
    /// Many packets or bytes per second.
    Throughput,
    /// Little CPU time taken from other work.
    Fairness,
    /// Measurements that repeat from run to run.
    Benchmark,
}

rxpath_core::named! {
    /// The word of the command line.
    as_str of Goal {
        Latency => "latency",
        Throughput => "throughput",
        Fairness => "fairness",
        Benchmark => "benchmark",
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How bad a finding is.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Could be better; many hosts are well with it.
    #[cfg_attr(feature = "clap", value(skip))]
    Info,
    /// Costs something for the goal.
    #[cfg_attr(feature = "clap", value(help = "Warnings and failures"))]
    Warn,
    /// Loses packets, contradicts itself or makes the goal impossible.
    #[cfg_attr(feature = "clap", value(help = "Failures only"))]
    Fail,
}

rxpath_core::named! {
    /// The word of the command line and of results.
    as_str of Severity {
        Info => "info",
        Warn => "warn",
        Fail => "fail",
    }
}

/// How much a rule's finding matters, by goal.
#[derive(Clone, Debug, Deserialize)]
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
        if self.any.is_some() {
            return Vec::new();
        }
        self.goals.keys().copied().collect()
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

/// The part of the receive path that a rule is about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// NIC: interrupts and coalescing.
    Interrupts,
    /// NIC: rings, queues, steering.
    Queues,
    /// NIC: offloads, link, PCIe.
    Offloads,
    /// NAPI, softirq, polling.
    Napi,
    /// Sockets and protocol.
    Sockets,
    /// Netfilter and other hooks on the path.
    Hooks,
    /// CPU, power, scheduling, kernel.
    Cpu,
    /// Queueing, virtualisation, managers of settings, honesty of benchmarks.
    Surroundings,
}

rxpath_core::named! {
    /// A heading.
    title of Area {
        Interrupts => "NIC: interrupts and coalescing",
        Queues => "NIC: rings, queues, steering",
        Offloads => "NIC: offloads, link, PCIe",
        Napi => "NAPI, softirq, polling",
        Sockets => "Sockets and protocol",
        Hooks => "Netfilter and other hooks on the path",
        Cpu => "CPU, power, scheduling, kernel",
        Surroundings => "Queueing, virtualisation, managers, honesty of benchmarks",
    }
}

/// What a rule does with what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It judges: finds, is content, or is silent where it does not apply.
    #[default]
    Judge,
    /// It records and never judges.
    Record,
    /// It warns that numbers taken here would mislead.
    Honesty,
}

/// How a rule is asked.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Once for the host.
    Host(fn(&Ask<'_>) -> Checked),
    /// Once for each network device.
    Device(fn(&Ask<'_>, &Device) -> Checked),
    /// Once for each network device that is up, but for the loopback device; it is silent about the others.
    Active(fn(&Ask<'_>, &Device) -> Checked),
    /// Once for each NIC that is up; it is silent about the other devices.
    Nic(fn(&Ask<'_>, &Device) -> Checked),
}

impl Check {
    /// Asks the rule about a device; `None` for rules about the host.
    pub fn of_device(self, ask: &Ask<'_>, device: &Device) -> Option<Checked> {
        let (judge, silent) = match self {
            Self::Host(_) => return None,
            Self::Device(judge) => (judge, None),
            Self::Active(judge) => (judge, idle(device)),
            Self::Nic(judge) => (judge, quiet(device)),
        };
        Some(silent.unwrap_or_else(|| judge(ask, device)))
    }
}

/// A rule's answer, or the fact that it would have needed.
pub type Checked = Result<Answer, Gap>;

/// A fact that a rule needs and does not have: it is then not judged, and counted with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The host does not have it.
    Absent(String),
    /// The host has it and did not show it; what would.
    Denied(String),
}

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It does not apply here, and why.
    Silent(String),
    /// It applies, and all is well: what was observed.
    Fine(String),
    /// It applies, and this is wrong.
    Found(Box<Found>),
    /// What was recorded, without a judgement.
    Recorded(String),
    /// What makes numbers taken here mislead.
    Caution(String),
}

impl Answer {
    /// This is wrong: observed, expected, and why in one line.
    pub fn found(
        observed: impl Into<String>,
        expected: impl Into<String>,
        why: impl Into<String>,
    ) -> Checked {
        let (observed, expected, why) = (observed.into(), expected.into(), why.into());
        Ok(Self::Found(Box::new(Found { observed, expected, why, ..Found::default() })))
    }

    /// This is wrong, and the rule's file says what is expected and why: [`Rule::finding_expected`], [`Rule::finding_why`].
    pub fn observed(observed: impl Into<String>) -> Checked {
        Self::found(observed, "", "")
    }

    /// Does not apply, because of `why`.
    pub fn silent(why: impl Into<String>) -> Checked {
        Ok(Self::Silent(why.into()))
    }

    /// All is well.
    pub fn fine(observed: impl Into<String>) -> Checked {
        Ok(Self::Fine(observed.into()))
    }

    /// Recorded.
    pub fn recorded(value: impl Into<String>) -> Checked {
        Ok(Self::Recorded(value.into()))
    }

    /// A warning about numbers that are taken here.
    pub fn caution(text: impl Into<String>) -> Checked {
        Ok(Self::Caution(text.into()))
    }
}

/// One rule, as `rules/AREA/NAME.toml` has it, with its check.
///
/// Texts that the file leaves out are the usual ones of the rule's kind (`rule_file.rs`).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable id in kebab case.
    pub id: &'static str,
    /// Where on the path.
    pub area: Area,
    /// What it does.
    #[serde(default)]
    pub kind: Kind,
    /// The question, in a line.
    pub what: &'static str,
    /// Hosts or devices that it applies to.
    pub applies: &'static str,
    /// How much a finding matters.
    #[serde(default)]
    pub weight: Weight,
    /// How large the effect of the remedy is expected to be, where a figure or the mechanism tells.
    #[serde(default)]
    pub size: Magnitude,
    /// What the remedy is expected to bring: the figure and where it was taken, or what follows from how the kernel
    /// works; empty where only a measurement tells.
    #[serde(default)]
    pub effect: &'static str,
    /// Where the figure is published; empty where there is none.
    #[serde(default)]
    pub figure_from: &'static str,
    /// The question in code.
    #[serde(skip, default = "no_check")]
    pub check: Check,
    /// What a finding expects instead; empty where its check says so.
    #[serde(default)]
    pub finding_expected: &'static str,
    /// Why a finding is one, in one line; empty where its check says so.
    #[serde(default)]
    pub finding_why: &'static str,
    /// Why it matters, in a sentence or two.
    pub why: &'static str,
    /// What the kernel does: function, file, since which version.
    pub mechanism: &'static str,
    /// When not to change it.
    #[serde(default)]
    pub not_when: &'static str,
    /// Side effects of a change.
    #[serde(default)]
    pub side_effects: &'static str,
    /// How to set it now, as a command to copy.
    #[serde(default)]
    pub set_now: &'static str,
    /// How to set it for good.
    #[serde(default)]
    pub persist: &'static str,
    /// How to undo it.
    #[serde(default)]
    pub undo: &'static str,
    /// How to see that it works.
    pub verify: &'static str,
    /// Kernel versions that have it.
    #[serde(default)]
    pub since: &'static str,
    /// Where all this is written: kernel files, commits, documentation, papers.
    pub sources: Vec<&'static str>,
}

/// Until the rule's file names one.
fn no_check() -> Check {
    Check::Host(|_| Err(Gap::Absent("the rule has no check".into())))
}

impl Rule {
    /// The expected effect in one line.
    pub fn effect(&self) -> String {
        match (self.effect, self.figure_from) {
            ("", _) => "not known: measure".into(),
            (text, "") => format!("{text}; no public figure: measure"),
            (text, source) => format!("{text} ({source})"),
        }
    }
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
