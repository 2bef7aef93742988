//! Taps, XDP, tc and receive handlers: what sees packets before their protocol does.

use std::collections::BTreeMap;

use rxpath_host::read::netlink::XdpMode;
use rxpath_host::read::tcx::Tcx;

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("packet-taps", Check::Host(taps)),
    ("xdp-attached", Check::Device(xdp)),
    ("tc-ingress", Check::Device(tc)),
    ("rx-handler", Check::Device(handler)),
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
    let processes = ask.facts.processes.value();
    let runs = |name: &&str| processes.is_some_and(|all| all.runs(name));
    let running: Vec<&str> = known.into_iter().filter(runs).collect();
    let who = if running.is_empty() {
        String::new()
    } else {
        format!("; such programs here: {}", running.join(", "))
    };
    Answer::observed(format!("{count} packet sockets for all protocols{who}"))
        .advice("ss -0 -p names their programs")
}

fn xdp(_: &Ask<'_>, device: &Device) -> Checked {
    if !device.is_up() {
        return Answer::silent("the device is down");
    }
    let programs = &(&device.nic.link).known()?.xdp_programs;
    match programs.first().map(|program| program.mode) {
        None => Answer::silent("no XDP program"),
        Some(XdpMode::Generic) => Answer::observed("an XDP program in generic mode")
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
    let own = all.get(&device.name).into_iter().flatten().map(String::as_str);
    let ingress: Vec<&str> = own.filter(|kind| ["ingress", "clsact"].contains(kind)).collect();
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
    let names = ask.facts.list(&device.path("")).into_value().unwrap_or_default();
    let above: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("upper_")).collect();
    match (device.master.value(), above.is_empty()) {
        (Some(master), _) => Answer::recorded(format!("belongs to {master}")),
        (None, false) => Answer::recorded(format!("below {}", above.join(", "))),
        (None, true) => Answer::silent("no device above it"),
    }
}
