//! Warnings that a program can tell apart and a person can act on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something the reader of a result must know before trusting it.
///
/// Shown as `warning: TEXT (CAUSE). CURE` and as an object in every `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable id in kebab case, for example `reuseport-imbalance`.
    pub code: String,
    /// What was seen, with its numbers.
    pub text: String,
    /// Why it happens, when that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cure: Option<String>,
}

impl Warning {
    /// A warning without cause and cure.
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into(), cause: None, cure: None }
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        if let Some(cause) = &self.cause {
            write!(f, " ({cause})")?;
        }
        if let Some(remedy) = &self.cure {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}
