//! Settings that starve the host, and counters that tell of losses.

use super::card::Card;
use super::expect::{Case, NOTHING, first};
use super::tree::Host;

pub fn hosts() -> Vec<Case> {
    vec![old_guide(), losses()]
}

/// What an old guide and a typing error leave of TCP.
fn old_guide() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000).on_node(0).queues(8, 63, 0..8);
    let host = Host { kernel: "6.1.0-28-amd64", ..Host::metal(8, 1) };
    let host = STARVING.iter().fold(host, |host, (key, value)| host.sysctl(key, value));
    let found = first("tcp-mem")
        .found(&["starving-settings", "protocol-limits", "tcp-sack", "tcp-timestamps", "tcp-rmem"])
        .order(&["tcp-mem", "starving-settings", "tcp-sack"])
        .also(&["dev-weight"]);
    Case {
        name: "h21 old guide",
        host: host
            .sysctl("net.ipv4.tcp_sack", "0")
            .sysctl("net.ipv4.tcp_timestamps", "0")
            .card(card),
        none: found,
        latency: found,
        throughput: found,
    }
}

/// Settings so small that nothing works well with them.
pub const STARVING: &[(&str, &str)] = &[
    ("net.core.netdev_budget", "1"),
    ("net.core.netdev_budget_usecs", "1"),
    ("net.core.netdev_max_backlog", "1"),
    ("net.core.somaxconn", "16"),
    ("net.ipv4.tcp_mem", "100 200 300"),
    ("net.ipv4.udp_mem", "10 20 30"),
    ("net.ipv4.tcp_rmem", "4096 4096 16384"),
    ("net.ipv4.tcp_window_scaling", "0"),
    ("net.ipv4.tcp_adv_win_scale", "-8"),
    ("net.ipv4.tcp_syncookies", "0"),
    ("net.ipv4.ipfrag_high_thresh", "0"),
];

/// Losses at every place that counts them.
fn losses() -> Case {
    let card = Card::new("eth0", "ixgbe", 10_000)
        .on_node(0)
        .queues(8, 63, 0..8)
        .counts("rx_crc_errors", (36_000, 36_900))
        .counts("rx_errors", (36_000, 36_900));
    Case {
        name: "h22 losses",
        host: Host::metal(8, 1)
            .squeezed((900, 1900))
            .counted("TcpExt.TCPBacklogDrop", (5000, 5200))
            .counted("TcpExt.RcvPruned", (5000, 5200))
            .counted("TcpExt.PruneCalled", (5000, 5200))
            .counted("TcpExt.TCPOFODrop", (5000, 5200))
            .counted("Udp.InCsumErrors", (300_000, 300_300))
            .counted("Udp.InErrors", (300_000, 300_300))
            .counted("Ip.ReasmFails", (5000, 5200))
            .counted("Ip.InDiscards", (5000, 5200))
            .counted("Tcp.RetransSegs", (3_600_000, 3_600_090))
            .card(card),
        none: NOTHING.open(),
        latency: NOTHING.open(),
        throughput: NOTHING.found(&["napi-budget"]).open(),
    }
}
