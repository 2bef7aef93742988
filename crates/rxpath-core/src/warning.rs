//! Warnings with a stable id for programs, and a text and remedy for users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning that affects how far a result can be trusted.
///
/// Shown as `warning: TEXT (CAUSE); REMEDY` and as an object in every `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable id in kebab case, for example `reuseport-imbalance`.
    pub code: String,
    /// The observation, with its numbers.
    pub text: String,
    /// Why it happens, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cure: Option<String>,
}

impl Warning {
    /// A warning without cause and remedy.
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
