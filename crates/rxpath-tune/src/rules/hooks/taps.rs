//! Everything else that sees packets before their socket: taps, XDP, tc, routing checks, BPF.

use std::collections::BTreeMap;

use rxpath_host::netlink::XdpMode;
use rxpath_host::tcx::Tcx;

use crate::prelude::*;

const SECURITY: &str = "may be part of the host's protection: this program only reports";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "packet-taps",
        area: Area::Hooks,
        kind: Kind::Judge,
        what: "Do packet sockets look at every packet?",
        applies: "hosts whose packet sockets can be listed",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Warn).when(Throughput, Info),
        effect: Effect::Measure,
        check: Check::Host(taps),
        text: Text {
            why: "tcpdump and some DHCP clients hold sockets that are offered every packet: a filter run for \
                  each, a clone for what matches. Sockets bound to one protocol (LLDP, ARP) are offered that only.",
            mechanism: "deliver_skb (net/core/dev.c __netif_receive_skb_core): to ptype_all each packet, to ptype_base those of \
                        the socket's protocol; tpacket_rcv and packet_rcv (net/packet/af_packet.c). Proto in \
                        /proc/net/packet is 0003 (ETH_P_ALL) for the first kind.",
            not_when: "they are needed: a DHCP lease is not renewed without them",
            side_effects: "stopping a DHCP client loses the address when the lease ends",
            set_now: "stop the program for the measurement: ss -0 -p names it",
            persist: "systemctl disable UNIT, or a static address",
            undo: "start the program again",
            verify: "/proc/net/packet has no line with Proto 0003",
            since: "2.2",
            sources: &[
                "kernel: net/core/dev.c __netif_receive_skb_core",
                "kernel: net/packet/af_packet.c packet_rcv",
            ],
        },
    },
    Rule {
        id: "xdp-attached",
        area: Area::Hooks,
        kind: Kind::Judge,
        what: "Does an XDP program run in the slow, generic way?",
        applies: "devices that are up and have an XDP program",
        weight: Weight::always(Info).when(Benchmark, Warn).when(Throughput, Warn),
        effect: Effect::Measure,
        check: Check::Device(xdp),
        text: Text {
            why: "Generic XDP runs after the packet was allocated, and copies packets that are not linear: the \
                  cost without the gain. Native XDP excludes LRO and bounds the MTU.",
            mechanism: "do_xdp_generic (net/core/dev.c) against ndo_bpf of the driver; IFLA_XDP_ATTACHED tells.",
            not_when: "it is a firewall or load balancer",
            side_effects: SECURITY,
            set_now: "attach it in native mode, where the driver has it: ip link set DEV xdpdrv obj FILE",
            persist: "the program that attaches it",
            undo: "attach it in the mode that it had",
            verify: "ip link show DEV: xdp or xdpgeneric",
            since: "4.8; generic 4.12",
            sources: &[
                "kernel: net/core/dev.c do_xdp_generic",
                "kernel: include/uapi/linux/if_link.h IFLA_XDP_ATTACHED",
            ],
        },
    },
    Rule {
        id: "tc-ingress",
        area: Area::Hooks,
        kind: Kind::Record,
        what: "Which ingress qdiscs and tcx programs look at received packets?",
        applies: "devices whose queueing disciplines or tcx programs can be listed",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Device(tc),
        text: Text {
            why: "Filters of an ingress or clsact qdisc, and programs of tcx, run for each packet before the stack. They \
                  usually belong to a container network.",
            mechanism: "sch_handle_ingress (net/core/dev.c): tcx_run (since 6.6, no qdisc needed), then the qdisc's \
                        filters. Read are the ingress and clsact qdiscs of the running host, without their filters, and \
                        the tcx programs of both directions in their order (BPF_PROG_QUERY: CAP_NET_ADMIN; their names: \
                        CAP_SYS_ADMIN). Programs of netkit devices are not read: bpftool net lists them.",
            not_when: "a container network or a shaper made them",
            side_effects: SECURITY,
            set_now: NO_SETTING,
            persist: "the program that attaches them",
            undo: NOTHING_CHANGED,
            verify: "tc qdisc show dev DEV; tc filter show dev DEV ingress; bpftool net show dev DEV",
            since: "2.6; clsact 4.5, tcx 6.6",
            sources: &[
                "kernel: net/core/dev.c sch_handle_ingress",
                "kernel: kernel/bpf/tcx.c tcx_prog_query",
            ],
        },
    },
    Rule {
        id: "rx-handler",
        area: Area::Hooks,
        kind: Kind::Record,
        what: "Do packets pass a bridge, bond or macvlan first?",
        applies: "devices that are up",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Device(handler),
        text: Text {
            why: "One more device on the way is one more walk, and its own settings.",
            mechanism: "rx_handler of the device (net/core/dev.c __netif_receive_skb_core): bridge, bonding, team, \
                        macvlan, ipvlan.",
            not_when: "the network is built so",
            side_effects: "none: this is recorded",
            set_now: NO_SETTING,
            persist: "the network's configuration",
            undo: NOTHING_CHANGED,
            verify: "ip -d link show DEV: master",
            since: "2.6.36",
            sources: &["kernel: net/core/dev.c netdev_rx_handler_register"],
        },
    },
    Rule {
        id: "socket-bpf-lsm",
        area: Area::Hooks,
        kind: Kind::Record,
        what: "Which security modules see each packet of a socket, and which readers have a seccomp filter?",
        applies: "hosts that list their security modules",
        weight: Weight::always(Info),
        effect: Effect::Measure,
        check: Check::Host(lsm),
        text: Text {
            why: "security_sock_rcv_skb runs for each packet that gets to a socket, system calls of the program \
                  pass its seccomp filter.",
            mechanism: "sk_filter_trim_cap (net/core/filter.c): cgroup BPF of ingress, then the security modules. Read \
                        are the list of modules and the Seccomp line of the programs with a receiving socket that may \
                        be seen; cgroup BPF programs are not in /proc and are not read: bpftool cgroup tree.",
            not_when: "never removed for speed alone",
            side_effects: SECURITY,
            set_now: NO_SETTING,
            persist: "the kernel command line (lsm=)",
            undo: NOTHING_CHANGED,
            verify: "cat /sys/kernel/security/lsm; Seccomp in /proc/PID/status",
            since: "2.6; the list 4.11",
            sources: &["kernel: net/core/filter.c sk_filter_trim_cap"],
        },
    },
    Rule {
        id: "audit-rules",
        area: Area::Hooks,
        kind: Kind::Judge,
        what: "Is the audit system on while system calls are measured?",
        applies: "hosts whose audit system can be asked, or whose processes can be seen",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Warn),
        effect: Effect::Measure,
        check: Check::Host(super::audit::audit),
        text: Text {
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
        },
    },
    Rule {
        id: "rp-filter",
        area: Area::Hooks,
        kind: Kind::Judge,
        what: "Does the check of source addresses drop packets?",
        applies: "hosts whose IP counters can be read",
        weight: Weight::always(Info),
        effect: Effect::Follows {
            size: Loss,
            text: "these packets are dropped; a counter, the drop reason IP_RPFILTER and, where it is on, log_martians show them",
        },
        check: Check::Host(rp_filter),
        text: Text {
            why: "Strict mode drops packets whose answer would leave by another device, which is usual with two \
                  uplinks.",
            mechanism: "fib_validate_source (net/ipv4/fib_frontend.c); the larger of conf/all and conf/DEV counts.",
            not_when: "the packets are forged: then it does its work",
            side_effects: "loose mode lets forged sources of known networks in: a matter of security",
            set_now: "sysctl -w net.ipv4.conf.DEV.rp_filter=2 (loose)",
            persist: "/etc/sysctl.d/",
            undo: VALUE_BACK,
            verify: "nstat -az TcpExtIPReversePathFilter, twice",
            since: "2.2; loose 2.6.30; the counter 2.6.36",
            sources: &["kernel: Documentation/networking/ip-sysctl.rst rp_filter", "RFC 3704"],
        },
    },
    Rule {
        id: "ip-forward",
        area: Area::Hooks,
        kind: Kind::Judge,
        what: "Does this host forward without being a router?",
        applies: "every host",
        weight: Weight::by_goal().when(Throughput, Info).when(Benchmark, Info),
        effect: Effect::Measure,
        check: Check::Host(forward),
        text: Text {
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
        },
    },
    Rule {
        id: "bpf-jit",
        area: Area::Hooks,
        kind: Kind::Judge,
        what: "Are BPF programs compiled, not interpreted?",
        applies: "kernels that tell (root reads it)",
        weight: Weight::always(Warn),
        effect: Effect::Follows {
            size: Multiple,
            text: "an interpreted filter runs an instruction in several of the machine's",
        },
        check: Check::Host(jit),
        text: Text {
            why: "Socket filters, XDP, tc and cgroup programs run for each packet.",
            mechanism: "bpf_jit_enable; bpf_prog_select_runtime (kernel/bpf/core.c) interprets when it is 0.",
            not_when: "bpf_jit_harden is a choice of security: leave it",
            side_effects: "acts on programs that are loaded afterwards",
            set_now: "sysctl -w net.core.bpf_jit_enable=1",
            persist: "/etc/sysctl.d/",
            undo: VALUE_BACK,
            verify: "sysctl net.core.bpf_jit_enable, as root",
            since: "3.0; on by default since 5.6 where the architecture wants it",
            sources: &["kernel: Documentation/admin-guide/sysctl/net.rst bpf_jit_enable"],
        },
    },
];

/// The column of `/proc/net/packet` with the protocol of a socket, and `ETH_P_ALL` in it.
const PROTOCOL: usize = 3;
const ALL_PROTOCOLS: &str = "0003";

fn taps(ask: &Ask<'_>) -> Checked {
    let text = ask.facts.text("/proc/net/packet").known()?;
    let sockets: Vec<&str> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(PROTOCOL)).collect();
    let count = sockets.iter().filter(|protocol| **protocol == ALL_PROTOCOLS).count();
    if count == 0 {
        return Answer::fine(match sockets.len() {
            0 => "no packet socket".to_owned(),
            others => format!("{others} packet sockets, none for all protocols"),
        });
    }
    let known = [
        "dhclient",
        "dhcpcd",
        "lldpd",
        "tcpdump",
        "dumpcap",
        "wireshark",
        "suricata",
        "systemd-network",
        "NetworkManager",
    ];
    let running: Vec<&str> = ask
        .facts
        .processes
        .value()
        .map_or_else(Vec::new, |all| known.into_iter().filter(|name| all.runs(name)).collect());
    let who = if running.is_empty() {
        String::new()
    } else {
        format!("; such programs here: {}", running.join(", "))
    };
    Found::new(
        format!("{count} packet sockets for all protocols{who}"),
        "none during a measurement",
        "each is offered every packet",
    )
    .advice("ss -0 -p names their programs")
    .answer()
}

fn xdp(_: &Ask<'_>, device: &Device) -> Checked {
    if !device.is_up() {
        return Answer::silent("the device is down");
    }
    let programs = &(&device.nic.link).known()?.xdp_programs;
    match programs.first().map(|program| program.mode) {
        None => Answer::silent("no XDP program"),
        Some(XdpMode::Generic) => Found::new(
            "an XDP program in generic mode",
            "native mode, where the driver has it",
            "packets are allocated and copied first",
        )
        .advice("the program may be the host's firewall: it is never detached by this program")
        .answer(),
        Some(mode) => Answer::fine(format!("an XDP program in {mode:?} mode").to_lowercase()),
    }
}

fn tc(ask: &Ask<'_>, device: &Device) -> Checked {
    let qdiscs = (&ask.facts.qdiscs).known().map(|all| ingress_qdiscs(all, device));
    let programs = (&device.nic.tcx).known().map(tcx_programs);
    match (qdiscs, programs) {
        (Err(why), Err(Gap::Absent(_))) | (Err(Gap::Absent(_)), Err(why)) => Err(why),
        (qdiscs, programs) => {
            let qdiscs = qdiscs.unwrap_or_else(|gap| format!("qdiscs: {}", unread(gap)));
            let programs = programs.unwrap_or_else(|gap| format!("tcx: {}", unread(gap)));
            Answer::recorded(format!("{qdiscs}; {programs}"))
        }
    }
}

fn ingress_qdiscs(all: &BTreeMap<String, Vec<String>>, device: &Device) -> String {
    let own = all.get(&device.name).map_or(&[][..], Vec::as_slice);
    let ingress: Vec<&str> = own
        .iter()
        .map(String::as_str)
        .filter(|kind| ["ingress", "clsact"].contains(kind))
        .collect();
    if ingress.is_empty() {
        "no ingress or clsact qdisc".into()
    } else {
        format!("qdisc {}", ingress.join(", "))
    }
}

fn tcx_programs(tcx: &Tcx) -> String {
    let ends = [("ingress", &tcx.ingress), ("egress", &tcx.egress)];
    let told: Vec<String> = ends
        .into_iter()
        .filter(|(_, programs)| !programs.is_empty())
        .map(|(end, programs)| {
            let names = programs.iter().map(|one| match &one.name {
                Some(name) => format!("{name} (program {})", one.program_id),
                None => format!("program {}", one.program_id),
            });
            format!("tcx {end}: {}", names.collect::<Vec<_>>().join(", "))
        })
        .collect();
    if told.is_empty() { "no tcx program".into() } else { told.join("; ") }
}

/// Why a part of an answer is missing.
pub(super) fn unread(gap: Gap) -> String {
    match gap {
        Gap::Absent(why) => why,
        Gap::Denied(needs) => format!("not shown, needs {needs}"),
    }
}

fn handler(ask: &Ask<'_>, device: &Device) -> Checked {
    if !device.is_up() {
        return Answer::silent("the device is down");
    }
    let above: Vec<String> =
        ask.facts.list(&device.path("")).value().map_or_else(Vec::new, |names| {
            names.iter().filter_map(|name| name.strip_prefix("upper_").map(str::to_owned)).collect()
        });
    match (device.master.value(), above.is_empty()) {
        (Some(master), _) => Answer::recorded(format!("belongs to {master}")),
        (None, false) => Answer::recorded(format!("below {}", above.join(", "))),
        (None, true) => Answer::silent("no device above it"),
    }
}

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
    Found::new(
        format!(
            "{}; {}",
            watched.tell(dropped, "packets dropped by reverse-path filtering", "boot"),
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
    .answer()
}

/// It never carries a change: a host that routes for others cuts them off with it, and what it routes for may come later.
fn forward(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("net.ipv4.ip_forward").known()? == 0 {
        return Answer::fine("this host does not forward");
    }
    let forwarded = ask.facts.counter("Ip.ForwDatagrams").known()?;
    if forwarded > 0 {
        return Answer::silent(format!("forwards: {forwarded} packets since boot"));
    }
    let others = ask.facts.all_devices()?.iter().filter(|device| !device.is_loopback());
    if others.count() > 1 {
        return Answer::silent("forwards, and has devices to forward between");
    }
    Found::new(
        "ip_forward is 1, no packet was forwarded since boot, and there is one device",
        "0 on a host that is no gateway",
        "LRO is off on every device for nothing",
    )
    .advice("find out who set it: an IPsec gateway forwards with one device, and what runs containers sets it early")
    .answer()
}

fn jit(ask: &Ask<'_>) -> Checked {
    if ask.facts.sysctl_number("net.core.bpf_jit_enable").known()? > 0 {
        return Answer::fine("on");
    }
    Found::new(
        "net.core.bpf_jit_enable is 0",
        "1",
        "filters and programs are interpreted for each packet",
    )
    .change(Set::new(Knob::sysctl("net.core.bpf_jit_enable"), 1))
    .answer()
}
