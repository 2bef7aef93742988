//! Settings with a minimum below which something breaks: `least.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::facts::HostFacts;
use crate::prelude::*;
use crate::rule_file::table;

/// A setting, its minimum, and the kernel's default if it is the same on all hosts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    pub key: String,
    /// Which of its numbers.
    #[serde(default)]
    part: usize,
    pub least: i64,
    pub default: Option<u64>,
    /// What happens below.
    pub below: String,
    /// The first kernel on which it has no effect.
    until: Option<(u32, u32)>,
    /// Whether a protocol does not work at all below it.
    #[serde(default)]
    is_deadly: bool,
    /// Whether a negative value means no limit.
    #[serde(default)]
    may_be_unlimited: bool,
}

/// The file of all of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    pub starving: Vec<Floor>,
    pub limit: Vec<Floor>,
    /// Of each family and device.
    pub neighbour: Vec<Floor>,
}

pub static FLOORS: LazyLock<Floors> = LazyLock::new(|| table("rules/sockets/least"));

impl Floor {
    /// If the version is not known, the setting may have no effect.
    fn counts(&self, facts: &HostFacts) -> bool {
        self.until.is_none_or(|(major, minor)| facts.kernel.is_before(major, minor))
    }

    fn read(&'static self, facts: &HostFacts) -> FloorReading {
        let now = *facts.sysctl_numbers(&self.key).into_value()?.get(self.part)?;
        let is_low = now < self.least && !(self.may_be_unlimited && now < 0);
        Some(is_low.then(|| Low {
            told: format!("{} is {now}", self.key),
            least: format!("{} at least {}", self.key, self.least),
            below: &self.below,
            key: self.key.clone(),
            set: self.default.map(|value| Set::new(Knob::sysctl(&self.key), value)),
            is_deadly: self.is_deadly,
        }))
    }
}

/// A setting that is too low, and its remedy.
pub struct Low {
    pub told: String,
    pub least: String,
    pub below: &'static str,
    pub key: String,
    /// `None` where the kernel's own value depends on the host.
    pub set: Option<Set>,
    pub is_deadly: bool,
}

/// `None` for a setting that could not be read, else what is wrong with it.
pub type FloorReading = Option<Option<Low>>;

/// One answer for all of them.
pub fn judge(read: Vec<FloorReading>, fine: impl Fn(usize) -> String) -> Checked {
    let read: Vec<Option<Low>> = read.into_iter().flatten().collect();
    let count = read.len();
    if count == 0 {
        return Err(Gap::Absent("none of these settings could be read".into()));
    }
    let low: Vec<Low> = read.into_iter().flatten().collect();
    if low.is_empty() {
        return Answer::fine(fine(count));
    }
    let words = |of: fn(&Low) -> &str| low.iter().map(of).collect::<Vec<_>>().join("; ");
    let found =
        Answer::found(words(|low| &low.told), words(|low| &low.least), words(|low| low.below));
    let severity = if low.iter().any(|low| low.is_deadly) { Fail } else { Warn };
    let by_hand: Vec<&str> =
        low.iter().filter(|low| low.set.is_none()).map(|low| low.key.as_str()).collect();
    let advice = format!("find what sets {}, and remove it", by_hand.join(", "));
    let is_by_hand = !by_hand.is_empty();
    let found = found.severity(severity).changes(low.into_iter().filter_map(|low| low.set));
    if is_by_hand { found.advice(advice) } else { found }
}

/// The [`Floor`]s judged on this host; settings of other kernels are left out.
pub fn read(facts: &HostFacts, floors: &'static [Floor]) -> Vec<FloorReading> {
    floors.iter().filter(|floor| floor.counts(facts)).map(|floor| floor.read(facts)).collect()
}
