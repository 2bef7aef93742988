//! A plan: what would be changed, from what to what, in which order, and what that costs.
//!
//! The question it answers: *what exactly will `tune apply` write?* A plan is a file that a person reads, edits and
//! keeps. It holds for one boot of one host, because it says what it found there. It must not write anything.

use std::path::Path;

use rxpath_host::{HostError, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::effects::Effect;

pub mod expected;
pub mod from_findings;
pub mod make;
pub mod session;
pub mod settle;

/// Major version of the form that is read; a newer minor one may add fields.
const SCHEMA: &str = "rxpath/plan/1.0";
/// A plan is text that people read: more bytes are not one.
pub const MAX_BYTES: usize = 4 << 20;
const MAX_STEPS: usize = 10_000;

/// A plan as it stands in its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `rxpath/plan/1.0`.
    pub schema: String,
    /// When it was made (RFC 3339).
    pub created: String,
    /// For which host and boot.
    pub host: HostMark,
    /// What to write, in this order.
    #[serde(default, rename = "step", skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PlanStep>,
    /// What was asked for and is not in the steps, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// What tells one host and boot from another, and gives nothing away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostMark {
    /// A hash of the machine's id; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The boot (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// The network namespace: inode of its file.
    pub netns: u64,
    /// The kernel's release.
    pub kernel: String,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What: `net.core.rmem_max`, `eth0/rings`, `eth0/queues/rx-0/rps_cpus`.
    #[schemars(with = "String")]
    pub set: Target,
    /// The value that was found; of a group, the pairs that will change.
    pub old: String,
    /// The value to write.
    pub new: String,
    /// Who asked for it: ids of rules, or `asked for`.
    #[serde(default)]
    pub because: Vec<String>,
    /// What it does in addition to its purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

impl PlanStep {
    /// Whether it takes the link down for a moment.
    pub fn bounces_link(&self) -> bool {
        self.effects.contains(&Effect::LinkBounce)
    }
}

/// Something that was asked for and can't be a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The knob, or the rule.
    pub what: String,
    /// Why, and what to do instead; `already set` if that is why.
    pub why: String,
    /// Whether it has this value already: nothing went wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_set: bool,
}

/// Why a request makes no step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoStep {
    /// The setting has this value.
    Already,
    /// In words.
    Because(String),
}

impl<T: Into<String>> From<T> for NoStep {
    fn from(words: T) -> Self {
        Self::Because(words.into())
    }
}

impl LeftOut {
    /// The knob or the rule, and why it is no step.
    pub fn new(what: impl Into<String>, why: impl Into<NoStep>) -> Self {
        let (why, is_set) = match why.into() {
            NoStep::Already => (make::ALREADY.to_owned(), true),
            NoStep::Because(why) => (why, false),
        };
        Self { what: what.into(), why, is_set }
    }
}

/// Why a plan can't be used.
#[derive(Debug, Error)]
pub enum PlanError {
    /// It can't be read as a plan.
    #[error("{file}: {why}")]
    Bad {
        /// Of the plan.
        file: String,
        /// What is wrong, with its place.
        why: String,
    },
    /// It was made for something else.
    #[error("{file} was made for another {what} ({theirs}, this is {ours})")]
    Foreign {
        /// Of the plan.
        file: String,
        /// `host`, `boot`, `network namespace`.
        what: &'static str,
        /// As the plan says.
        theirs: String,
        /// As it is here.
        ours: String,
    },
    /// A step holds a value that the setting can't have.
    #[error("step {number}: {set}: {why}")]
    Step {
        /// From 1.
        number: usize,
        /// The setting.
        set: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// The host changed since it was made.
    #[error("step {number}: {set} was {old} when the plan was made and is {now} now")]
    Stale {
        /// From 1.
        number: usize,
        /// The setting.
        set: String,
        /// In the plan.
        old: String,
        /// Now.
        now: String,
    },
    /// The setting can't be read: its device is gone, or more privilege is needed.
    #[error("step {number}: {set} can't be read: {why}")]
    Unread {
        /// From 1.
        number: usize,
        /// The setting.
        set: String,
        /// Why.
        why: String,
    },
    /// The host could not be read.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Plan {
    /// An empty plan for this host.
    pub fn new(created: String, host: HostMark) -> Self {
        Self { schema: SCHEMA.into(), created, host, steps: Vec::new(), left_out: Vec::new() }
    }

    /// Reads a plan from its text, TOML or JSON; also as `tune plan --json` printed it.
    ///
    /// **Errors** in one line, with the line of the file where there is one.
    pub fn parse(text: &str, file: &str) -> Result<Self, PlanError> {
        let bad = |why: String| PlanError::Bad { file: file.into(), why };
        if text.len() > MAX_BYTES {
            return Err(bad(format!("larger than {} MiB: not a plan", MAX_BYTES >> 20)));
        }
        let plan: Self = if text.trim_start().starts_with('{') {
            from_json(text).map_err(|e| bad(e.to_string()))?
        } else {
            toml::from_str(text).map_err(|e| bad(toml_words(&e, text)))?
        };
        let known = plan.schema.strip_prefix("rxpath/plan/").and_then(|v| v.split_once('.'));
        match known.map(|(major, minor)| (major.parse::<u32>(), minor.parse::<u32>())) {
            Some((Ok(1), Ok(_))) => {}
            Some((Ok(major), Ok(_))) if major > 1 => {
                return Err(bad(format!(
                    "made by a newer rxpath ({}; this one knows 1)",
                    plan.schema
                )));
            }
            _ => return Err(bad(format!("schema `{}`: expected {SCHEMA}", plan.schema))),
        }
        if plan.steps.len() > MAX_STEPS {
            return Err(bad(format!("{} steps: at most {MAX_STEPS}", plan.steps.len())));
        }
        for (at, step) in plan.steps.iter().enumerate() {
            let wrong =
                |why: String| PlanError::Step { number: at + 1, set: step.set.to_string(), why };
            crate::limits::may_change(&step.set).map_err(wrong)?;
            crate::limits::well_formed(&step.set, &step.new).map_err(wrong)?;
            // Only compared with what is there, which may be out of range.
            crate::limits::is_line(&step.old).map_err(wrong)?;
        }
        Ok(plan)
    }

    /// The plan as the text of its file.
    pub fn to_toml(&self) -> Result<String, PlanError> {
        let text = toml::to_string_pretty(self)
            .map_err(|e| PlanError::Bad { file: "plan".into(), why: e.to_string() })?;
        Ok(format!("# A plan of `rxpath tune`: read it, then `rxpath tune apply FILE`.\n{text}"))
    }

    /// Whether it was made for this host, boot and network namespace.
    pub fn is_for(&self, here: &HostMark, file: &str) -> Result<(), PlanError> {
        let foreign = |what, theirs: String, ours: String| {
            Err(PlanError::Foreign { file: file.into(), what, theirs, ours })
        };
        let none = || "unknown".to_owned();
        if self.host.machine != here.machine {
            let name = |mark: &HostMark| mark.machine.clone().unwrap_or_else(none);
            return foreign("host", name(&self.host), name(here));
        }
        if self.host.boot_id != here.boot_id {
            return foreign("boot", self.host.boot_id.clone(), here.boot_id.clone());
        }
        if self.host.netns != here.netns {
            let name = |mark: &HostMark| format!("net:[{}]", mark.netns);
            return foreign("network namespace", name(&self.host), name(here));
        }
        Ok(())
    }
}

fn from_json(text: &str) -> Result<Plan, serde_json::Error> {
    let mut whole: serde_json::Value = serde_json::from_str(text)?;
    let schema = whole["schema"].as_str().unwrap_or_default();
    if !schema.starts_with("rxpath/tune-plan/") {
        return serde_json::from_str(text);
    }
    // What `tune plan --json` prints: the plan, and what is expected of it, which nothing here needs.
    let Some(plan) = whole.get_mut("result") else {
        return Err(serde::de::Error::missing_field("result"));
    };
    if let Some(fields) = plan.as_object_mut() {
        fields.remove("predictions");
    }
    serde_json::from_value(plan.take())
}

fn toml_words(error: &toml::de::Error, text: &str) -> String {
    let line = error
        .span()
        .map(|span| text.get(..span.start).map_or(0, |before| before.matches('\n').count()) + 1);
    let words = error.message().lines().collect::<Vec<_>>().join("; ");
    line.map_or(words.clone(), |line| format!("line {line}: {words}"))
}

impl HostMark {
    /// What distinguishes this host from others: the machine, else the boot.
    pub fn id(&self) -> &str {
        self.machine.as_deref().unwrap_or(&self.boot_id)
    }

    /// The host that this runs on.
    pub fn here() -> Result<Self, HostError> {
        let release = rxpath_host::Root::host().value("/proc/sys/kernel/osrelease")?;
        Ok(Self {
            machine: machine(Path::new("/etc/machine-id")),
            boot_id: rxpath_host::read::identity::boot_id()?,
            netns: rxpath_host::read::identity::network_namespace()?,
            kernel: release,
        })
    }
}

/// A hash of the machine's id: the id itself is confidential (machine-id(5)).
fn machine(path: &Path) -> Option<String> {
    let id = std::fs::read_to_string(path).ok()?;
    let id = id.trim();
    if id.is_empty() {
        return None;
    }
    let digest = Sha256::digest(format!("rxpath {id}"));
    Some(digest.iter().take(8).fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

#[cfg(test)]
pub(crate) mod tests;
