//! Grades of noise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How quiet the machine was.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Grade {
    /// Quiet.
    #[default]
    A,
    /// Small disturbances.
    B,
    /// Disturbed; ratios are still meaningful.
    C,
    /// Too noisy to conclude.
    D,
}
