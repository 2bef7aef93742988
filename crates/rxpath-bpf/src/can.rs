//! What can be measured here, apart from measuring it.

use caps::Capability;
use rxpath_host::caps::{CanRun, Missing, has};
use rxpath_host::read::{kernel_config, procfs};
use rxpath_host::{HostError, Root};

use crate::object::BUILT;

/// What the probes of this crate are missing here.
pub fn can_run(root: &Root) -> CanRun {
    judge(BUILT, has, root.exists("/sys/kernel/btf/vmlinux"), lockdown(root).as_deref())
}

/// The same for the probes that measure how long softirqs take.
///
/// On PREEMPT_RT a softirq can be preempted, by tasks and by other softirqs, and mostly runs in the context of the task
/// that raised it (kernel/softirq.c, `CONFIG_PREEMPT_RT`): the time from its entry to its exit is not its CPU time.
pub fn can_time_softirqs(root: &Root) -> CanRun {
    let mut can = can_run(root);
    if is_realtime(root) {
        can.missing.push(Missing {
            what: "a kernel without PREEMPT_RT".into(),
            why: "measure softirq time: with PREEMPT_RT, tasks can preempt softirqs".into(),
        });
    }
    can
}

/// Refuses in a pid namespace of its own what tells threads by their ids: `bpf_get_current_pid_tgid` gives those of the host.
///
/// **Source** kernel/bpf/helpers.c.
pub(crate) fn require_host_pids(root: &Root, what: &str) -> Result<(), HostError> {
    if procfs::is_first_pid_namespace(root) {
        return Ok(());
    }
    let needs = "the host's pid namespace: the kernel reports thread ids of that namespace";
    Err(HostError::unsupported(what, needs))
}

/// Whether the kernel was built with PREEMPT_RT.
///
/// **Source** `/proc/sys/kernel/version` (`uname -v`, init/version-timestamp.c `UTS_VERSION`), else the configuration.
pub fn is_realtime(root: &Root) -> bool {
    match root.value("/proc/sys/kernel/version") {
        Ok(said) => said.split_whitespace().any(|word| word == "PREEMPT_RT"),
        Err(_) => kernel_config::read(root).is_ok_and(|config| config.has("PREEMPT_RT")),
    }
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
        lacks("a build with BPF", "this one was built with --no-default-features, without clang");
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
        lacks(
            "/sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)",
            "find the fields of kernel structures",
        );
    }
    if lockdown == Some("confidentiality") {
        lacks("a kernel lockdown below `confidentiality`", "read kernel memory from BPF programs");
    }
    let instead = "`rxpath diagnose` and `rxpath watch --once` use the kernel's counters";
    CanRun { missing, instead: instead.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with this file and nothing else.
    fn host(path: &str, text: &str) -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        std::fs::write(file, text).unwrap();
        let root = Root::tree(tree.path()).unwrap();
        (tree, root)
    }

    #[test]
    fn a_realtime_kernel_is_refused_by_name_for_what_times_softirqs() {
        let version = "proc/sys/kernel/version";
        let refused = |root: &Root| {
            let text = can_time_softirqs(root).require("trace softirqs").unwrap_err().to_string();
            text.contains("a kernel without PREEMPT_RT")
        };
        let debian = "#1 SMP PREEMPT_RT Debian 6.12.57-1 (2025-11-05)\n";
        let (_tree, realtime) = host(version, debian);
        assert!(is_realtime(&realtime) && refused(&realtime));
        // What only counts may run there.
        assert!(can_run(&realtime).missing.iter().all(|one| !one.what.contains("PREEMPT_RT")));
        for usual in ["#1 SMP PREEMPT_DYNAMIC Debian 6.12.57-1\n", "#57-Ubuntu SMP PREEMPT_RTX\n"] {
            let (_tree, root) = host(version, usual);
            assert!(!is_realtime(&root) && !refused(&root), "{usual}");
        }
        // Where it can't be read the configuration says it.
        let (tree, root) = host("proc/sys/kernel/osrelease", "6.12.57-rt\n");
        assert!(!is_realtime(&root));
        std::fs::create_dir_all(tree.path().join("boot")).unwrap();
        let config = "CONFIG_HZ=250\nCONFIG_PREEMPT_RT=y\n";
        std::fs::write(tree.path().join("boot/config-6.12.57-rt"), config).unwrap();
        assert!(is_realtime(&root) && refused(&root));
    }

    #[test]
    fn a_pid_namespace_of_its_own_is_refused_by_name() {
        let tree = tempfile::tempdir().unwrap();
        let namespaces = tree.path().join("proc/self/ns");
        std::fs::create_dir_all(&namespaces).unwrap();
        let root = Root::tree(tree.path()).unwrap();
        let (link, what) = (namespaces.join("pid"), "watch locks");
        std::os::unix::fs::symlink("pid:[4026531836]", &link).unwrap();
        assert!(require_host_pids(&root, what).is_ok());
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("pid:[4026532999]", &link).unwrap();
        let refused = require_host_pids(&root, what).unwrap_err().to_string();
        assert!(
            refused.contains(what) && refused.contains("the host's pid namespace"),
            "{refused}"
        );
    }

    #[test]
    fn each_thing_that_is_missing_is_named() {
        assert!(judge(true, |_| true, true, None).is_ok());
        assert!(judge(true, |c| c == Capability::CAP_SYS_ADMIN, true, Some("integrity")).is_ok());
        let refused = judge(false, |_| false, false, Some("confidentiality"));
        let text = refused.require("trace").unwrap_err().to_string();
        for part in
            ["CAP_BPF", "CAP_PERFMON", "BTF", "lockdown", "a build with BPF", "rxpath diagnose"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
