//! `rxpath cleanup`: removes what killed runs left, and nothing else.

use rxpath_host::lab::owner::{Removed, cleanup};

use crate::cmd::prelude::*;
use crate::output::line;

/// Options of `rxpath cleanup`.
#[derive(Debug, Args)]
pub struct CleanupCommand {
    #[command(flatten)]
    format: FormatArgs,
}

impl CleanupCommand {
    /// Removes and reports.
    pub fn run(self) -> Outcome {
        let removed = cleanup().map_err(|error| {
            Failure::new(Exit::Cannot, error).hint("namespaces belong to root: run it as root")
        })?;
        if self.format.is_json() {
            print_json(&removed)?;
        } else {
            print_text(&removed)?;
        }
        Ok(if removed.failed.is_empty() { Exit::Done } else { Exit::Partial })
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

fn print_json(removed: &Removed) -> anyhow::Result<()> {
    let warning = |(what, error): &(String, rxpath_host::HostError)| {
        Warning::new("not-removed", format!("{what}: {error}"))
    };
    let result = Cleaned {
        runs: removed.runs.clone(),
        removed: removed.things.clone(),
        alive: removed.alive.clone(),
    };
    let warnings = removed.failed.iter().map(warning).collect();
    output::json(&Envelope::new("cleanup", json!({}), result, warnings))
}

fn print_text(removed: &Removed) -> anyhow::Result<()> {
    for thing in &removed.things {
        line(&format!("removed {thing}"))?;
    }
    for run in &removed.alive {
        line(&format!("left alone: run {run} is still going on"))?;
    }
    for (what, error) in &removed.failed {
        crate::note!("rxpath: {what}: {error}");
    }
    if removed.things.is_empty() && removed.failed.is_empty() {
        line("nothing to remove")?;
    }
    Ok(())
}
