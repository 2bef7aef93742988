//! Taps, XDP, tc and receive handlers: what sees packets before their protocol does.

use std::collections::BTreeMap;

use rxpath_host::netlink::XdpMode;
use rxpath_host::tcx::Tcx;

use crate::prelude::*;

pub(super) const SECURITY: &str = "may be part of the host's protection: this program only reports";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "packet-taps",
        what: "Do packet sockets look at every packet?",
        applies: "hosts whose packet sockets can be listed",
        weight: Weight::by_goal().when(Latency, Info).when(Benchmark, Warn).when(Throughput, Info),
        check: Check::Host(taps),
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
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "xdp-attached",
        what: "Does an XDP program run in the slow, generic way?",
        applies: "devices that are up and have an XDP program",
        weight: Weight::always(Info).when(Benchmark, Warn).when(Throughput, Warn),
        check: Check::Device(xdp),
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
        ..Rule::judge(Area::Hooks)
    },
    Rule {
        id: "tc-ingress",
        what: "Which ingress qdiscs and tcx programs look at received packets?",
        applies: "devices whose queueing disciplines or tcx programs can be listed",
        check: Check::Device(tc),
        why: "Filters of an ingress or clsact qdisc, and programs of tcx, run for each packet before the stack. They \
              usually belong to a container network.",
        mechanism: "sch_handle_ingress (net/core/dev.c): tcx_run (since 6.6, no qdisc needed), then the qdisc's \
                    filters. Read are the ingress and clsact qdiscs of the running host, without their filters, and \
                    the tcx programs of both directions in their order (BPF_PROG_QUERY: CAP_NET_ADMIN; their names: \
                    CAP_SYS_ADMIN). Programs of netkit devices are not read: bpftool net lists them.",
        not_when: "a container network or a shaper made them",
        side_effects: SECURITY,
        persist: "the program that attaches them",
        verify: "tc qdisc show dev DEV; tc filter show dev DEV ingress; bpftool net show dev DEV",
        since: "2.6; clsact 4.5, tcx 6.6",
        sources: &[
            "kernel: net/core/dev.c sch_handle_ingress",
            "kernel: kernel/bpf/tcx.c tcx_prog_query",
        ],
        ..Rule::record(Area::Hooks)
    },
    Rule {
        id: "rx-handler",
        what: "Do packets pass a bridge, bond or macvlan first?",
        applies: "devices that are up",
        check: Check::Device(handler),
        why: "One more device on the way is one more walk, and its own settings.",
        mechanism: "rx_handler of the device (net/core/dev.c __netif_receive_skb_core): bridge, bonding, team, \
                    macvlan, ipvlan.",
        not_when: "the network is built so",
        side_effects: "none: this is recorded",
        persist: "the network's configuration",
        verify: "ip -d link show DEV: master",
        since: "2.6.36",
        sources: &["kernel: net/core/dev.c netdev_rx_handler_register"],
        ..Rule::record(Area::Hooks)
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
    Answer::found(
        format!("{count} packet sockets for all protocols{who}"),
        "none during a measurement",
        "each is offered every packet",
    )
    .advice("ss -0 -p names their programs")
}

fn xdp(_: &Ask<'_>, device: &Device) -> Checked {
    if !device.is_up() {
        return Answer::silent("the device is down");
    }
    let programs = &(&device.nic.link).known()?.xdp_programs;
    match programs.first().map(|program| program.mode) {
        None => Answer::silent("no XDP program"),
        Some(XdpMode::Generic) => Answer::found(
            "an XDP program in generic mode",
            "native mode, where the driver has it",
            "packets are allocated and copied first",
        )
        .advice("the program may be the host's firewall: it is never detached by this program"),
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
