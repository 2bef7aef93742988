//! Small machines.

use rxpath_core::Fact;
use rxpath_host::read::netlink::ethtool::Eee;

use super::card::{Card, Kind};
use super::expect::{Case, NOTHING, first};
use super::tree::Host;

pub fn hosts() -> Vec<Case> {
    vec![laptop(), raspberry()]
}

/// A bad cable, and everything sleeps whenever it can.
fn laptop() -> Case {
    let card = Card::new("enp3s0", "r8169", 100)
        .could_be(1000)
        .queues(1, 1, [0])
        .pcie("16.0", "1", "1")
        .file("device/link/l1_aspm", "1")
        .with(|card| {
            card.kind = Kind::Untold;
            let eee = Eee { enabled: Some(true), active: Some(true), ..Eee::default() };
            card.answers.eee = Fact::ok(eee);
        });
    Case {
        name: "h13 laptop",
        host: Host::metal(4, 1).governor("powersave").idle_state(2, "C8", 200, false).card(card),
        none: first("link-speed-duplex"),
        latency: first("link-speed-duplex")
            .found(&["eee", "pcie-aspm", "cpu-governor", "cpu-cstates"])
            .also(&["cpu-min-freq"]),
        throughput: first("link-speed-duplex")
            .found(&["cpu-governor"])
            .also(&["cpu-min-freq", "rps-cpus"]),
    }
}

/// Four small cores, pages of 16 KiB, one queue.
fn raspberry() -> Case {
    let card =
        Card::new("eth0", "macb", 1000).queues(1, 1, [0]).with(|card| card.kind = Kind::Untold);
    let host = Host {
        kernel: "6.12.25+rpt-rpi-2712",
        memory_gib: 8,
        page_bytes: 16_384,
        has_siblings: false,
        ..Host::metal(4, 1)
    };
    let clock = "/sys/devices/system/clocksource/clocksource0";
    Case {
        name: "Raspberry Pi 5",
        host: host
            .governor("ondemand")
            .file("/proc/cpuinfo", "processor: 0\nFeatures: fp asimd")
            .file(&format!("{clock}/current_clocksource"), "arch_sys_counter")
            .file(&format!("{clock}/available_clocksource"), "arch_sys_counter")
            .card(card),
        none: NOTHING,
        latency: first("cpu-governor").also(&["cpu-min-freq"]),
        throughput: first("rps-cpus").found(&["cpu-governor"]).also(&["cpu-min-freq"]),
    }
}
