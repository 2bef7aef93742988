//! What a rule would change: a setting, and the value that it should get.

use std::fmt;

use rxpath_host::Knob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting and the value that it should get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Set {
    /// What: the name that `rxpath tune plan --set` takes.
    #[schemars(with = "String")]
    pub knob: Knob,
    /// To what, in the words that the setting reads back.
    pub value: String,
}

impl Set {
    /// `knob` to `value`.
    pub fn new(knob: Knob, value: impl ToString) -> Self {
        Self { knob, value: value.to_string() }
    }

    /// `knob` on or off.
    pub fn switch(knob: Knob, on: bool) -> Self {
        Self::new(knob, if on { "on" } else { "off" })
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.knob, self.value)
    }
}
