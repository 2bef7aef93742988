//! Why a search on real traffic ends early, and how the command ends then.

use rxpath_host::HostError;
use rxpath_tune::switch::SwitchError;

use crate::exit::{Exit, Failure, Outcome};

/// Why a search on real traffic ends early.
#[derive(Debug)]
pub enum Stop {
    /// A signal.
    Signal(i32),
    /// The settings are not as this program made them.
    Switch(SwitchError),
    /// This host can't be read.
    Host(HostError),
    /// So many slices in a row say nothing of the settings: why the last one does not.
    Idle { slices: usize, why: String },
    /// Candidates that can be made alone can't be made together.
    NotTogether { names: String, why: String },
    /// The user's ssh session stays cut off with the settings undone: how, in words.
    Cut(String),
    /// The device is not there.
    Gone(String),
    /// What was asked for can't be done.
    Refused(Failure),
}

impl From<SwitchError> for Stop {
    fn from(error: SwitchError) -> Self {
        Self::Switch(error)
    }
}

impl From<HostError> for Stop {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl Stop {
    /// How the command ends, with the journal of the search if there is one, and whether changes on it are in force.
    pub fn outcome(self, journal: Option<(u32, bool)>) -> Outcome {
        let in_force = journal.filter(|(_, is_open)| *is_open);
        let undone = match in_force {
            Some((id, _)) => format!("not all is undone: rxpath tune undo {id}"),
            None => "the search's own changes are undone; nothing is kept".into(),
        };
        let failure = |exit, text: String| Failure::new(exit, anyhow::anyhow!(text));
        Err(match self {
            Self::Signal(signal) => {
                crate::note!("rxpath: interrupted: {undone}");
                return Ok(Exit::Signal(signal));
            }
            Self::Switch(error @ SwitchError::Foreign { .. }) => {
                failure(Exit::Partial, format!("{error}; {undone}"))
                    .hint("end the other program, or leave its settings out with --settings")
            }
            Self::Switch(error) => failure(Exit::Partial, format!("{error}; {undone}")),
            Self::Host(error) if journal.is_some() => {
                failure(Exit::Partial, format!("{error}; {undone}"))
            }
            Self::Host(error) => Failure::new(Exit::Cannot, error),
            Self::Idle { slices, why } => failure(
                Exit::Inconclusive,
                format!("{slices} slices in a row say nothing, whatever is set (the last: {why}); {undone}"),
            )
            .hint("search when the traffic is steadier, or with longer slices"),
            Self::NotTogether { names, why } => {
                failure(Exit::Partial, format!("{names} can't be set together: {why}; {undone}"))
            }
            Self::Cut(how) => failure(Exit::Partial, format!("{how}; {undone}"))
                .hint("look how the settings that were on change routes (report, breaches)"),
            Self::Gone(device) if journal.is_some() => failure(
                Exit::Partial,
                format!("{device} is gone, and what was set on it too; nothing is kept"),
            )
            .hint("rxpath tune undo --forget closes the journal"),
            Self::Gone(device) => failure(Exit::Cannot, format!("there is no device {device} here")),
            Self::Refused(failure) => failure,
        })
    }
}
