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
    /// Observed, expected, and why in one line.
    pub fn new(
        observed: impl Into<String>,
        expected: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            observed: observed.into(),
            expected: expected.into(),
            why: why.into(),
            ..Self::default()
        }
    }

    /// Adds a change.
    #[must_use]
    pub fn change(mut self, set: Set) -> Self {
        self.changes.push(set);
        self
    }

    /// Adds changes.
    #[must_use]
    pub fn changes(mut self, sets: impl IntoIterator<Item = Set>) -> Self {
        self.changes.extend(sets);
        self
    }

    /// Says what to do where no knob does it.
    #[must_use]
    pub fn advice(mut self, text: impl Into<String>) -> Self {
        self.advice = Some(text.into());
        self
    }

    /// Sets the severity of this case.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// Sets the size of the effect in this case.
    #[must_use]
    pub fn size(mut self, size: Magnitude) -> Self {
        self.size = Some(size);
        self
    }

    /// Says that the finding rests on this counter.
    ///
    /// Only a counter that rose between two readings asks for a change. What is known to be old is no more than
    /// `info`, and what was read once no more than `warn`.
    #[must_use]
    pub(crate) fn rests_on(mut self, count: Count, watched: &Watched) -> Self {
        self.counted = Some(watched.counted(count));
        let evidence = count.evidence();
        self.at_most = match evidence {
            Evidence::Now => return self,
            Evidence::Unknown => Some(Severity::Warn),
            Evidence::Old | Evidence::Never => Some(Severity::Info),
        };
        self.changes.clear();
        self.advice = evidence.remedy();
        if evidence == Evidence::Old {
            self.size = Some(Magnitude::Unmeasured);
        }
        self
    }

    /// As a rule's answer.
    pub fn answer(self) -> Checked {
        Ok(Answer::Found(Box::new(self)))
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
