//! `rxpath tune confirm`.

use clap::Args;
use rxpath_host::journal::{Contents, Journal};
use rxpath_tune::store::Listed;

use super::StateArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;

/// Options of `rxpath tune confirm`.
#[derive(Debug, Args)]
pub struct ConfirmCommand {
    /// Number of the journal; without it the one that waits
    id: Option<u32>,
    #[command(flatten)]
    state: StateArgs,
}

impl ConfirmCommand {
    /// Confirms.
    pub fn run(self) -> Outcome {
        let (store, _lock) = self.state.locked()?;
        let listed = store.list()?;
        let waits = |contents: &Contents| {
            contents.watch.is_some() && !contents.confirmed && contents.is_open()
        };
        let id = self.id.map_or_else(|| the_one_that_waits(&listed, &waits), Ok)?;
        let Some(one) = listed.iter().find(|one| one.id == id) else {
            return Err(Failure::usage(format!("there is no journal {id}"))
                .hint("`rxpath tune status` lists them"));
        };
        match &one.contents {
            Ok(contents) if waits(contents) => {}
            Ok(contents) if contents.confirmed => {
                output::line(&format!("journal {id} is confirmed already"))?;
                return Ok(Exit::Done);
            }
            Ok(contents) if contents.watch.is_some() => {
                return Err(Failure::new(
                    Exit::Negative,
                    anyhow::anyhow!("too late: journal {id} was undone"),
                )
                .hint(format!("what was undone is in {}", store.log(id).display())));
            }
            _ => return Err(nothing()),
        }
        Journal::open(&store.path(id))?.confirm()?;
        output::line(&format!("confirmed: journal {id} stays until it is undone by hand"))?;
        Ok(Exit::Done)
    }
}

fn the_one_that_waits(
    listed: &[Listed],
    waits: &dyn Fn(&Contents) -> bool,
) -> Result<u32, Failure> {
    let waiting = listed.iter().filter(|one| one.contents.as_ref().is_ok_and(waits));
    match waiting.map(|one| one.id).collect::<Vec<_>>().as_slice() {
        [id] => Ok(*id),
        [] => Err(nothing()),
        several => {
            let several: Vec<String> = several.iter().map(u32::to_string).collect();
            Err(Failure::usage("several journals wait for a confirmation")
                .hint(format!("name one: {}", several.join(", "))))
        }
    }
}

fn nothing() -> Failure {
    Failure::usage("nothing waits for a confirmation")
        .hint("`rxpath tune status` lists the journals")
}
