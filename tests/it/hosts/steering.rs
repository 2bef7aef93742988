//! Packets that software sends to CPUs.

use super::card::Card;
use super::expect::{Case, NOTHING, first};
use super::tree::Host;

pub fn hosts() -> Vec<Case> {
    vec![one_queue_two_nodes(), all_to_one_cpu(), to_the_other_node(), to_offline_cpus()]
}

/// One queue, two nodes, isolated CPUs: RPS helps, on the CPUs of the node that are not isolated.
fn one_queue_two_nodes() -> Case {
    let card = Card::new("eth0", "igb", 1000).on_node(1).queues(1, 1, [8]);
    Case {
        name: "h18 one queue, two nodes",
        host: Host::metal(16, 2).isolate("12-15").card(card),
        none: NOTHING,
        latency: NOTHING,
        throughput: first("rps-cpus"),
    }
}

/// RPS that gathers on CPU 0 what eight queues had spread.
fn all_to_one_cpu() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000)
        .on_node(0)
        .queues(8, 16, 0..8)
        .with(|card| card.rps = "0001".into());
    Case {
        name: "h19 RPS to CPU 0",
        host: Host::metal(16, 1).card(card),
        none: first("rps-mask"),
        latency: first("rps-mask").also(&["rps-cpus"]),
        throughput: first("rps-mask").also(&["rps-cpus"]),
    }
}

/// RPS to the node that the card is not attached to.
fn to_the_other_node() -> Case {
    let card = Card::new("eth0", "i40e", 10_000)
        .on_node(0)
        .queues(4, 4, 0..4)
        .with(|card| card.rps = "ff00".into());
    Case {
        name: "h20 RPS to the other node",
        host: Host::metal(16, 2).card(card),
        none: NOTHING.also(&["rps-mask"]),
        latency: first("rps-mask").also(&["rps-cpus"]),
        throughput: first("rps-mask").also(&["rps-cpus"]),
    }
}

/// RPS to CPUs that are offline.
fn to_offline_cpus() -> Case {
    let card = Card::new("eth0", "igb", 1000)
        .on_node(0)
        .queues(2, 2, [0, 1])
        .with(|card| card.rps = "c0".into());
    let host = Host { offline: vec![6, 7], ..Host::metal(8, 1) };
    Case {
        name: "k_rpsoff RPS to offline CPUs",
        host: host.card(card),
        none: first("rps-mask"),
        latency: first("rps-mask").also(&["rps-cpus"]),
        throughput: first("rps-mask").also(&["rps-cpus"]),
    }
}
