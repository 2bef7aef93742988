//! Security modules, audit rules, reverse-path filtering, forwarding and the BPF compiler: what decides about each packet
//! or system call.

use rxpath_core::number::grouped;

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("socket-bpf-lsm", Check::Host(lsm)),
    ("audit-rules", Check::Host(super::audit::audit)),
    ("rp-filter", Check::Host(rp_filter)),
    ("ip-forward", Check::Host(forward)),
    ("bpf-jit", Check::Host(jit)),
];

fn lsm(ask: &Ask<'_>) -> Checked {
    let modules = ask.facts.text("/sys/kernel/security/lsm").known()?;
    let readers = ask.facts.readers().into_value().unwrap_or_default();
    let pids: std::collections::BTreeSet<i32> = readers.seen.iter().map(|it| it.pid).collect();
    let mode = |pid: &i32| {
        let status = ask.facts.text(&format!("/proc/{pid}/status")).into_value()?;
        status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?.trim().parse::<u8>().ok()
    };
    let modes: Vec<u8> = pids.iter().filter_map(mode).collect();
    let filtered = modes.iter().filter(|mode| **mode > 0).count();
    Answer::recorded(format!(
        "{modules}; seccomp on {filtered} of {} programs that receive; cgroup BPF is not read",
        modes.len()
    ))
}

/// From this share of what IP receives on, reverse-path filtering drops what this host should get.
const MUCH_RATIO: f64 = 0.1;

fn rp_filter(ask: &Ask<'_>) -> Checked {
    let dropped = ask.facts.count("TcpExt.IPReversePathFilter").known()?;
    if dropped.total == 0 {
        return Answer::fine("none dropped");
    }
    let names = ask.facts.devices.iter().map(|device| device.name.as_str()).chain(["all"]);
    let is_strict = |name: &&str| {
        let key = format!("net/ipv4/conf/{name}/rp_filter");
        ask.facts.sysctl_number(&key).value() == Some(&1)
    };
    let strict = names.filter(is_strict).collect::<Vec<_>>().join(", ");
    let strict = if strict.is_empty() {
        "which devices are strict could not be read, or none is any more".to_owned()
    } else {
        format!("strict on: {strict}")
    };
    let received = ask.facts.count("Ip.InReceives").known()?;
    // A share of all that comes is no stray sender: this host loses what it should receive.
    let is_much = dropped.evidence() == Evidence::Now
        && dropped.ratio_of(received).is_some_and(|ratio| ratio >= MUCH_RATIO);
    let what = "packets dropped by reverse-path filtering";
    let told = ask.facts.watched.tell(dropped, what, ask.facts.protocols_began());
    Answer::observed(format!("{told}; {strict}"))
        .advice("loose mode (2) on the device where the other uplink's packets come in")
        .severity(if is_much { Fail } else { Info })
        .rests_on(dropped, &ask.facts.watched)
}

/// It never carries a change: a host that routes for others cuts them off with it, and what it routes for may come later.
fn forward(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("net.ipv4.ip_forward").known()? == 0 {
        return Answer::fine("this host does not forward");
    }
    let forwarded = ask.facts.counter("Ip.ForwDatagrams").known()?;
    if forwarded > 0 {
        return Answer::silent(format!(
            "forwards: {} packets since {}",
            grouped(forwarded),
            ask.facts.protocols_began()
        ));
    }
    let others = ask.facts.all_devices()?.iter().filter(|device| !device.is_loopback());
    if others.count() > 1 {
        return Answer::silent("forwards, and has devices to forward between");
    }
    Answer::observed("ip_forward is 1, no packet was ever forwarded, and there is one device")
    .advice("find out who set it: an IPsec gateway forwards with one device, and what runs containers sets it early")
}

fn jit(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("net.core.bpf_jit_enable").known()? > 0 {
        return Answer::fine("on");
    }
    Answer::observed("net.core.bpf_jit_enable is 0")
        .change(Set::new(Knob::sysctl("net.core.bpf_jit_enable"), 1))
}
