//! Which capabilities this process has, and what a lab is missing before it starts.

use std::path::Path;

use caps::{CapSet, Capability};

use crate::HostError;

/// One thing that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What: `CAP_NET_ADMIN`.
    pub what: String,
    /// What it is needed for.
    pub why: String,
}

/// Whether something can run here, apart from running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CanRun {
    /// What is missing; empty when it can run.
    pub missing: Vec<Missing>,
    /// What works without it.
    pub instead: String,
}

impl CanRun {
    /// Whether nothing is missing.
    pub fn is_ok(&self) -> bool {
        self.missing.is_empty()
    }

    /// The refusal as an error; nothing when it can run.
    pub fn require(&self, what: &str) -> Result<(), HostError> {
        if self.is_ok() {
            return Ok(());
        }
        let needs: Vec<String> =
            self.missing.iter().map(|m| format!("{} ({})", m.what, m.why)).collect();
        let (what, needs) =
            (what.into(), format!("{}; without it: {}", needs.join(", "), self.instead));
        // A missing capability is reported before a missing kernel feature: the user can change the first.
        let denied = self.missing.iter().any(|m| m.what.starts_with("CAP_"));
        Err(if denied {
            HostError::Denied { what, capability: needs }
        } else {
            HostError::Unsupported { what, needs }
        })
    }
}

const NEEDED: [(Capability, &str); 4] = [
    (Capability::CAP_NET_ADMIN, "create devices, set their features and the namespace's sysctls"),
    (Capability::CAP_SYS_ADMIN, "create network and mount namespaces"),
    (Capability::CAP_SYS_NICE, "place the kernel's NAPI threads"),
    (Capability::CAP_KILL, "end processes that a killed run left"),
];

/// Whether this process has a capability in force.
///
/// **Source** capget(2).
pub fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

/// What a two-namespace lab is missing here.
pub fn lab() -> CanRun {
    let path_is_there = |path: &str| Path::new(path).exists();
    judge(has, path_is_there)
}

fn judge(has: impl Fn(Capability) -> bool, is_there: impl Fn(&str) -> bool) -> CanRun {
    let mut missing: Vec<Missing> = NEEDED
        .iter()
        .filter(|(capability, _)| !has(*capability))
        .map(|(capability, why)| Missing { what: capability.to_string(), why: (*why).into() })
        .collect();
    if !is_there("/proc/self/ns/net") {
        missing.push(Missing {
            what: "CONFIG_NET_NS in the kernel".into(),
            why: "keep sender and receiver apart".into(),
        });
    }
    let instead = "`rxpath serve udp` and `rxpath load udp` over loopback (127.0.0.1) need no root; \
                   they measure sockets and the protocol, not a device";
    CanRun { missing, instead: instead.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_why_and_what_works() {
        let can = judge(|capability| capability != Capability::CAP_SYS_ADMIN, |_| true);
        assert_eq!(can.missing.len(), 1);
        let text = can.require("run a lab").unwrap_err().to_string();
        for part in ["run a lab", "CAP_SYS_ADMIN", "namespaces", "loopback"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn with_everything_nothing_is_missing() {
        assert!(judge(|_| true, |_| true).require("run a lab").is_ok());
        assert!(!judge(|_| true, |_| false).is_ok(), "a kernel without namespaces");
    }
}
