//! How the command ends if a search on real traffic ends early.

use rxpath_lab::search::live::stop::Stop as SearchStop;
use rxpath_tune::switch::SwitchError;

use crate::exit::{Exit, Failure, Outcome};

/// Why a search on real traffic ends early.
#[derive(Debug)]
pub enum LiveSearchStop {
    /// In the search.
    Search(SearchStop),
    /// What was asked for can't be done.
    Refused(Failure),
}

impl<E: Into<SearchStop>> From<E> for LiveSearchStop {
    fn from(stop: E) -> Self {
        Self::Search(stop.into())
    }
}

impl From<Failure> for LiveSearchStop {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl LiveSearchStop {
    /// How the command ends, with the journal of the search if there is one, and whether changes on it are in force.
    pub fn outcome(self, journal: Option<(u32, bool)>) -> Outcome {
        let in_force = journal.filter(|(_, is_open)| *is_open);
        let undone = match in_force {
            Some((id, _)) => format!("not all is undone: rxpath tune undo {id}"),
            None => "the search's own changes are undone; nothing is kept".into(),
        };
        let failure = |exit, text: String| Failure::new(exit, anyhow::anyhow!(text));
        let stop = match self {
            Self::Search(stop) => stop,
            Self::Refused(failure) => return Err(failure),
        };
        Err(match stop {
            SearchStop::Signal(signal) => {
                crate::note!("rxpath: interrupted: {undone}");
                return Ok(Exit::Signal(signal));
            }
            SearchStop::Switch(error @ SwitchError::Foreign { .. }) => {
                failure(Exit::Partial, format!("{error}; {undone}"))
                    .hint("end the other program, or leave its settings out with --settings")
            }
            SearchStop::Switch(error) => failure(Exit::Partial, format!("{error}; {undone}")),
            SearchStop::Host(error) if journal.is_some() => {
                failure(Exit::Partial, format!("{error}; {undone}"))
            }
            SearchStop::Host(error) => Failure::new(Exit::Cannot, error),
            SearchStop::Idle { slices, why } => failure(
                Exit::Inconclusive,
                format!("{slices} slices in a row say nothing, whatever is set (the last: {why}); {undone}"),
            )
            .hint("search when the traffic is steadier, or with longer slices"),
            SearchStop::NotTogether { names, why } => {
                failure(Exit::Partial, format!("{names} can't be set together: {why}; {undone}"))
            }
            SearchStop::Cut(how) => failure(Exit::Partial, format!("{how}; {undone}"))
                .hint("look how the settings that were on change routes (report, breaches)"),
            SearchStop::Gone(device) if journal.is_some() => failure(
                Exit::Partial,
                format!("{device} is gone, and what was set on it too; nothing is kept"),
            )
            .hint("rxpath tune undo --forget closes the journal"),
            SearchStop::Gone(device) => failure(Exit::Cannot, format!("there is no device {device} here")),
            SearchStop::NoSetting(why) => Failure::usage(why),
            SearchStop::Wait(error) => error.into(),
        })
    }
}
