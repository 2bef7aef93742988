//! What every file of commands needs.

pub use std::path::{Path, PathBuf};
pub use std::time::Duration;

pub use anyhow::Context;
pub use clap::Args;
pub use rxpath_core::{Envelope, Nanos, Warning};
pub use schemars::JsonSchema;
pub use serde::Serialize;
pub use serde_json::json;

pub use crate::exit::{Exit, Failure, OrUsage, Outcome};
pub use crate::interrupt::Interrupt;
pub(crate) use crate::output;
pub use crate::output::format::FormatArgs;
