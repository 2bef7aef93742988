//! An error of the lab as the end of a command: its exit status and a hint.

use rxpath_lab::LabError;
use rxpath_record::run::RunError;

use crate::exit::{Exit, Failure};

/// The exit status of an error of the lab.
pub fn status(error: &LabError) -> Exit {
    match error {
        LabError::CannotRun { .. }
        | LabError::NotAvailable { .. }
        | LabError::Host(_)
        | LabError::Start { .. } => Exit::Cannot,
        LabError::Record(
            RunError::ReadOnly { .. } | RunError::Exists { .. } | RunError::NoDirectory { .. },
        ) => Exit::Usage,
        // The run directory cannot be made there.
        LabError::Record(RunError::Io { op: "create", .. }) => Exit::Usage,
        // Our own workloads use the exit statuses of the command line if they cannot be set up.
        LabError::Died { phase: "set-up", code: Some(2), .. } => Exit::Usage,
        LabError::Died { phase: "set-up", code: Some(3), .. } => Exit::Cannot,
        _ => Exit::Partial,
    }
}

/// An error that is in no run directory, with a hint.
pub fn failure(error: LabError) -> Failure {
    let hint = Some(error.hint().to_owned()).filter(|hint| !hint.is_empty());
    Failure::new(status(&error), error).maybe_hint(hint)
}
