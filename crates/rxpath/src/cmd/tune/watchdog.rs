//! The process behind `tune apply --confirm-within`; not a command for users.

use clap::Args;
use rxpath_host::setter::HostSetter;
use rxpath_tune::watch::{Ended, stand_by};

use super::StateArgs;
use super::shown::ShownUndo;
use crate::exit::{Exit, Outcome};
use crate::output;

/// Options of the watchdog.
#[derive(Debug, Args)]
pub struct WatchdogCommand {
    /// Number of the journal
    #[arg(long)]
    journal: u32,
    #[command(flatten)]
    state: StateArgs,
}

impl WatchdogCommand {
    /// Waits, and undoes if there is no confirmation. It logs to its standard error.
    pub fn run(self) -> Outcome {
        let store = self.state.store();
        let mut setter = HostSetter::default();
        output::line("ready")?;
        match stand_by(&store, self.journal, &mut setter)? {
            Ended::Confirmed => crate::note!("confirmed"),
            Ended::Finished => crate::note!("no changes are in force any more"),
            Ended::Undone(undone) => {
                crate::note!("not confirmed in time: undone");
                for undo in &undone {
                    for line in ShownUndo::new(self.journal, undo).lines(false) {
                        crate::note!("{line}");
                    }
                }
            }
        }
        Ok(Exit::Done)
    }
}
