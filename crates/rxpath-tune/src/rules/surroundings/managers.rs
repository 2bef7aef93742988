//! Other programs that change the settings: two owners of one setting undo each other.

use crate::prelude::*;

/// Programs that change these settings, by `comm` (cut to 15 bytes), and their settings.
const MANAGERS: [(&str, &str); 8] = [
    ("bpftune", "buffers, backlog, budget"),
    ("ktune", "sysctls"),
    ("NetworkManager", "MTU, ethtool settings of its connections"),
    ("systemd-network", "what .link files name"),
    ("thermald", "frequency limits"),
    ("power-profiles-", "governor and energy preference"),
    ("cpupower", "governor"),
    ("irqbalance", "affinities of interrupts"),
];

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "tuned-active",
        what: "Will a tuned profile overwrite settings at its next start?",
        applies: "hosts on which tuned runs",
        weight: Weight::always(Info).when(Benchmark, Warn),
        check: Check::Host(tuned),
        why: "tuned writes its profile again when it starts. Manual settings are then lost; until then tuned-adm \
              verify fails.",
        mechanism: "Profiles are lists of sysctls and device settings; /etc/tuned/active_profile names the active \
                    profile. After the profile tuned applies /etc/sysctl.d again (reapply_sysctl=1, the default), \
                    so those files override the profile's sysctls.",
        not_when: "you want the profile: then change the profile, not the value",
        side_effects: "tuned restores the settings from before its profile",
        set_now: "tuned-adm off, or settings in a profile of your own that includes it",
        persist: "systemctl disable --now tuned",
        undo: "tuned-adm profile NAME with the previous name",
        verify: "tuned-adm active; tuned-adm verify",
        sources: &[
            "tuned-adm(8)",
            "redhat-performance/tuned issue 790 (verify fails)",
            "redhat-performance/tuned pull request 492 (reapply_sysctl)",
        ],
        ..Rule::judge(Area::Surroundings)
    },
    Rule {
        id: "other-managers",
        what: "Is rxpath the only program that changes these settings?",
        applies: "hosts that show their processes",
        weight: Weight::by_goal().when(Benchmark, Warn).when(Latency, Info),
        check: Check::Host(others),
        why: "Two owners of one setting undo each other at unpredictable times.",
        mechanism: "Each writes at its own events: link up, load, a timer.",
        not_when: "the other program owns it: set it there",
        side_effects: "the stopped program no longer sets its values",
        set_now: "systemctl stop UNIT while measuring, or set it there",
        persist: "systemctl disable UNIT",
        undo: "systemctl start UNIT",
        verify: "the value is the same after an hour, and after link down and up",
        sources: &["redhat-performance/tuned issue 78", "oracle/bpftune issue 178"],
        ..Rule::judge(Area::Surroundings)
    },
    Rule {
        id: "persistent-vs-live",
        what: "Will the settings be the same after a reboot?",
        applies: "hosts whose sysctl.d or kernel command line name settings of the receive path",
        weight: Weight::always(Warn),
        effect: "manual tuning is lost after a reboot, or the file is wrong",
        check: Check::Host(super::persistent::kept),
        why: "A value that differs from its file or from the command line was changed after boot, or was never \
              applied.",
        mechanism: "systemd-sysctl applies the files once at boot, in the order of their names; the last line \
                    wins, a named key wins over a pattern (*, ?, [abc], [!abc]), and -KEY keeps patterns away. \
                    The command line (sysctl.KEY=, nmi_watchdog=, nowatchdog, nosoftlockup, numa_balancing=) \
                    comes before the files. rxpath compares net and the other settings of the receive path, and \
                    from the command line transparent_hugepage=, clocksource=, preempt=, nosmt, \
                    cpuidle.governor=, cpufreq.default_governor=, intel_pstate=, amd_pstate=, pcie_aspm.policy= \
                    and haltpoll.*. udev rules act when a device appears, rc.local at the end of the boot: a \
                    setting that one of their lines mentions is named with the line, and not compared.",
        not_when: "the difference is on purpose and short",
        set_now: "sysctl --system, or correct the file",
        persist: "the file",
        verify: "rxpath check reports it no more",
        sources: &[
            "sysctl.d(5)",
            "kernel: Documentation/admin-guide/kernel-parameters.txt",
            "CISOfy/lynis issue 1256",
        ],
        ..Rule::judge(Area::Surroundings)
    },
    Rule {
        id: "qdisc-root",
        what: "Which qdisc sends the replies?",
        applies: "devices that are up",
        check: Check::Device(qdisc),
        why: "A sender's qdisc shapes what the receiver sees, and a receiver's own shapes its ACKs and replies.",
        mechanism: "net.core.default_qdisc (3.12) for devices that come up, below mq for each queue; fq paces, fq_codel drops \
                    late packets.",
        side_effects: "replacing it loses its configuration: dump it first. If one qdisc replaces mq (the root on \
                       NICs with several queues), all queues share one lock",
        set_now: "tc qdisc replace dev DEV root fq",
        persist: "net.core.default_qdisc in /etc/sysctl.d/",
        undo: "tc qdisc replace dev DEV root KIND, with the dumped options",
        verify: "tc qdisc show dev DEV",
        since: "2.2",
        sources: &["kernel: net/sched/sch_generic.c", "tc(8)"],
        ..Rule::record(Area::Surroundings)
    },
    Rule {
        id: "peer-checks",
        what: "Was the sender checked as well?",
        applies: "every host, for benchmarks",
        weight: Weight::by_goal().when(Benchmark, Info),
        check: Check::Host(peer),
        why: "A sender at its limit looks like a receiver's limit.",
        mechanism: "Nothing on this host shows the sender's state.",
        set_now: "rxpath check --goal benchmark on the sender",
        verify: "store both reports with the result",
        sources: &[
            "rxpath: docs/how-to/measure-by-hand.md, where each side says where its own limit was",
        ],
        ..Rule::honesty(Area::Surroundings)
    },
];

fn tuned(ask: &Ask<'_>) -> Checked {
    let processes = (&ask.facts.processes).known()?;
    if !processes.runs("tuned") {
        processes.complete()?;
        return Answer::silent("tuned does not run");
    }
    let profile = match ask.facts.text("/etc/tuned/active_profile").known() {
        Ok(profile) if !profile.is_empty() => profile,
        Err(Gap::Denied(needs)) => format!("its profile cannot be read: {needs}"),
        _ => "no profile is named".into(),
    };
    Answer::found(
        format!("tuned runs: {profile}"),
        "one owner of each setting",
        "it writes its profile again at its next start",
    )
    .advice("put changes into a profile, or turn tuned off while measuring")
}

fn others(ask: &Ask<'_>) -> Checked {
    let processes = (&ask.facts.processes).known()?;
    let found: Vec<String> = MANAGERS
        .iter()
        .filter(|(name, _)| processes.runs(name))
        .map(|(name, owns)| format!("{name} ({owns})"))
        .collect();
    if found.is_empty() {
        processes.complete()?;
        return Answer::fine("none of the known ones runs");
    }
    Answer::found(
        found.join(", "),
        "one owner of each setting",
        "they overwrite your settings at their own times",
    )
    .advice("set it there, or stop them while measuring")
}

fn qdisc(_: &Ask<'_>, device: &Device) -> Checked {
    if device.is_loopback() || !device.is_up() {
        return Answer::silent("loopback or down");
    }
    let link = (&device.nic.link).known()?;
    Answer::recorded(link.qdisc.clone().unwrap_or_else(|| "none".into()))
}

fn peer(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.release).known()?;
    Answer::caution(
        "a limit of the sender looks like a limit of the receiver: check the sender as well",
    )
}
