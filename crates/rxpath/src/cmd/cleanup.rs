//! `rxpath cleanup`: removes what killed runs left, and nothing else.

use rxpath_host::HostError;
use rxpath_host::lab::owner::{Removed, cleanup};

use crate::cmd::prelude::*;

/// Options of `rxpath cleanup`.
#[derive(Debug, Args)]
pub struct CleanupCommand {
    #[command(flatten)]
    format: FormatArgs,
}

impl CleanupCommand {
    /// Removes and reports.
    pub fn run(self) -> Outcome {
        let Removed { runs, things: removed, alive, failed } = cleanup().map_err(|error| {
            Failure::new(Exit::Cannot, error).hint("namespaces belong to root: run it as root")
        })?;
        let cleaned = Cleaned { runs, removed, alive };
        if self.format.is_json() {
            let warning = |(what, error): &(String, HostError)| {
                Warning::new("not-removed", format!("{what}: {error}"))
            };
            let warnings = failed.iter().map(warning).collect();
            output::json(&Envelope::new("cleanup", json!({}), cleaned, warnings))?;
        } else {
            output::text(&text(&cleaned, failed.is_empty()))?;
            for (what, error) in &failed {
                crate::note!("rxpath: {what}: {error}");
            }
        }
        Ok(if failed.is_empty() { Exit::Done } else { Exit::Partial })
    }
}

/// The `result` object.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cleaned {
    /// Dead runs that left something behind.
    runs: Vec<String>,
    /// What was removed.
    removed: Vec<String>,
    /// Runs that are still active: left alone.
    alive: Vec<String>,
}

fn text(cleaned: &Cleaned, is_whole: bool) -> String {
    let removed = cleaned.removed.iter().map(|thing| format!("removed {thing}\n"));
    let alive = cleaned.alive.iter();
    let alive = alive.map(|run| format!("left alone: run {run} is still going on\n"));
    let nothing = (is_whole && cleaned.removed.is_empty()).then(|| "nothing to remove\n".into());
    removed.chain(alive).chain(nothing).collect()
}
