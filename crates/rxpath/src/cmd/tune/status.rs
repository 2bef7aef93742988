//! `rxpath tune status`.

use clap::Args;
use rxpath_core::Envelope;
use rxpath_host::detached::boottime_ns;
use rxpath_host::journal::Contents;
use rxpath_host::owner::boot_id;
use rxpath_tune::store::Listed;
use serde::Serialize;
use serde_json::json;

use super::StateArgs;
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::output::format::FormatArgs;

/// Options of `rxpath tune status`.
#[derive(Debug, Args)]
pub struct StatusCommand {
    /// List finished journals too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// One journal.
#[derive(Debug, Serialize)]
struct Shown {
    journal: u32,
    state: String,
    settings: Vec<String>,
}

impl StatusCommand {
    /// Lists.
    pub fn run(self) -> Outcome {
        let boot = boot_id()?;
        let mut shown = Vec::new();
        for one in self.state.store().list()?.iter().filter(|one| self.all || one.is_open()) {
            shown.push(self.show(one, &boot)?);
        }
        if self.format.is_json() {
            let settings = json!({ "all": self.all, "state_dir": self.state.state_dir });
            output::json(&Envelope::new("tune-status", settings, &shown, Vec::new()))?;
            return Ok(Exit::Done);
        }
        for one in &shown {
            output::line(&format!("journal {}: {}", one.journal, one.state))?;
            for setting in &one.settings {
                output::line(&format!("  {setting}"))?;
            }
        }
        if shown.is_empty() {
            output::line("nothing is changed")?;
        }
        Ok(Exit::Done)
    }

    fn show(&self, one: &Listed, boot: &str) -> anyhow::Result<Shown> {
        let (state, settings) = match &one.contents {
            Err(error) => (format!("can't be read: {error}"), Vec::new()),
            Ok(contents) => {
                let open = contents.entries.iter().filter(|entry| self.all || !entry.undone);
                let told = open.map(|entry| format!("{} {}", entry.target, entry.asked));
                (state(contents, boot)?, told.collect())
            }
        };
        Ok(Shown { journal: one.id, state, settings })
    }
}

fn state(contents: &Contents, boot: &str) -> anyhow::Result<String> {
    if !contents.is_open() {
        return Ok("finished".into());
    }
    if contents.boot_id != boot {
        return Ok("of an earlier boot: the restart has undone it".into());
    }
    let Some(watch) = contents.watch.filter(|_| !contents.confirmed) else {
        return Ok("in force".into());
    };
    let left = watch.deadline_ns.saturating_sub(boottime_ns()?) / 1_000_000_000;
    Ok(if watch.process.is_alive() {
        format!("in force, undone in {left} s unless confirmed")
    } else {
        "in force, not confirmed, and the process that would undo it is dead: undo it by hand"
            .into()
    })
}
