//! What a rule found, and what is printed of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Count, Counted, Evidence, Watched};
use crate::knob::Set;
use crate::ranges::{self, Range};
use crate::rule::{Answer, Area, Checked, Magnitude, Severity};

/// What a rule found, before it is known for which goal it was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// What is, with its numbers.
    pub observed: String,
    /// What should be.
    pub expected: String,
    /// Why, in one line.
    pub why: String,
    /// What to change at runtime, in order.
    pub changes: Vec<Set>,
    /// What to do where no setting does it, or in addition to it.
    pub advice: Option<String>,
    /// This case is more or less severe than the rule's weight says.
    pub severity: Option<Severity>,
    /// This case has a larger or smaller effect than the rule's.
    pub size: Option<Magnitude>,
    /// No more severe than this, whatever the goal.
    pub at_most: Option<Severity>,
    /// The counter that it rests on.
    pub counted: Option<Counted>,
}

impl Found {
    /// Only a counter that rose between two readings asks for a change. What is known to be old is no more than
    /// `info`, and what was read once no more than `warn`.
    fn rest_on(&mut self, count: Count, watched: &Watched) {
        self.counted = Some(watched.counted(count));
        let evidence = count.evidence();
        self.at_most = match evidence {
            Evidence::Now => return,
            Evidence::Unknown => Some(Severity::Warn),
            Evidence::Old | Evidence::Never => Some(Severity::Info),
        };
        self.changes.clear();
        self.advice = evidence.remedy();
        if evidence == Evidence::Old {
            self.size = Some(Magnitude::Unmeasured);
        }
    }
}

/// What a finding says in addition. Other answers and gaps stay as they are.
pub(crate) trait Details: Sized {
    /// Alters the finding.
    fn with(self, alter: impl FnOnce(&mut Found)) -> Self;

    /// Adds a change.
    fn change(self, set: Set) -> Self {
        self.with(|found| found.changes.push(set))
    }

    /// Adds changes.
    fn changes(self, sets: impl IntoIterator<Item = Set>) -> Self {
        self.with(|found| found.changes.extend(sets))
    }

    /// Says what to do where no knob does it.
    fn advice(self, text: impl Into<String>) -> Self {
        self.with(|found| found.advice = Some(text.into()))
    }

    /// Sets the severity of this case.
    fn severity(self, severity: Severity) -> Self {
        self.with(|found| found.severity = Some(severity))
    }

    /// Sets the size of the effect in this case.
    fn size(self, size: Magnitude) -> Self {
        self.with(|found| found.size = Some(size))
    }

    /// Says that the finding rests on this counter.
    fn rests_on(self, count: Count, watched: &Watched) -> Self {
        self.with(|found| found.rest_on(count, watched))
    }
}

impl Details for Checked {
    fn with(mut self, alter: impl FnOnce(&mut Found)) -> Self {
        if let Ok(Answer::Found(found)) = &mut self {
            alter(found);
        }
        self
    }
}

/// A finding as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule.
    pub id: String,
    /// The device, for rules about devices.
    pub device: Option<String>,
    /// Where on the path.
    pub area: Area,
    /// How bad, for the goal that was asked for.
    pub severity: Severity,
    /// What is.
    pub observed: String,
    /// What should be.
    pub expected: String,
    /// Why, in one line.
    pub why: String,
    /// How large the effect of the remedy is expected to be.
    pub effect_size: Magnitude,
    /// The expected effect with its figure and source, or that it is not known.
    pub effect: String,
    /// What to change at runtime.
    pub changes: Vec<Set>,
    /// What to do where no setting does it, or in addition to it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub advice: Option<String>,
    /// The counter that the finding rests on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub counted: Option<Counted>,
    /// The command that tells more.
    pub more: String,
}

impl Finding {
    /// What to change, with settings that differ in a number in one line.
    pub fn changes_in_lines(&self) -> Vec<String> {
        let names: Vec<(String, ())> =
            self.changes.iter().map(|set| (set.knob.to_string(), ())).collect();
        let values: Vec<String> = self.changes.iter().map(|set| set.value.clone()).collect();
        let one = |range: Range| {
            let own: Vec<&str> =
                values[range.first..][..range.count].iter().map(String::as_str).collect();
            format!("{} = {}", range.name, ranges::values(&own))
        };
        ranges::ranges(&names).into_iter().map(one).collect()
    }
}
