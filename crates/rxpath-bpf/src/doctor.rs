//! What can be measured on this host and what cannot, with the reason: each item tried or looked up.

use caps::Capability;
use rxpath_core::Fact;
use rxpath_host::Root;
use rxpath_host::caps::{CanRun, has, lab};
use rxpath_host::error::fact;
use rxpath_host::read::{kernel_config, thread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::can::{can_run, is_realtime, lockdown};
use crate::object::{BUILT, ProgramState};
use crate::{account, drops, locks, polls, queues, reads, reuseport, stages};

/// One checked item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorFinding {
    /// `privilege`, `kernel`, `hardware`, `lab`.
    pub area: String,
    /// What.
    pub what: String,
    /// What was found, or why it is missing.
    pub state: Fact<String>,
    /// What cannot be measured without it; empty where it exists.
    pub without_it: String,
}

/// Everything that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// Each finding.
    pub findings: Vec<DoctorFinding>,
    /// The programs of each probe, loaded one by one where this process may.
    pub probes: Vec<ProbeState>,
}

/// One probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeState {
    /// Its name.
    pub probe: String,
    /// Commands that use it.
    pub used_by: String,
    /// Its programs, or why none could be tried.
    pub programs: Fact<Vec<ProgramState>>,
}

/// Checks this host. Nothing is attached or changed; as root, each program is loaded once and removed.
pub fn examine(root: &Root) -> Diagnosis {
    let mut findings = privileges();
    findings.extend(kernel(root));
    findings.extend(mechanisms(root));
    findings.push(lab_finding(&lab()));
    Diagnosis { findings, probes: probes(root) }
}

fn finding(area: &str, what: &str, state: Fact<String>, without_it: &str) -> DoctorFinding {
    let without_it = if state.value().is_some() { String::new() } else { without_it.into() };
    DoctorFinding { area: area.into(), what: what.into(), state, without_it }
}

fn privileges() -> Vec<DoctorFinding> {
    let needed = [
        (Capability::CAP_BPF, "trace, steal (load BPF programs)"),
        (Capability::CAP_PERFMON, "trace, steal (attach BPF programs)"),
        (Capability::CAP_NET_ADMIN, "the lab, ring sizes and other settings of devices"),
        (Capability::CAP_SYS_PTRACE, "which process owns a socket of another user"),
        (Capability::CAP_SYSLOG, "names of the kernel functions that drop packets"),
    ];
    needed
        .into_iter()
        .map(|(capability, without)| {
            // CAP_SYS_ADMIN stands for the first two (include/linux/capability.h).
            let through_admin = matches!(capability, Capability::CAP_BPF | Capability::CAP_PERFMON)
                && has(Capability::CAP_SYS_ADMIN);
            let state = if has(capability) {
                Fact::ok("held".into())
            } else if through_admin {
                Fact::ok("not held, but CAP_SYS_ADMIN includes it".into())
            } else {
                Fact::denied(format!("{capability} (root)"))
            };
            finding("privilege", &capability.to_string(), state, without)
        })
        .collect()
}

fn kernel(root: &Root) -> Vec<DoctorFinding> {
    let there = |path: &str, why: &str| {
        if root.exists(path) { Fact::ok(path.to_owned()) } else { Fact::absent(why.to_owned()) }
    };
    let built = Fact::of(
        BUILT.then(|| "with BPF programs".into()),
        "built with --no-default-features: clang was missing",
    );
    let locked = match lockdown(root).as_deref() {
        Some("confidentiality") => Fact::denied("a lockdown below `confidentiality`"),
        Some(mode) => Fact::ok(mode.to_owned()),
        None => Fact::ok("not in this kernel, or not visible".into()),
    };
    let realtime = if is_realtime(root) {
        Fact::denied("a kernel without PREEMPT_RT: with it, tasks can preempt softirqs")
    } else {
        Fact::ok("no".into())
    };
    let config = fact(kernel_config::read(root)).map(|it| format!("{} options", it.options.len()));
    vec![
        finding("kernel", "this build of rxpath", built, "trace, steal"),
        finding(
            "kernel",
            "types (BTF)",
            there("/sys/kernel/btf/vmlinux", "the kernel has no CONFIG_DEBUG_INFO_BTF"),
            "trace, steal",
        ),
        finding("kernel", "lockdown", locked, "trace, steal"),
        finding("kernel", "PREEMPT_RT", realtime, "trace, steal"),
        finding(
            "kernel",
            "configuration",
            config,
            "whether a missing file means a missing kernel option",
        ),
    ]
}

fn mechanisms(root: &Root) -> Vec<DoctorFinding> {
    let counters = fact(rxpath_host::read::procfs::softnet::read(root))
        .map(|lines| format!("softnet_stat of {} CPUs", lines.len()));
    let kprobe = root.exists("/sys/bus/event_source/devices/kprobe/type");
    let kprobe = Fact::of(kprobe.then(|| "kprobes".into()), "the kernel has no CONFIG_KPROBES");
    let pmu = ["cpu", "cpu_core", "cpu_atom", "armv8_pmuv3_0", "armv8_pmuv3"]
        .into_iter()
        .find(|name| root.exists(&format!("/sys/bus/event_source/devices/{name}/type")));
    let no_pmu = "no processor PMU in /sys/bus/event_source/devices (usual in a VM)";
    let pmu = Fact::of(pmu.map(str::to_owned), no_pmu);
    let second = match thread::allowed_cpus() {
        Ok(cpus) if cpus.0.len() > 1 => Fact::ok(format!("CPUs {cpus}")),
        Ok(cpus) => Fact::absent(format!("this process may use CPU {cpus} only")),
        Err(error) => error.into_gap(),
    };
    let tracepoints =
        fact(can_run(root).require("load BPF programs")).map(|()| "see the probes below".into());
    vec![
        finding("kernel", "counters of /proc", counters, "drops by counter, squeezes: everything"),
        finding("kernel", "tracepoints by BPF", tracepoints, "trace, steal"),
        finding("kernel", "kprobes", kprobe, "nothing yet: no probe of rxpath needs them"),
        finding(
            "hardware",
            "performance counters (PMU)",
            pmu,
            "cycles and cache misses; no command of rxpath needs them",
        ),
        finding(
            "hardware",
            "a second CPU",
            second,
            "the calibration of steal, senders and receivers apart",
        ),
    ]
}

fn lab_finding(can: &CanRun) -> DoctorFinding {
    let state = if can.is_ok() {
        Fact::ok("two network namespaces can be made".into())
    } else {
        let needs: Vec<String> = can.missing.iter().map(|m| m.what.clone()).collect();
        Fact::denied(needs.join(", "))
    };
    finding("lab", "rxpath run, rxpath demo", state, &can.instead)
}

fn probes(root: &Root) -> Vec<ProbeState> {
    let allowed = can_run(root).require("load BPF programs");
    // Their results mean nothing where softirqs can be preempted.
    let time_softirqs = [account::SPEC.name, polls::SPEC.name];
    [
        (&account::SPEC, "steal"),
        (&polls::SPEC, "trace"),
        (&drops::SPEC, "trace"),
        (&stages::SPEC, "trace"),
        (&queues::SPEC, "trace"),
        (&locks::SPEC, "diagnose"),
        (&reads::SPEC, "diagnose"),
        (&reuseport::SPEC, "check --flow"),
    ]
    .into_iter()
    .map(|(spec, used_by)| {
        let programs = match &allowed {
            Err(error) => Fact::denied(error.to_string()),
            Ok(()) if time_softirqs.contains(&spec.name) && is_realtime(root) => {
                Fact::denied("a kernel without PREEMPT_RT")
            }
            Ok(()) => fact(crate::Loaded::load(spec, &[], &[])).map(|it| it.programs().to_vec()),
        };
        ProbeState { probe: spec.name.into(), used_by: used_by.into(), programs }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_costs_nothing() {
        let there = finding("kernel", "x", Fact::ok("yes".into()), "everything");
        assert_eq!(there.without_it, "");
        let gone = finding("kernel", "x", Fact::absent("no"), "everything");
        assert_eq!(gone.without_it, "everything");
    }

    #[test]
    fn a_host_without_anything_is_told_so_and_not_guessed() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        let root = Root::tree(tree.path()).unwrap();
        let found: Vec<DoctorFinding> =
            kernel(&root).into_iter().chain(mechanisms(&root)).collect();
        for what in ["types (BTF)", "counters of /proc", "kprobes", "performance counters (PMU)"] {
            let of = found.iter().find(|f| f.what == what).unwrap();
            assert!(of.state.value().is_none() && !of.without_it.is_empty(), "{of:?}");
        }
    }
}
