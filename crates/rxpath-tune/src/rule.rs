//! A rule: what it looks at, when it judges, and all that `explain` says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Checked};
use crate::facts::{Device, Gap, HostFacts};
use crate::weight::{Goal, Magnitude, Weight};

rxpath_core::named! {
    /// The part of the receive path that a rule is about.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Area {
        /// NIC: interrupts and coalescing.
        Interrupts => "NIC: interrupts and coalescing",
        /// NIC: rings, queues, steering.
        Queues => "NIC: rings, queues, steering",
        /// NIC: offloads, link, PCIe.
        Offloads => "NIC: offloads, link, PCIe",
        /// NAPI, softirq, polling.
        Napi => "NAPI, softirq, polling",
        /// Sockets and protocol.
        Sockets => "Sockets and protocol",
        /// Netfilter and other hooks on the path.
        Hooks => "Netfilter and other hooks on the path",
        /// CPU, power, scheduling, kernel.
        Cpu => "CPU, power, scheduling, kernel",
        /// Queueing, virtualisation, managers of settings, honesty of benchmarks.
        Surroundings => "Queueing, virtualisation, managers, honesty of benchmarks",
    }
    /// A heading.
    pub fn title(self) -> &'static str
}

/// What a rule does with what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleKind {
    /// It judges: finds, is content, or is silent where it does not apply.
    #[default]
    Judge,
    /// It records and never judges.
    Record,
    /// It warns that numbers taken here would mislead.
    Honesty,
}

/// What a rule is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The host.
    pub facts: &'a HostFacts,
    /// What the host should be good for; `None` asks for what is wrong whatever it is for.
    pub goal: Option<Goal>,
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

/// Answers for the loopback device and for devices that carry nothing: rules that are for virtual devices too.
pub fn idle(device: &Device) -> Option<Checked> {
    if device.is_loopback() {
        Some(Answer::silent("the loopback device"))
    } else if !device.is_up() {
        Some(Answer::silent("the device is down"))
    } else {
        None
    }
}

/// Answers for devices that are no hardware or carry nothing: the usual reason to stay silent.
pub fn quiet(device: &Device) -> Option<Checked> {
    if device.is_nic() {
        idle(device)
    } else {
        Some(Answer::silent("no hardware behind this device"))
    }
}

/// One rule, as `rules/AREA/NAME.toml` has it, with its check.
///
/// Texts that the file leaves out are the usual ones of the rule's kind (`rule_file.rs`).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable id in kebab case.
    pub id: &'static str,
    /// Where on the path.
    pub area: Area,
    /// What it does.
    #[serde(default)]
    pub kind: RuleKind,
    /// The question, in a line.
    pub what: &'static str,
    /// Hosts or devices that it applies to.
    pub applies: &'static str,
    /// How much a finding matters.
    #[serde(default, skip_serializing)]
    pub weight: Weight,
    /// How large the effect of the remedy is expected to be, where a figure or the mechanism tells.
    #[serde(default, skip_serializing)]
    pub size: Magnitude,
    /// What the remedy is expected to bring: the figure and where it was taken, or what follows from how the kernel
    /// works; empty where only a measurement tells.
    #[serde(default, skip_serializing)]
    pub effect: &'static str,
    /// Where the figure is published; empty where there is none.
    #[serde(default, skip_serializing)]
    pub figure_from: &'static str,
    /// The question in code.
    #[serde(skip, default = "no_check")]
    pub check: Check,
    /// What a finding expects instead; empty where its check says so.
    #[serde(default, skip_serializing)]
    pub finding_expected: &'static str,
    /// Why a finding is one, in one line; empty where its check says so.
    #[serde(default, skip_serializing)]
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
