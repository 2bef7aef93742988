//! Probes that did not load at the start. Loading takes capabilities, which an exporter gives up then, so that it does not
//! try again.

use nix::libc;
use rxpath_core::Warning;
use rxpath_host::HostError;
use rxpath_record::watch::WatchFrame;

/// A probe that did not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// What is not known without it, as gaps name it.
    pub what: &'static str,
    /// The kernel's words.
    pub why: String,
    /// What it needs: [`Unloaded::RESTART`], [`Unloaded::PRIVILEGE`] or [`Unloaded::KERNEL`].
    pub needs: &'static str,
}

impl Unloaded {
    /// Another start: memory or descriptors were short, the kernel was busy, or another exporter had the place.
    pub const RESTART: &'static str = "restart";
    /// Capabilities, and another start.
    pub const PRIVILEGE: &'static str = "privilege";
    /// Another kernel, configuration, container or build: no start with these has it.
    pub const KERNEL: &'static str = "kernel";

    pub(crate) fn of(what: &'static str, error: &HostError) -> Self {
        let needs = match error {
            HostError::Denied { .. }
            | HostError::Kernel { errno: libc::EPERM | libc::EACCES, .. } => Self::PRIVILEGE,
            error if error.is_passing() => Self::RESTART,
            _ => Self::KERNEL,
        };
        Self { what, why: error.to_string(), needs }
    }

    /// All of them, because another program measures with its own.
    pub fn taken(why: &str) -> Self {
        Self { what: WatchFrame::ALL_PROBES, why: why.to_owned(), needs: Self::RESTART }
    }

    /// The gap of a frame.
    pub(super) fn gap(&self) -> (String, String) {
        (self.what.to_owned(), self.why.clone())
    }

    /// For the log of a program that goes on without it.
    pub fn warning(&self) -> Warning {
        let text = format!("{} not measured: {}", self.what, self.why);
        Warning::new("probe-not-loaded", text).cure(self.remedy())
    }

    /// What would have it measured.
    pub fn remedy(&self) -> &'static str {
        match self.needs {
            Self::RESTART => "start it again later: it does not try again",
            Self::PRIVILEGE => "start it again with these rights: it does not try again",
            _ => {
                "this kernel, its configuration, this container or this build does not have it: a restart alone does not help"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_load_says_whether_a_restart_may_help() {
        let denied = HostError::Denied { what: "load".into(), capability: "CAP_BPF".into() };
        let refused = HostError::Unsupported { what: "load".into(), needs: "BTF".into() };
        for (error, needs) in [
            (denied, Unloaded::PRIVILEGE),
            (HostError::kernel("load", libc::EPERM), Unloaded::PRIVILEGE),
            (HostError::kernel("load", libc::ENOMEM), Unloaded::RESTART),
            (HostError::kernel("load", libc::EAGAIN), Unloaded::RESTART),
            (HostError::kernel("load", libc::EINVAL), Unloaded::KERNEL),
            (refused, Unloaded::KERNEL),
        ] {
            let unloaded = Unloaded::of("drops by reason", &error);
            assert_eq!(unloaded.needs, needs, "{error}");
            let said = unloaded.warning().to_string();
            assert!(said.contains(&error.to_string()) && said.contains("; "), "{said}");
        }
    }
}
