//! Hosts of containers and virtual machines.

use rxpath_core::Fact;
use rxpath_host::read::netlink::{XdpMode, XdpProgram};
use rxpath_host::read::nic::LinkFacts;

use super::card::{Card, Kind};
use super::expect::{Case, NOTHING, first};
use super::tree::Host;
use super::virtuals::Virtual;

pub fn hosts() -> Vec<Case> {
    vec![kubernetes(), eks(), gke(), cilium(), open_vswitch()]
}

/// The table of connections is nearly full.
fn kubernetes() -> Case {
    let card = Card::new("eth0", "ice", 25_000).on_node(0).queues(16, 64, 0..16);
    Case {
        name: "h08 Kubernetes",
        host: Host::metal(32, 2)
            .forwards()
            .runs("kubelet")
            .runs("containerd")
            .conntrack(249_000, 262_144, 65_536)
            .card(card)
            .virtual_device(Virtual::new("cilium_host", "veth"))
            .virtual_device(Virtual::new("lxc4f2a", "veth")),
        none: first("conntrack-sizing"),
        latency: first("conntrack-sizing"),
        throughput: first("conntrack-sizing").found(&["offload-udp-gro-fwd"]),
    }
}

/// The names of its pods' devices look like those of cards.
fn eks() -> Case {
    Case {
        name: "h08b EKS",
        host: Host::guest(8, "Amazon EC2")
            .forwards()
            .runs("kubelet")
            .conntrack(120_000, 131_072, 32_768)
            .card(Card::new("ens5", "ena", -1).queues(8, 8, 0..8))
            .virtual_device(Virtual::new("eni1a2b3c", "veth"))
            .virtual_device(Virtual::new("eni4d5e6f", "veth")),
        none: first("conntrack-sizing"),
        latency: first("conntrack-sizing"),
        throughput: first("conntrack-sizing").found(&["offload-udp-gro-fwd"]),
    }
}

fn gke() -> Case {
    let card = Card::new("eth0", "gve", -1).queues(8, 8, 0..8).with(|card| card.kind = Kind::Split);
    Case {
        name: "h08c GKE",
        host: Host::guest(8, "Google")
            .forwards()
            .runs("kubelet")
            .conntrack(9000, 262_144, 262_144)
            .card(card)
            .virtual_device(Virtual::new("gke9c1d2e", "veth")),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("offload-udp-gro-fwd@eth0"),
    }
}

/// Forwarding by BPF alone: a program in the driver, no connection tracking of netfilter.
fn cilium() -> Case {
    let xdp = XdpProgram { mode: XdpMode::Native, program_id: 7 };
    let link = LinkFacts {
        ifindex: 2,
        is_up: true,
        mtu_bytes: 1500,
        xdp_programs: vec![xdp],
        ..LinkFacts::default()
    };
    let card = Card::new("eth0", "mlx5_core", 25_000)
        .on_node(0)
        .queues(16, 16, 0..16)
        .pause(false, false, (0, 0))
        .with(|card| card.answers.link = Fact::ok(link));
    Case {
        name: "Cilium",
        host: Host::metal(16, 1)
            .forwards()
            .runs("cilium-agent")
            .card(card)
            .virtual_device(Virtual::new("cilium_net", "veth"))
            .virtual_device(Virtual::new("lxc1b2c3d", "veth")),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("offload-udp-gro-fwd@eth0"),
    }
}

/// A software switch: what LRO joins cannot leave by another port. The host itself routes nothing.
fn open_vswitch() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000).on_node(0).queues(16, 63, 0..16);
    Case {
        name: "Open vSwitch",
        host: Host::metal(16, 1)
            .runs("ovs-vswitchd")
            .card(card.below("ovs-system").feature("rx-lro", true))
            .virtual_device(Virtual::new("ovs-system", "openvswitch"))
            .virtual_device(Virtual::new("br-int", "openvswitch")),
        none: first("offload-lro@eth0"),
        latency: first("offload-lro@eth0"),
        throughput: first("offload-lro@eth0").found(&["offload-udp-gro-fwd@eth0"]),
    }
}
