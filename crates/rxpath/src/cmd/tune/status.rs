//! `rxpath tune status`.

use clap::Args;
use rxpath_core::Envelope;
use rxpath_host::detached::boottime_ns;
use rxpath_host::journal::Contents;
use rxpath_tune::store::Listed;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::StateArgs;
use super::shown::short;
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct Status {
    /// Its number.
    journal: u32,
    #[serde(flatten)]
    standing: Standing,
    /// What it changed and did not undo.
    settings: Vec<Setting>,
}

/// How a journal stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
enum Standing {
    /// Its changes stay until somebody undoes them.
    InForce,
    /// Its changes are undone after this time unless somebody confirms them.
    Waits {
        /// **Unit** s.
        left_s: u64,
    },
    /// Nobody confirmed its changes, and the process that would undo them is dead.
    Unwatched,
    /// Written elsewhere: in another network namespace, or before a restart that has undone it.
    Elsewhere {
        /// Where.
        place: String,
    },
    /// All is undone, or given up.
    Finished,
    /// It can't be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

/// One setting of a journal.
#[derive(Debug, Serialize, JsonSchema)]
struct Setting {
    /// Its name when it was changed.
    set: String,
    /// The value before; of a group, all of it.
    before: String,
    /// The value asked for.
    asked: String,
}

impl StatusCommand {
    /// Lists.
    pub fn run(self) -> Outcome {
        let mut shown = Vec::new();
        for one in self.state.store().list()?.iter().filter(|one| self.all || one.is_open()) {
            shown.push(self.show(one)?);
        }
        if self.format.is_json() {
            let settings = json!({ "all": self.all, "state_dir": self.state.state_dir });
            output::json(&Envelope::new("tune-status", settings, &shown, Vec::new()))?;
            return Ok(Exit::Done);
        }
        for one in &shown {
            output::line(&format!("journal {}: {}", one.journal, words(&one.standing)))?;
            for Setting { set, before, asked } in &one.settings {
                output::line(&format!("  {set}: {} -> {}", short(before), short(asked)))?;
            }
        }
        if shown.is_empty() {
            output::line("nothing is changed")?;
        }
        Ok(Exit::Done)
    }

    fn show(&self, one: &Listed) -> anyhow::Result<Status> {
        let (standing, settings) = match &one.contents {
            Err(error) => (Standing::Unreadable { why: error.to_string() }, Vec::new()),
            Ok(contents) => (standing(contents)?, self.settings(contents)),
        };
        Ok(Status { journal: one.id, standing, settings })
    }

    fn settings(&self, contents: &Contents) -> Vec<Setting> {
        let open = contents.entries.iter().filter(|entry| self.all || !entry.undone);
        open.map(|entry| Setting {
            set: entry.target.to_string(),
            before: entry.target.as_far_as(&entry.before, &entry.asked),
            asked: entry.asked.clone(),
        })
        .collect()
    }
}

fn standing(contents: &Contents) -> anyhow::Result<Standing> {
    if !contents.is_open() {
        return Ok(Standing::Finished);
    }
    if let Some(place) = contents.elsewhere()? {
        return Ok(Standing::Elsewhere { place });
    }
    let Some(watch) = contents.watch.filter(|_| !contents.confirmed) else {
        return Ok(Standing::InForce);
    };
    let left_s = watch.deadline_ns.saturating_sub(boottime_ns()?) / 1_000_000_000;
    Ok(if watch.process.is_alive() { Standing::Waits { left_s } } else { Standing::Unwatched })
}

fn words(standing: &Standing) -> String {
    match standing {
        Standing::InForce => "in force".into(),
        Standing::Waits { left_s } => format!("in force, undone in {left_s} s unless confirmed"),
        Standing::Unwatched => {
            "in force, not confirmed, and the process that would undo it is dead: undo it by hand"
                .into()
        }
        Standing::Elsewhere { place } => format!("of {place}"),
        Standing::Finished => "finished".into(),
        Standing::Unreadable { why } => format!("can't be read: {why}"),
    }
}
