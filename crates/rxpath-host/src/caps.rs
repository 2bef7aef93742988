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

/// Gives up every capability of the calling thread and of the threads that it starts from here on, also those that a
/// set-user-ID program would gain.
///
/// **Source** capabilities(7), `PR_SET_NO_NEW_PRIVS`. **Caveat** threads that already run keep theirs.
///
/// **Errors** when a set is not empty afterwards.
pub fn drop_all() -> Result<(), HostError> {
    let needs = "a kernel that lets a process give up its capabilities";
    let refused = |what: &str| HostError::unsupported(what, needs);
    nix::sys::prctl::set_no_new_privs()
        .map_err(|e| HostError::kernel("give up privileges that programs may gain", e as i32))?;
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(|e| refused(&format!("give up capabilities: {e}")))?;
    }
    let is_empty = |set| caps::read(None, set).is_ok_and(|left| left.is_empty());
    if is_empty(CapSet::Effective) && is_empty(CapSet::Permitted) {
        return Ok(());
    }
    Err(refused("give up capabilities: some are left"))
}

/// What a two-namespace lab is missing here.
pub fn lab() -> CanRun {
    judge(has, |path| Path::new(path).exists())
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
    fn a_thread_that_gives_up_its_capabilities_has_none() {
        let left = std::thread::spawn(|| {
            drop_all().unwrap();
            let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let sets = own.lines().filter(|line| {
                ["CapInh", "CapPrm", "CapEff", "CapAmb"].iter().any(|set| line.starts_with(set))
            });
            let sets: Vec<String> = sets.map(str::to_owned).collect();
            (sets, own.contains("NoNewPrivs:\t1"))
        });
        let (sets, no_new) = left.join().unwrap();
        assert_eq!(sets.len(), 4);
        assert!(no_new && sets.iter().all(|set| set.ends_with("\t0000000000000000")), "{sets:?}");
    }

    #[test]
    fn with_everything_nothing_is_missing() {
        assert!(judge(|_| true, |_| true).require("run a lab").is_ok());
        assert!(!judge(|_| true, |_| false).is_ok(), "a kernel without namespaces");
    }
}
