//! What can go wrong in a lab, by what the caller can do about it.

use std::path::PathBuf;

use thiserror::Error;

/// An error of the lab.
#[derive(Debug, Error)]
pub enum LabError {
    /// The host refused or lacks something.
    #[error(transparent)]
    Host(#[from] rxpath_host::HostError),
    /// The run directory could not be written.
    #[error(transparent)]
    Record(#[from] rxpath_record::run::RunError),
    /// Something needed is not there; nothing was started.
    #[error("{what}")]
    CannotRun {
        /// What is missing and why it is needed.
        what: String,
        /// What works without it.
        hint: String,
    },
    /// A workload ended before its stop order.
    #[error("{program} died during {phase}: {how}{}", quoted(.last_words))]
    Died {
        /// `serve` or `load`.
        program: &'static str,
        /// Phase of the trial.
        phase: &'static str,
        /// Exit code or signal, in words.
        how: String,
        /// Its exit code, when it ended by itself.
        code: Option<i32>,
        /// What it last printed.
        last_words: String,
    },
    /// A workload did not answer in time.
    #[error("{program} did not reach {what} within {after_s} s{}", quoted(.last_words))]
    Silent {
        /// `serve` or `load`.
        program: &'static str,
        /// What was waited for.
        what: &'static str,
        /// The limit.
        after_s: f64,
        /// What it last printed.
        last_words: String,
    },
    /// A file operation failed.
    #[error("cannot {op}: {source}")]
    Io {
        /// The operation, with its object.
        op: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A host of the experiment reports an error.
    #[error("{host}: {text}")]
    OnHost {
        /// Its alias.
        host: String,
        /// What it reports.
        text: String,
        /// What it says to do about it; empty where it knows nothing.
        hint: String,
    },
    /// The hosts cannot run a variant; nothing of it is left on them, and others may run.
    #[error("{why}")]
    NotAvailable {
        /// The host, and what it refuses or what is wrong with the path.
        why: String,
    },
    /// A host of the experiment does not answer any more.
    #[error("{host} was lost: {why}")]
    Lost {
        /// Its alias.
        host: String,
        /// How that is known.
        why: String,
        /// What its connection said last; it may name the host, so a run directory does not keep it.
        last_words: String,
    },
    /// A host of the experiment did not answer any more in a trial, which ends the run.
    #[error("{host} {} in the {phase} phase ({why}); trial {trial} is void{undone}", became(*has_restarted))]
    LostInTrial {
        /// Its alias.
        host: String,
        /// Phase of the trial.
        phase: Box<str>,
        /// How that is known.
        why: String,
        /// Number of the trial, from 1.
        trial: u32,
        /// It answers again, and is of another boot.
        has_restarted: bool,
        /// On which hosts settings are undone, where there were some.
        undone: Box<str>,
        /// As for [`LabError::Lost`].
        last_words: String,
    },
    /// A signal asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The program contradicts itself.
    #[error("internal: {what}")]
    Internal {
        /// How.
        what: String,
    },
}

impl LabError {
    /// A contradiction of the program, in words.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal { what: what.into() }
    }

    /// Something that cannot be written as JSON.
    pub fn not_json(what: &str, error: &serde_json::Error) -> Self {
        Self::internal(format!("{what} cannot be written as JSON: {error}"))
    }

    /// A fault of a host for which there is no hint.
    pub fn on_host(host: &str, text: impl Into<String>) -> Self {
        Self::OnHost { host: host.to_owned(), text: text.into(), hint: String::new() }
    }

    /// An I/O error with the operation that met it.
    pub fn io(op: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { op: op.into(), source }
    }

    /// What to do about it; empty where nothing is known.
    pub fn hint(&self) -> &str {
        match self {
            Self::CannotRun { hint, .. } | Self::OnHost { hint, .. } => hint,
            _ => "",
        }
    }

    /// The loss of a host with the trial that it ended, whose number is from 1, and with what `after` finds for its alias;
    /// another error as it is.
    #[must_use]
    pub fn in_trial(self, phase: &str, trial: u32, after: impl FnOnce(&str) -> AfterLoss) -> Self {
        match self {
            Self::Lost { host, why, last_words } => {
                let AfterLoss { has_restarted, undone } = after(&host);
                let (phase, undone) = (phase.into(), undone.into());
                Self::LostInTrial { host, phase, why, trial, has_restarted, undone, last_words }
            }
            other => other,
        }
    }
}

/// What is known after a host was lost in a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AfterLoss {
    /// It answers again, and is of another boot.
    pub has_restarted: bool,
    /// On which hosts settings are undone, in words that follow a sentence; empty where there were none.
    pub undone: String,
}

/// What cannot be run, and what to do about it: empty where nothing is known.
pub(crate) fn cannot(what: impl Into<String>, hint: impl Into<String>) -> LabError {
    LabError::CannotRun { what: what.into(), hint: hint.into() }
}

/// What is wrong, and what to do about it where that is known, on one line.
pub(crate) fn with_hint(text: String, hint: &str) -> String {
    if hint.is_empty() { text } else { format!("{text}; {hint}") }
}

fn became(has_restarted: bool) -> &'static str {
    if has_restarted { "restarted" } else { "was lost" }
}

fn quoted(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; it said: {words}") }
}
