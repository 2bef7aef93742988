//! Servers with fast cards.

use rxpath_core::{CpuList, Fact};
use rxpath_host::read::ioctl::{FlowKind, HashFields};

use super::card::{Card, Kind};
use super::expect::{Case, NOTHING, first};
use super::tree::Host;

pub fn hosts() -> Vec<Case> {
    vec![
        wrong_node(),
        one_queue_that_loses(),
        one_queue(),
        right(),
        half_far(),
        many_cpus(),
        unknown_names(),
        old_kernel(),
    ]
}

/// 100 Gb/s, two nodes of 32 CPUs: interrupts on the wrong node, RPS on every queue, a slot with half of the lanes.
fn wrong_node() -> Case {
    let card = Card::new("eth0", "mlx5_core", 100_000)
        .on_node(1)
        .queues(63, 63, 0..32)
        .ring(1024, 8192)
        .pcie("8.0", "8", "16")
        .pause(true, true, (120_000, 121_000))
        .driver_counts("rx_out_of_buffer", (40_000, 40_400))
        .with(|card| {
            card.hints = (32..64).collect();
            card.rps = CpuList((0..64).collect()).to_mask();
            let addresses = Fact::ok(HashFields(HashFields::ADDRESSES));
            card.answers.flow_hash.insert(FlowKind::Udp4, addresses);
        });
    Case {
        name: "h01 wrong node",
        host: Host::metal(64, 2).governor("powersave").runs("irqbalance").card(card),
        none: first("nic-stats-drop-counters")
            .found(&["ring-rx", "pcie-link"])
            .also(&["rps-cpus|rps-mask"]),
        latency: first("nic-stats-drop-counters")
            .found(&[
                "ring-rx",
                "flow-control-pause",
                "irq-numa-local",
                "irqbalance-running",
                "pcie-link",
                "cpu-governor",
                "rps-cpus|rps-mask",
            ])
            .also(&["other-managers", "cpu-min-freq"]),
        throughput: first("nic-stats-drop-counters")
            .found(&[
                "ring-rx",
                "flow-control-pause",
                "irq-numa-local",
                "irq-affinity-hint",
                "rss-fields-udp4",
                "pcie-link",
                "cpu-governor",
                "rps-cpus|rps-mask",
            ])
            .also(&["gro-max-size", "cpu-min-freq"]),
    }
}

/// One queue of 63 takes everything, and loses a part of it.
fn one_queue_that_loses() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000)
        .on_node(0)
        .queues(1, 63, [0])
        .ring(512, 4096)
        .counts("rx_missed_errors", (20_000, 20_500));
    let losses = first("nic-stats-drop-counters")
        .found(&["channels-combined", "ring-rx"])
        .order(&["nic-stats-drop-counters", "channels-combined", "ring-rx"]);
    Case {
        name: "h02 one queue that loses",
        host: Host::metal(16, 1).card(card),
        none: losses,
        latency: losses,
        throughput: first("nic-stats-drop-counters").found(&["channels-combined", "ring-rx"]),
    }
}

/// One queue of 63 without a loss: good enough until somebody wants throughput.
fn one_queue() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000).on_node(0).queues(1, 63, [0]);
    Case {
        name: "h02b one queue",
        host: Host::metal(16, 1).card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("channels-combined"),
    }
}

/// A server that was set up with care.
fn right() -> Case {
    let card = Card::new("eth0", "ice", 100_000).on_node(0).queues(16, 64, 0..16);
    Case {
        name: "h14 right",
        host: Host::metal(32, 2).card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("gro-max-size"),
    }
}

/// Half of the interrupts on the other node.
fn half_far() -> Case {
    let card = Card::new("eth0", "bnxt_en", 25_000).on_node(0).queues(4, 4, [0, 1, 8, 9]);
    Case {
        name: "h16 half far",
        host: Host::metal(16, 2).card(card),
        none: NOTHING,
        latency: first("irq-numa-local"),
        throughput: first("irq-numa-local"),
    }
}

/// 400 Gb/s and two nodes of 96 CPUs, set up with care.
fn many_cpus() -> Case {
    let card = Card::new("eth0", "mlx5_core", 400_000).on_node(0).queues(63, 63, 0..63);
    Case {
        name: "400g many CPUs",
        host: Host::metal(192, 2).card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("gro-max-size"),
    }
}

/// A driver whose interrupts do not say in their names which queue they serve, on a kernel that does not link them.
fn unknown_names() -> Case {
    let card = Card::new("eth0", "mlx4_en", 40_000)
        .on_node(0)
        .queues(8, 8, [0])
        .with(|card| card.kind = Kind::Split);
    let host = Host { kernel: "5.15.0", ..Host::metal(8, 1) };
    let unknown = NOTHING.unjudged(&["irq-affinity@eth0"]);
    Case {
        name: "mlx4 unknown names",
        host: host.card(card),
        none: unknown,
        latency: unknown,
        throughput: unknown,
    }
}

/// Enterprise Linux 8: a kernel that lacks half of the settings.
fn old_kernel() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000).on_node(0).queues(8, 63, 0..8);
    let host = Host { kernel: "4.18.0-553.el8.x86_64", hz: 1000, ..Host::metal(8, 1) };
    Case {
        name: "el8 old kernel",
        host: host
            .sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456")
            .sysctl("net.core.somaxconn", "128")
            .card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: NOTHING,
    }
}
