//! How a command ends: its exit status, and the format of errors.

use std::fmt;
use std::process::ExitCode;

/// The exit statuses, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done; for a comparison: same or better.
    Done,
    /// Done, and the verdict is negative.
    Negative,
    /// Bad usage, address or file, or a port in use.
    Usage,
    /// Cannot be measured here: no privilege, kernel feature or device.
    Cannot,
    /// Inconclusive or too noisy.
    Inconclusive,
    /// Some hosts, trials or changes failed.
    Partial,
    /// The exit status of a command that ran on the user's behalf.
    Command(u8),
    /// Stopped by this signal (2 = SIGINT: 130, 15 = SIGTERM: 143).
    Signal(i32),
}

impl Exit {
    /// Every status with its meaning: one table for help, man pages and `explain`.
    pub const STATUSES: [(u8, &'static str); 8] = [
        (0, "done; for a comparison: the same or better"),
        (1, "done, with a negative verdict: worse, drifted, or a finding at or above --fail-on"),
        (2, "bad usage, address or file, a file that cannot be written, or a port in use"),
        (3, "cannot measure here: a privilege, a kernel feature or a device is missing"),
        (4, "inconclusive, or too noisy to conclude"),
        (5, "partial: some trials, changes or parts of the answer are missing"),
        (130, "interrupted (SIGINT); results up to that point are printed or kept"),
        (143, "terminated (SIGTERM); results up to that point are printed or kept"),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Negative => 1,
            Exit::Usage => 2,
            Exit::Cannot => 3,
            Exit::Inconclusive => 4,
            Exit::Partial => 5,
            Exit::Command(status) => status,
            Exit::Signal(number) => 128 + (number & 0x7f) as u8,
        })
    }
}

/// Why a command failed, with its exit status and, if there is one, a hint.
#[derive(Debug)]
pub struct Failure {
    /// The exit status that it ends with.
    pub exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

/// The result of every command.
pub type Outcome = Result<Exit, Failure>;

impl Failure {
    /// A failure with this exit status.
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), hint: None }
    }

    /// A usage error in one line.
    pub fn usage(what: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, anyhow::anyhow!("{what}"))
    }

    /// A usage error with its causes.
    pub fn usage_of(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// What cannot be measured or done here, in one line.
    pub fn cannot(what: impl fmt::Display) -> Self {
        Self::new(Exit::Cannot, anyhow::anyhow!("{what}"))
    }

    /// Adds the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the hint where there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The causes in one line; a cause already printed by its wrapper is not repeated.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for cause in self.error.chain().map(ToString::to_string) {
            if line.is_empty() {
                line = cause;
            } else if !line.contains(&cause) {
                line = format!("{line}: {cause}");
            }
        }
        line
    }

    /// Prints `rxpath: a: b: c` and `hint: …` on stderr, and returns the exit status.
    ///
    /// A closed stdout is not a failure: nothing is printed, status 0.
    pub fn print(&self) -> Exit {
        if self.error.chain().any(<dyn std::error::Error + 'static>::is::<crate::output::Closed>) {
            return Exit::Done;
        }
        crate::note!("rxpath: {}", self.line());
        if let Some(hint) = &self.hint {
            crate::note!("hint: {hint}");
        }
        self.exit
    }
}

/// For results whose error is that of the user's words or files.
pub trait OrUsage<T> {
    /// The error as a usage error, with these words before its causes.
    fn or_usage(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrUsage<T> for Result<T, E> {
    fn or_usage(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| {
            let error: anyhow::Error = error.into();
            Failure::usage_of(error.context(what()))
        })
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(Exit::Cannot, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_chained_once() {
        let error = Err::<(), _>(anyhow::anyhow!("address in use"))
            .context("bind 127.0.0.1:9: address in use")
            .context("serve udp")
            .unwrap_err();
        let line = Failure::usage_of(error).line();
        assert_eq!(line, "serve udp: bind 127.0.0.1:9: address in use");
    }

    #[test]
    fn no_hint_leaves_the_one_that_is_there() {
        let failure = || Failure::usage("no").hint("first");
        assert_eq!(failure().maybe_hint(None::<String>).hint.as_deref(), Some("first"));
        assert_eq!(failure().maybe_hint(Some("second")).hint.as_deref(), Some("second"));
    }
}
