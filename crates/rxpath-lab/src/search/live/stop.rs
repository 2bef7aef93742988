//! Why a search on real traffic ends early.

use rxpath_host::HostError;
use rxpath_tune::switch::SwitchError;

/// Why a search on real traffic ends early.
#[derive(Debug)]
pub enum Stop {
    /// A signal.
    Signal(i32),
    /// The settings are not as this program made them.
    Switch(SwitchError),
    /// This host can't be read.
    Host(HostError),
    /// So many slices in a row say nothing of the settings.
    Idle {
        /// How many.
        slices: usize,
        /// Why the last one does not.
        why: String,
    },
    /// Candidates that can be made alone can't be made together.
    NotTogether {
        /// The candidates.
        names: String,
        /// Why not.
        why: String,
    },
    /// The user's ssh session stays cut off with the settings undone: how, in words.
    Cut(String),
    /// The device is not there.
    Gone(String),
    /// What is no setting of this host: why, in words.
    NoSetting(String),
    /// It could not be waited for a window.
    Wait(std::io::Error),
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
        Self::Wait(error)
    }
}
