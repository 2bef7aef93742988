//! `rxpath tune confirm`.

use rxpath_host::write::journal::{Contents, Journal};
use rxpath_tune::store::{Store, StoredJournal};

use super::{StateArgs, no_journal};
use crate::cmd::prelude::*;

/// Options of `rxpath tune confirm`.
#[derive(Debug, Args)]
pub struct ConfirmCommand {
    /// Number of the journal; without it, the journal that waits for a confirmation
    id: Option<u32>,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Confirmed {
    /// Number of the journal.
    pub journal: u32,
    /// Whether it had been confirmed before.
    pub already: bool,
}

/// Its changes are in force, and a process waits for the confirmation.
fn waits(contents: &Contents) -> bool {
    contents.watch.is_some() && !contents.confirmed && contents.is_open()
}

/// Its changes were undone for lack of a confirmation.
fn came_too_late(contents: &Contents) -> bool {
    let undone = contents.entries.iter().any(|entry| entry.undone);
    contents.watch.is_some() && !contents.confirmed && !contents.is_open() && undone
}

impl ConfirmCommand {
    /// Confirms.
    pub fn run(self) -> Outcome {
        if !self.state.is_there() {
            return Err(self.id.map_or_else(nothing, no_journal));
        }
        let (store, _lock) = self.state.locked()?;
        let listed = store.list()?;
        let id = self.id.map_or_else(|| the_one_that_waits(&store, &listed), Ok)?;
        let Some(one) = listed.iter().find(|one| one.id == id) else {
            return Err(no_journal(id));
        };
        let already = match &one.contents {
            Ok(contents) if waits(contents) => false,
            Ok(contents) if contents.confirmed => true,
            Ok(contents) if came_too_late(contents) => return Err(too_late(&store, id)),
            _ => return Err(nothing()),
        };
        if !already {
            Journal::open(&store.path(id))?.confirm()?;
        }
        let result = Confirmed { journal: id, already };
        let answer = Envelope::new("tune-confirm", json!({ "id": self.id }), result, Vec::new());
        output::answer(self.format.is_json(), &answer, |it| {
            if it.already {
                format!("journal {id} is confirmed already\n")
            } else {
                format!("confirmed: journal {id} stays in force until you undo it\n")
            }
        })?;
        Ok(Exit::Done)
    }
}

fn the_one_that_waits(store: &Store, listed: &[StoredJournal]) -> Result<u32, Failure> {
    let waiting = listed.iter().filter(|one| one.contents.as_ref().is_ok_and(waits));
    match waiting.map(|one| one.id).collect::<Vec<_>>().as_slice() {
        [id] => Ok(*id),
        [] => Err(match listed.last() {
            Some(StoredJournal { id, contents: Ok(contents) }) if came_too_late(contents) => {
                too_late(store, *id)
            }
            _ => nothing(),
        }),
        several => {
            let several: Vec<String> = several.iter().map(u32::to_string).collect();
            Err(Failure::usage("several journals wait for a confirmation")
                .hint(format!("name one: {}", several.join(", "))))
        }
    }
}

fn too_late(store: &Store, id: u32) -> Failure {
    let words = anyhow::anyhow!("too late: journal {id} was undone");
    Failure::new(Exit::Negative, words)
        .hint(format!("{} lists what was undone", store.log(id).display()))
}

fn nothing() -> Failure {
    Failure::usage("nothing waits for a confirmation")
        .hint("`rxpath tune status` lists the journals")
}
