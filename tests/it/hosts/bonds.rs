//! Bonds and bridges.

use super::card::Card;
use super::expect::{Case, NOTHING, first};
use super::tree::Host;
use super::virtuals::Virtual;

pub fn hosts() -> Vec<Case> {
    vec![
        unequal_ports(),
        lacp("LACP by addresses of Ethernet", "layer2 0", first("bond-xmit-hash@bond0")),
        lacp("LACP, right", "layer3+4 1", NOTHING),
    ]
}

/// Two ports in a bond, a VLAN on it, a bridge over that: one port is slower than the other, without GRO and with
/// another ring, and the other one has LRO.
fn unequal_ports() -> Case {
    let card = |name: &str, mbps| Card::new(name, "ixgbe", mbps).on_node(0).below("bond0");
    let bond = Virtual::bond("bond0", "802.3ad 4", "layer3+4 1").rps("ff");
    let found =
        first("offload-lro@eth0").found(&["link-speed-duplex@eth1", "bond-ports-differ@bond0"]);
    Case {
        name: "h07 unequal ports",
        host: Host::metal(16, 2)
            .card(card("eth0", 10_000).feature("rx-lro", true))
            .card(card("eth1", 1000).could_be(10_000).feature("rx-gro", false).ring(512, 8192))
            .virtual_device(bond)
            .virtual_device(Virtual::vlan("bond0.100", "bond0").below("br0"))
            .virtual_device(Virtual::new("br0", "bridge")),
        none: found.also(&["rps-mask@bond0"]),
        latency: found.also(&["rps-mask@bond0"]),
        throughput: first("offload-lro@eth0")
            .found(&[
                "link-speed-duplex@eth1",
                "bond-ports-differ@bond0",
                "offload-gro@eth1",
                "offload-udp-gro-fwd@eth0",
                "rps-mask@bond0",
            ])
            .also(&["offload-udp-gro-fwd@eth1"]),
    }
}

/// Two equal ports.
fn lacp(name: &'static str, policy: &str, throughput: super::expect::Expected) -> Case {
    let card = |name: &str, cpus| {
        Card::new(name, "mlx5_core", 25_000).on_node(0).queues(8, 63, cpus).below("bond0")
    };
    Case {
        name,
        host: Host::metal(32, 2)
            .card(card("eth0", 0..8))
            .card(card("eth1", 8..16))
            .virtual_device(Virtual::bond("bond0", "802.3ad 4", policy)),
        none: NOTHING,
        latency: NOTHING,
        throughput,
    }
}
