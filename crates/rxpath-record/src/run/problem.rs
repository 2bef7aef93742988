//! What can go wrong with a run directory, while writing and while reading.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A write that failed, or a directory that is no run at all.
#[derive(Debug, Error)]
pub enum RunError {
    /// No space left, or over the quota.
    #[error("{}: the disk is full: {kept}", path.display())]
    Full {
        /// The file that was written.
        path: PathBuf,
        /// What of the run is on disk.
        kept: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The directory or file can't be written.
    #[error("{}: not writable; give a directory of your own with --out", path.display())]
    ReadOnly {
        /// What was written.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A run of this name is there already.
    #[error("{}: exists already; a run never writes into another one", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A run needs a directory, and this is something else.
    #[error("{}: no directory; a run is kept in one", path.display())]
    NoDirectory {
        /// What is there.
        path: PathBuf,
    },
    /// Nothing of a run is there.
    #[error("{}: {why}; expected a run directory with manifest.json or events.jsonl", path.display())]
    NotARun {
        /// What was to be read.
        path: PathBuf,
        /// What is there instead.
        why: String,
    },
    /// A value that JSON can't hold.
    #[error("{}: cannot be written as JSON", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Which value.
        source: serde_json::Error,
    },
    /// Any other failed operation.
    #[error("{}: cannot {op}", path.display())]
    Io {
        /// `write`, `sync`, `rename`, `read`.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl RunError {
    /// The kind of failure that `source` is; `kept` says what remains when the disk is full.
    pub(super) fn of(
        op: &'static str,
        path: &Path,
        kept: impl FnOnce() -> String,
        source: io::Error,
    ) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { path, kept: kept(), source },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { path, source }
            }
            io::ErrorKind::NotADirectory => Self::NoDirectory { path },
            io::ErrorKind::AlreadyExists if op == "create" && !path.is_dir() => {
                Self::NoDirectory { path }
            }
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::Io { op, path, source },
        }
    }
}

/// Something in a run that could not be read as it stands. The rest was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProblem {
    /// The file, relative to the run directory.
    pub file: String,
    /// The line, from 1, where one is concerned.
    pub line: Option<u64>,
    /// What is wrong, and what was done about it.
    pub text: String,
}

impl RunProblem {
    pub(super) fn new(file: &str, line: Option<u64>, text: impl Into<String>) -> Self {
        Self { file: file.into(), line, text: text.into() }
    }
}

impl fmt::Display for RunProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.text)
    }
}
