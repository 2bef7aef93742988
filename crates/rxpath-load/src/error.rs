//! Errors of a workload, grouped by what the caller can do about them.

use std::io::{self, ErrorKind};

use thiserror::Error;

/// An error of a workload.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The options contradict each other or cannot work: change them.
    #[error("{what}")]
    Usage {
        /// What is wrong, where, and what would be right.
        what: String,
        /// The way out.
        hint: String,
    },
    /// The address is not available: choose another or free it.
    #[error("{op} {addr}: {source}")]
    Address {
        /// The system call.
        op: &'static str,
        /// The address.
        addr: String,
        /// The kernel's answer.
        source: io::Error,
        /// The way out.
        hint: String,
    },
    /// Needs a privilege.
    #[error("{what}: not permitted, it needs {needs}")]
    Denied {
        /// What was refused.
        what: String,
        /// The capability.
        needs: &'static str,
    },
    /// This kernel cannot do it.
    #[error("{what}: this kernel does not support it ({source})")]
    Unsupported {
        /// What was asked.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// This host lacks what the engine needs.
    #[error("{what}: {source}")]
    Host {
        /// What needs it.
        what: String,
        /// What is missing.
        source: rxpath_host::HostError,
    },
    /// Any other refusal of the kernel.
    #[error("{op}: {source}")]
    Io {
        /// What was being done.
        op: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl LoadError {
    /// A usage error.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { what: what.into(), hint: hint.into() }
    }

    /// The kernel refused `op`.
    pub fn io(op: impl Into<String>, source: io::Error) -> Self {
        Self::Io { op: op.into(), source }
    }

    /// The kernel refused an option that no privilege gives: it needs another kernel.
    pub(crate) fn unsupported(what: &str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Unsupported { what: what.into(), source }
    }

    /// The kernel refused an option: it needs a privilege, or another kernel.
    pub(crate) fn of_option(what: &str) -> impl Fn(io::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::PermissionDenied => {
                Self::Denied { what: what.into(), needs: "CAP_NET_ADMIN" }
            }
            _ => Self::Unsupported { what: what.into(), source },
        }
    }

    /// Whether the user can fix it with another command line.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage { .. } | Self::Address { .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } | Self::Address { hint, .. } => {
                Some(hint.clone()).filter(|hint| !hint.is_empty())
            }
            Self::Denied { needs, .. } => Some(format!("run it as root or with {needs}")),
            Self::Unsupported { .. } | Self::Host { .. } | Self::Io { .. } => None,
        }
    }
}
