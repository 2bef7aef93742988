//! Hosts with isolated CPUs.

use super::card::Card;
use super::expect::{Case, NOTHING, first};
use super::tree::Host;

pub fn hosts() -> Vec<Case> {
    vec![dpdk(), trading_wrong(), trading_right()]
}

/// A packet processor in user space; the kernel keeps a card for its administrator.
fn dpdk() -> Case {
    let card = Card::new("eth0", "igb", 1000).on_node(0).queues(4, 4, [0, 1]);
    Case {
        name: "h11 DPDK",
        host: Host::metal(32, 2)
            .isolate("2-15,18-31")
            .governor("powersave")
            .idle_state(2, "C6", 133, false)
            .card(card),
        none: NOTHING,
        latency: first("cpu-cstates").found(&["cpu-governor"]).also(&["cpu-min-freq"]),
        throughput: first("cpu-governor").also(&["cpu-min-freq"]),
    }
}

/// Times should be short, and most interrupts go to the CPUs that were isolated for the program.
fn trading_wrong() -> Case {
    let card = Card::new("eth0", "mlx5_core", 25_000)
        .on_node(0)
        .queues(16, 16, 0..16)
        .pause(true, true, (0, 0))
        .coalesce(|it| {
            it.adaptive_rx = Some(true);
            it.rx_usecs = Some(20);
            it.cqe_mode_rx = Some(true);
        });
    Case {
        name: "h12 trading, wrong",
        host: Host::metal(16, 1)
            .isolate("4-15")
            .idle_state(2, "C6", 133, false)
            .file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
            .card(card),
        none: NOTHING.also(&["irq-isolated-cpus"]),
        latency: first("irq-isolated-cpus").found(&[
            "flow-control-pause",
            "irq-coalesce-adaptive",
            "irq-coalesce-cqe-mode",
            "cpu-cstates",
            "thp-ksm-swap",
        ]),
        throughput: NOTHING.also(&["irq-isolated-cpus", "channels-combined", "channels-vs-cpus"]),
    }
}

/// The same, set up with care: four queues on the two CPUs that are left to the kernel.
fn trading_right() -> Case {
    let card = Card::new("eth0", "mlx5_core", 25_000)
        .on_node(0)
        .queues(4, 16, [0, 1])
        .pause(false, false, (0, 0))
        .coalesce(|it| {
            it.rx_usecs = Some(0);
            it.cqe_mode_rx = Some(false);
        });
    Case {
        name: "h12b trading, right",
        host: Host::metal(16, 1).isolate("2-15").idle_state(2, "C6", 133, true).card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("irq-coalesce-rx-usecs"),
    }
}
