//! A finding as it is printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Counted;
use crate::knob::Set;
use crate::ranges::{self, Range};
use crate::rule::Area;
use crate::weight::{Magnitude, Severity};

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
    /// The rule, and the device where it is about one.
    pub(crate) fn subject(&self) -> String {
        self.device.as_ref().map_or_else(|| self.id.clone(), |dev| format!("{} of {dev}", self.id))
    }

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

/// A finding that is suppressed, as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suppressed {
    /// What would have been reported.
    pub finding: Finding,
    /// Why it is not.
    pub reason: String,
    /// Until when, as `YYYY-MM-DD`.
    pub until: String,
}
