//! Security modules, audit rules, reverse-path filtering, forwarding and the BPF compiler: what decides about each packet
//! or system call.

use super::taps::SECURITY;
use crate::prelude::*;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "socket-bpf-lsm",
        what: "Which security modules see each packet of a socket, and which readers have a seccomp filter?",
        applies: "hosts that list their security modules",
        check: Check::Host(lsm),
        why: "security_sock_rcv_skb runs for each packet that gets to a socket, system calls of the program \
              pass its seccomp filter.",
        mechanism: "sk_filter_trim_cap (net/core/filter.c): cgroup BPF of ingress, then the security modules. Read \
                    are the list of modules and the Seccomp line of the programs with a receiving socket that may \
                    be seen; cgroup BPF programs are not in /proc and are not read: bpftool cgroup tree.",
        not_when: "never removed for speed alone",
        side_effects: SECURITY,
        persist: "the kernel command line (lsm=)",
        verify: "cat /sys/kernel/security/lsm; Seccomp in /proc/PID/status",
        since: "2.6; the list 4.11",
        sources: &["kernel: net/core/filter.c sk_filter_trim_cap"],
        ..Rule::record(Area::Hooks)
    },
    Rule {
        id: "audit-rules",
        what: "Is the audit system on while system calls are measured?",
        applies: "hosts whose audit system can be asked, or whose processes can be seen",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Warn),
        check: Check::Host(super::audit::audit),
        why: "While audit is on, system calls of programs that were started since take the slow way in and out, \
              recvmmsg included; with rules each is held against them.",
        mechanism: "audit_alloc (kernel/auditsc.c) marks each new task (SYSCALL_WORK_SYSCALL_AUDIT), unless the first \
                    rule of the task list is never; __audit_syscall_entry and the exit filter run for marked ones. \
                    Read are audit=, the kernel's own state and its rules (NETLINK_AUDIT: CAP_AUDIT_CONTROL in the \
                    initial namespaces); where it does not answer, whether auditd runs. Rules outlive auditd.",
        not_when: "the host must be audited",
        side_effects: "a gap in the audit trail: a matter of compliance",
        set_now: "auditctl -e 0 for a measurement, where that is allowed: the rules stay and are not \
                  applied; programs started before keep their mark",
        persist: "audit=0 on the kernel command line, or -a task,never as the first rule",
        undo: "auditctl -e 1",
        verify: "auditctl -s: enabled 0",
        since: "2.6",
        sources: &[
            "kernel: kernel/auditsc.c audit_alloc, __audit_syscall_entry",
            "kernel: kernel/audit.c audit_netlink_ok",
        ],
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "rp-filter",
        what: "Does the check of source addresses drop packets?",
        applies: "hosts whose IP counters can be read",
        size: Loss,
        effect: "these packets are dropped; a counter, the drop reason IP_RPFILTER and, where it is on, log_martians show them",
        check: Check::Host(rp_filter),
        why: "Strict mode drops packets whose answer would leave by another device, which is usual with two \
              uplinks.",
        mechanism: "fib_validate_source (net/ipv4/fib_frontend.c); the larger of conf/all and conf/DEV counts.",
        not_when: "the packets are forged: then it does its work",
        side_effects: "loose mode lets forged sources of known networks in: a matter of security",
        set_now: "sysctl -w net.ipv4.conf.DEV.rp_filter=2 (loose)",
        persist: "/etc/sysctl.d/",
        verify: "nstat -az TcpExtIPReversePathFilter, twice",
        since: "2.2; loose 2.6.30; the counter 2.6.36",
        sources: &["kernel: Documentation/networking/ip-sysctl.rst rp_filter", "RFC 3704"],
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "ip-forward",
        what: "Does this host forward without being a router?",
        applies: "every host",
        weight: Weight::by_goal().when(Throughput, Info).when(Benchmark, Info),
        check: Check::Host(forward),
        why: "Forwarding turns LRO off on every device, and packets for others are routed instead of dropped.",
        mechanism: "devinet_sysctl_forward (net/ipv4/devinet.c) calls dev_disable_lro for each device.",
        not_when: "a router, a VPN gateway, or a host with containers or virtual machines",
        side_effects: "those behind a gateway, containers and virtual machines lose their network; accept_redirects \
                       and other sysctls of each device change with it",
        set_now: "sysctl -w net.ipv4.ip_forward=0, once nothing behind this host needs it",
        persist: "the file below /etc/sysctl.d/ that sets it",
        undo: "write 1 back; compare the other sysctls of each device",
        verify: "nstat -az IpForwDatagrams, twice",
        since: "2.2",
        sources: &[
            "kernel: Documentation/networking/ip-sysctl.rst ip_forward",
            "kernel: net/ipv4/devinet.c",
        ],
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "bpf-jit",
        what: "Are BPF programs compiled, not interpreted?",
        applies: "kernels that tell (root reads it)",
        weight: Weight::always(Warn),
        size: Multiple,
        effect: "an interpreted filter runs an instruction in several of the machine's",
        check: Check::Host(jit),
        why: "Socket filters, XDP, tc and cgroup programs run for each packet.",
        mechanism: "bpf_jit_enable; bpf_prog_select_runtime (kernel/bpf/core.c) interprets when it is 0.",
        not_when: "bpf_jit_harden is a choice of security: leave it",
        side_effects: "acts on programs that are loaded afterwards",
        set_now: "sysctl -w net.core.bpf_jit_enable=1",
        persist: "/etc/sysctl.d/",
        verify: "sysctl net.core.bpf_jit_enable, as root",
        since: "3.0; on by default since 5.6 where the architecture wants it",
        sources: &["kernel: Documentation/admin-guide/sysctl/net.rst bpf_jit_enable"],
        ..Rule::judge(Area::Hooks)
    },
];

fn lsm(ask: &Ask<'_>) -> Checked {
    let modules = ask.facts.text("/sys/kernel/security/lsm").known()?;
    let readers = ask.facts.readers().into_value().unwrap_or_default();
    let pids: std::collections::BTreeSet<i32> = readers.seen.iter().map(|it| it.pid).collect();
    let mode = |pid: &i32| {
        let status = ask.facts.text(&format!("/proc/{pid}/status")).into_value()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?;
        line.trim().parse::<u8>().ok()
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
    let strict: Vec<String> = ask
        .facts
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .chain(["all"])
        .filter(|name| {
            let key = format!("net/ipv4/conf/{name}/rp_filter");
            ask.facts.sysctl_number(&key).value() == Some(&1)
        })
        .map(str::to_owned)
        .collect();
    let watched = &ask.facts.watched;
    let received = ask.facts.count("Ip.InReceives").known()?;
    // A share of all that comes is no stray sender: this host loses what it should receive.
    let is_much = dropped.evidence() == Evidence::Now
        && dropped.ratio_of(received).is_some_and(|ratio| ratio >= MUCH_RATIO);
    Answer::found(
        format!(
            "{}; {}",
            watched.tell(
                dropped,
                "packets dropped by reverse-path filtering",
                ask.facts.protocols_began()
            ),
            if strict.is_empty() {
                "which devices are strict could not be read, or none is any more".to_owned()
            } else {
                format!("strict on: {}", strict.join(", "))
            }
        ),
        "none, or a count that no longer rises",
        "their answer would leave by another device, or they are forged",
    )
    .advice("loose mode (2) on the device where the other uplink's packets come in")
    .severity(if is_much { Fail } else { Info })
    .rests_on(dropped, watched)
}

/// It never carries a change: a host that routes for others cuts them off with it, and what it routes for may come later.
fn forward(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("net.ipv4.ip_forward").known()? == 0 {
        return Answer::fine("this host does not forward");
    }
    let forwarded = ask.facts.counter("Ip.ForwDatagrams").known()?;
    if forwarded > 0 {
        return Answer::silent(format!(
            "forwards: {forwarded} packets since {}",
            ask.facts.protocols_began()
        ));
    }
    let others = ask.facts.all_devices()?.iter().filter(|device| !device.is_loopback());
    if others.count() > 1 {
        return Answer::silent("forwards, and has devices to forward between");
    }
    Answer::found(
        "ip_forward is 1, no packet was ever forwarded, and there is one device",
        "0 on a host that is no gateway",
        "LRO is off on every device for nothing",
    )
    .advice("find out who set it: an IPsec gateway forwards with one device, and what runs containers sets it early")
}

fn jit(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("net.core.bpf_jit_enable").known()? > 0 {
        return Answer::fine("on");
    }
    Answer::found(
        "net.core.bpf_jit_enable is 0",
        "1",
        "filters and programs are interpreted for each packet",
    )
    .change(Set::new(Knob::sysctl("net.core.bpf_jit_enable"), 1))
}
