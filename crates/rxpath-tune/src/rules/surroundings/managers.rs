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

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("tuned-active", Check::Host(tuned)),
    ("other-managers", Check::Host(others)),
    ("persistent-vs-live", Check::Host(super::persistent::kept)),
    ("qdisc-root", Check::Active(qdisc)),
    ("peer-checks", Check::Host(peer)),
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
    Answer::observed(format!("tuned runs: {profile}"))
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
    Answer::observed(found.join(", ")).advice("set it there, or stop them while measuring")
}

fn qdisc(_: &Ask<'_>, device: &Device) -> Checked {
    let link = (&device.nic.link).known()?;
    Answer::recorded(link.qdisc.clone().unwrap_or_else(|| "none".into()))
}

fn peer(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.release).known()?;
    Answer::caution(
        "a limit of the sender looks like a limit of the receiver: check the sender as well",
    )
}
