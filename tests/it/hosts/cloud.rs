//! Virtual machines.

use super::card::{Card, Kind};
use super::expect::{Case, NOTHING, first};
use super::tree::Host;

const AMAZON: &str = "Amazon EC2";
const GOOGLE: &str = "Google";
const MICROSOFT: &str = "Microsoft Corporation";

pub fn hosts() -> Vec<Case> {
    vec![
        allowances(),
        gve(),
        azure_vf_down(),
        azure_vf_unused(),
        virtio_one_queue(),
        more_queues_than_cpus(),
        mana(),
        adaptive(),
    ]
}

/// What the instance may do is used up: nothing on the host helps.
fn allowances() -> Case {
    let card = Card::new("ens5", "ena", -1)
        .queues(8, 8, 0..8)
        .coalesce(|it| {
            it.adaptive_rx = Some(true);
            it.rx_usecs = Some(20);
        })
        .driver_counts("bw_in_allowance_exceeded", (9000, 9400))
        .driver_counts("pps_allowance_exceeded", (0, 0));
    Case {
        name: "h03 allowances",
        host: Host::guest(16, AMAZON).card(card),
        none: first("cloud-nic"),
        latency: first("cloud-nic").found(&["irq-coalesce-adaptive"]),
        throughput: first("cloud-nic"),
    }
}

fn gve() -> Case {
    let card = Card::new("eth0", "gve", -1).queues(8, 8, 0..8).with(|card| card.kind = Kind::Split);
    Case {
        name: "h04 gve",
        host: Host::guest(8, GOOGLE).card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: NOTHING,
    }
}

/// A synthetic card that carries this many of its packets by its VF.
fn netvsc(by_vf: (u64, u64)) -> Card {
    Card::new("eth0", "hv_netvsc", 50_000)
        .queues(8, 64, [])
        .driver_counts("vf_rx_packets", by_vf)
        .driver_counts("vf_tx_packets", by_vf)
}

/// The VF is down: every packet takes the slow path through the hypervisor.
fn azure_vf_down() -> Case {
    let vf = Card::new("enP1s1", "mlx5_core", 50_000).below("eth0").with(|card| card.is_up = false);
    Case {
        name: "h05 VF down",
        host: Host::guest(16, MICROSOFT).card(netvsc((1000, 1000))).card(vf),
        none: first("netvsc-vf@eth0"),
        latency: first("netvsc-vf@eth0"),
        throughput: first("netvsc-vf@eth0"),
    }
}

/// The VF is up, and the host sends it nothing.
fn azure_vf_unused() -> Case {
    let vf = Card::new("enP1s1", "mlx5_core", 50_000).below("eth0").counts("rx_packets", (9, 9));
    Case {
        name: "h05b VF unused",
        host: Host::guest(16, MICROSOFT).card(netvsc((9, 9))).card(vf),
        none: first("netvsc-vf@eth0"),
        latency: first("netvsc-vf@eth0"),
        throughput: first("netvsc-vf@eth0"),
    }
}

fn virtio_one_queue() -> Case {
    let card = Card::new("eth0", "virtio_net", -1).queues(1, 1, [0]);
    Case {
        name: "h06 virtio, one queue",
        host: Host::guest(4, "QEMU").card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("rps-cpus"),
    }
}

fn more_queues_than_cpus() -> Case {
    let card =
        Card::new("eth0", "gve", -1).queues(16, 16, 0..8).with(|card| card.kind = Kind::Split);
    Case {
        name: "h17 more queues than CPUs",
        host: Host::guest(8, GOOGLE).card(card),
        none: first("channels-vs-cpus"),
        latency: first("channels-vs-cpus"),
        throughput: first("channels-vs-cpus"),
    }
}

/// Azure's own card below the synthetic one: in use, and all of its interrupts on CPU 0.
fn mana() -> Case {
    let vf = Card::new("enP30832s1", "mana", 200_000).below("eth0").queues(8, 16, [0]);
    let unknown = NOTHING.unjudged(&["irq-affinity@enP30832s1"]);
    Case {
        name: "mana",
        host: Host::guest(8, MICROSOFT).card(netvsc((3_990_000, 4_089_900))).card(vf),
        none: unknown,
        latency: unknown,
        throughput: unknown.also(&["gro-max-size"]),
    }
}

/// Adaptive moderation that stands at a long delay: off is worse without a shorter one.
fn adaptive() -> Case {
    let card = Card::new("eth0", "ice", 25_000).on_node(0).queues(8, 8, 0..8).coalesce(|it| {
        it.adaptive_rx = Some(true);
        it.rx_usecs = Some(100);
    });
    Case {
        name: "k_ad adaptive",
        host: Host::metal(8, 1).card(card),
        none: NOTHING,
        latency: first("irq-coalesce-adaptive"),
        throughput: NOTHING,
    }
}
