//! What can be measured here, apart from measuring it.

use caps::Capability;
use rxpath_host::Root;
use rxpath_host::caps::{CanRun, Missing, has};

use crate::object::BUILT;

/// What the probes of this crate are missing here.
pub fn can_run(root: &Root) -> CanRun {
    judge(BUILT, has, root.exists("/sys/kernel/btf/vmlinux"), lockdown(root).as_deref())
}

/// The lockdown mode in force, where the kernel has one: `none`, `integrity` or `confidentiality`.
///
/// **Source** `/sys/kernel/security/lockdown`, security/lockdown/lockdown.c. `confidentiality` refuses BPF programs
/// that read kernel memory.
pub fn lockdown(root: &Root) -> Option<String> {
    let text = root.value("/sys/kernel/security/lockdown").ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn judge(
    built: bool,
    has: impl Fn(Capability) -> bool,
    btf: bool,
    lockdown: Option<&str>,
) -> CanRun {
    let mut missing = Vec::new();
    let mut lacks =
        |what: &str, why: &str| missing.push(Missing { what: what.into(), why: why.into() });
    if !built {
        lacks("a build with BPF", "this one was made with --no-default-features, without clang");
    }
    // CAP_SYS_ADMIN stands for both (include/linux/capability.h, bpf_capable and perfmon_capable).
    if !has(Capability::CAP_SYS_ADMIN) {
        for (capability, why) in [
            (Capability::CAP_BPF, "load programs and maps"),
            (Capability::CAP_PERFMON, "attach them to tracepoints and read kernel memory"),
        ] {
            if !has(capability) {
                lacks(&capability.to_string(), why);
            }
        }
    }
    if !btf {
        lacks("/sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)", "find the kernel's fields");
    }
    if lockdown == Some("confidentiality") {
        lacks("a kernel lockdown below `confidentiality`", "read kernel memory from programs");
    }
    let instead = "`rxpath serve` and `rxpath load` count by sockets and /proc";
    CanRun { missing, instead: instead.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_is_missing_is_named() {
        assert!(judge(true, |_| true, true, None).is_ok());
        assert!(judge(true, |c| c == Capability::CAP_SYS_ADMIN, true, Some("integrity")).is_ok());
        let refused = judge(false, |_| false, false, Some("confidentiality"));
        let text = refused.require("trace").unwrap_err().to_string();
        for part in
            ["CAP_BPF", "CAP_PERFMON", "BTF", "lockdown", "a build with BPF", "rxpath serve"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
