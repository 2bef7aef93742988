//! `rxpath explain ID`: all that is known about one rule. Offline, and the same on every host.

use rxpath_core::Envelope;
use rxpath_tune::{Rule, rules};
use serde::Serialize;

use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::output::explain as print;
use crate::output::format::FormatArgs;

/// `rxpath explain`
#[derive(Debug, clap::Args)]
pub struct ExplainCommand {
    /// The rule; without it all are listed
    id: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
}

/// What was asked.
#[derive(Debug, Serialize)]
struct Settings {
    id: Option<String>,
}

impl ExplainCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let chosen: Vec<&Rule> = match &self.id {
            Some(id) => vec![rules::find(id).ok_or_else(|| unknown(id))?],
            None => rules::all().collect(),
        };
        if self.format.is_json() {
            let result: Vec<print::Explained> = chosen.iter().copied().map(print::of).collect();
            output::json(&Envelope::new("explain", Settings { id: self.id }, result, Vec::new()))?;
        } else if self.id.is_some() {
            output::text(&chosen.iter().map(|rule| print::page(rule)).collect::<String>())?;
        } else {
            output::text(&print::list(&chosen))?;
        }
        Ok(Exit::Done)
    }
}

/// The refusal, with the ids that are near.
fn unknown(id: &str) -> Failure {
    let near = print::near(id);
    let hint = if near.is_empty() {
        "`rxpath explain` lists all rules".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    Failure::usage(format!("explain {id}: no such rule")).hint(hint)
}
