//! Hosts that send on what they receive.

use rxpath_core::Fact;
use rxpath_host::read::netlink::netfilter::{Family, Hook};
use rxpath_host::read::netlink::nft_tables::NftTable;

use super::card::Card;
use super::expect::{Case, NOTHING, first};
use super::tree::Host;
use super::virtuals::Virtual;

pub fn hosts() -> Vec<Case> {
    vec![on_a_stick(), ipsec(), three_faults(), flowtables(), wireguard()]
}

/// One card, its networks as VLANs on it.
fn on_a_stick() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000).on_node(0).queues(4, 4, 0..4);
    Case {
        name: "h09 router on a stick",
        host: Host::metal(4, 1)
            .forwards()
            .card(card.feature("rx-lro", true))
            .virtual_device(Virtual::vlan("eth0.10", "eth0"))
            .virtual_device(Virtual::vlan("eth0.20", "eth0")),
        none: first("offload-lro"),
        latency: first("offload-lro"),
        throughput: first("offload-lro").found(&["offload-udp-gro-fwd"]),
    }
}

/// One card and no other device: it forwards by its policies.
fn ipsec() -> Case {
    let card = Card::new("eth0", "igb", 1000).on_node(0).queues(4, 4, 0..4);
    Case {
        name: "h09b IPsec gateway",
        host: Host::metal(4, 1).forwards().card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("offload-udp-gro-fwd"),
    }
}

/// LRO on a port, all interrupts of the other on one CPU, and a table of connections with long chains.
fn three_faults() -> Case {
    let card = |name: &str| Card::new(name, "ixgbe", 10_000).on_node(0).queues(8, 63, 0..8);
    let found = first("offload-lro@eth0")
        .found(&["irq-affinity@eth1", "conntrack-sizing"])
        .order(&["offload-lro@eth0", "irq-affinity@eth1", "conntrack-sizing"]);
    Case {
        name: "h10 three faults",
        host: Host::metal(8, 1)
            .forwards()
            .conntrack(50_000, 2_097_152, 16_384)
            .card(card("eth0").feature("rx-lro", true))
            .card(card("eth1").queues(8, 63, [0])),
        none: found,
        latency: found,
        throughput: found.also(&["offload-udp-gro-fwd"]),
    }
}

/// Established flows go past the firewall by a flow table of nftables, which needs connection tracking.
fn flowtables() -> Case {
    let card = |name: &str, cpus| Card::new(name, "ice", 25_000).on_node(0).queues(8, 16, cpus);
    let hook = |device: &str| Hook {
        family: Family::Netdev,
        hook: "ingress".into(),
        priority: 0,
        function: Some("nf_flow_offload_inet_hook".into()),
        module: Some("nf_flow_table_inet".into()),
        chain: None,
        device: Some(device.into()),
    };
    let table = NftTable { family: "inet".into(), name: "filter".into(), objects_count: 12 };
    let mut host = Host::metal(16, 1)
        .forwards()
        .conntrack(20_000, 262_144, 262_144)
        .card(card("eth0", 0..8))
        .card(card("eth1", 8..16));
    host.answers.nft_tables = Fact::ok(vec![table]);
    host.answers.netfilter_hooks = Fact::ok(vec![hook("eth0"), hook("eth1")]);
    Case {
        name: "flowtables",
        host,
        none: NOTHING,
        latency: NOTHING,
        throughput: first("offload-udp-gro-fwd"),
    }
}

/// Datagrams come in one by one, and each walks the stack alone.
fn wireguard() -> Case {
    let card = Card::new("eth0", "i40e", 10_000).on_node(0).queues(8, 8, 0..8);
    Case {
        name: "WireGuard gateway",
        host: Host::metal(8, 1)
            .forwards()
            .card(card)
            .virtual_device(Virtual::new("wg0", "wireguard")),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("offload-udp-gro-fwd@eth0"),
    }
}
