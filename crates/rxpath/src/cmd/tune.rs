//! `rxpath tune`: plan, apply, confirm, verify, undo, status, auto.

mod apply;
#[cfg(feature = "lab")]
pub mod auto;
mod confirm;
mod plan;
#[cfg_attr(not(feature = "lab"), path = "agent/predicted.rs")]
mod predicted;
#[cfg(all(test, feature = "lab"))]
mod schemas;
mod shown;
mod status;
mod undo;
mod verify;
mod watchdog;

pub use plan::persist_kinds;
#[cfg(all(test, feature = "lab"))]
pub use schemas::schemas;

use rxpath_host::HostError;
use rxpath_tune::store::{STATE_DIR, Store, TuneLock};

use crate::cmd::commands;
use crate::cmd::prelude::*;

/// How long a command waits for another command that changes the host.
const PATIENCE: Duration = Duration::from_secs(2);

commands! {
    /// `rxpath tune …`
    pub enum TuneCommand {
        /// Show what would be changed, old and new value, and the cost
        Plan(plan::PlanCommand),
        /// Carry out a plan: journaled, read back, can be undone
        Apply(apply::ApplyCommand),
        /// Keep changes that were applied with --confirm-within
        Confirm(confirm::ConfirmCommand),
        /// Check whether the changed settings still have the values set
        Verify(verify::VerifyCommand),
        /// Restore the old values, last change first
        Undo(undo::UndoCommand),
        /// Find the settings that help a scenario or this host's own traffic, and show that they do
        #[cfg(feature = "lab")]
        Auto(Box<auto::AutoCommand>),
        /// List the changes that may be in force
        Status(status::StatusCommand),
        #[command(hide = true)]
        Watchdog(watchdog::WatchdogCommand),
    }
}

/// The directory of the journals.
#[derive(Clone, Debug, Default, Args)]
struct StateArgs {
    /// Keep the journals of changes in this directory
    #[arg(long, value_name = "DIR", default_value = STATE_DIR)]
    state_dir: PathBuf,
}

impl StateArgs {
    /// Whether there is such a directory: without it, no change was ever journaled there.
    fn is_there(&self) -> bool {
        self.state_dir.is_dir()
    }

    fn store(&self) -> Store {
        Store::at(&self.state_dir)
    }

    /// The journals, and the lock for changing the host.
    fn locked(&self) -> Result<(Store, TuneLock), Failure> {
        let store = Store::open(&self.state_dir).map_err(no_state)?;
        let lock = store.lock(PATIENCE).map_err(taken)?;
        Ok((store, lock))
    }
}

fn taken(error: HostError) -> Failure {
    match error {
        HostError::Kernel { .. } => Failure::new(Exit::Cannot, error)
            .hint("wait until the other command has ended, then try again"),
        other => no_state(other),
    }
}

/// The refusal of a number that no journal has.
fn no_journal(id: u32) -> Failure {
    Failure::usage(format!("there is no journal {id}")).hint("`rxpath tune status` lists them")
}

/// A journal that cannot be read; all commands report it with the same words and end with [`Exit::Cannot`].
fn unreadable(id: u32, error: &HostError) -> String {
    format!("journal {id}: can't be read: {error}")
}

fn no_state(error: HostError) -> Failure {
    let needs_root = matches!(error, HostError::Denied { .. });
    let failure = Failure::new(Exit::Cannot, error);
    if needs_root {
        failure.hint("only root can make and undo changes; `rxpath tune plan` works without root")
    } else {
        failure.hint("nothing is changed without a journal; --state-dir sets another directory")
    }
}
