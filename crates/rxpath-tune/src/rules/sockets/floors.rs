//! Settings so small that the receive path starves at any load.

use super::floor::{Floor, floor, judge, read};
use crate::prelude::*;

/// **Source** of the defaults: net/core/hotdata.c, net/core/net_namespace.c, net/ipv4/tcp.c `tcp_init`, net/ipv4/udp.c
/// `udp_init` (6.18).
const FLOORS: [Floor; 12] = [
    floor("net.core.netdev_budget", 64, Some(300), "a round ends before one poll of 64 packets"),
    floor("net.core.netdev_budget_usecs", 500, None, "a round ends after some packets"),
    floor("net.core.dev_weight", 8, Some(64), "each poll of a backlog ends after some packets"),
    floor(
        "net.core.netdev_max_backlog",
        100,
        Some(1000),
        "a burst of some packets overflows the backlog",
    ),
    floor(
        "net.core.somaxconn",
        64,
        Some(4096),
        "a burst of connections overflows each accept queue",
    ),
    floor(
        "net.ipv4.tcp_max_syn_backlog",
        64,
        None,
        "a burst of connections overflows each listener",
    ),
    floor(
        "net.ipv4.tcp_window_scaling",
        1,
        Some(1),
        "a connection transfers at most 64 KiB per round trip",
    ),
    floor(
        "net.ipv4.tcp_adv_win_scale",
        -2,
        Some(1),
        "a small part of each receive buffer becomes its window",
    )
    .until(6, 6),
    floor("net.ipv4.tcp_syncookies", 1, None, "a SYN flood locks out all clients"),
    floor("net.ipv4.tcp_rmem", 16_384, None, "connections begin with a window of some segments")
        .part(1),
    floor("net.ipv4.tcp_mem", 1024, None, "all connections together may hold 4 MiB or less")
        .part(2)
        .deadly(),
    floor("net.ipv4.udp_mem", 1024, None, "all UDP sockets together may hold 4 MiB or less")
        .part(2)
        .deadly(),
];

/// Rules of this file.
pub const RULES: RuleFile = RuleFile {
    name: "sockets/floors.toml",
    text: include_str!("floors.toml"),
    checks: &[("starving-settings", Check::Host(floors))],
};

fn floors(ask: &Ask<'_>) -> Checked {
    let answer = judge(read(ask.facts, &FLOORS), |count| {
        format!("{count} settings are large enough to work")
    })?;
    if matches!(answer, Answer::Fine(_)) {
        // An unread setting may be the one that is too small, and the version decides whether a setting applies.
        ask.facts.sysctl_numbers("net.ipv4.tcp_mem").known()?;
        (&ask.facts.kernel.version).known()?;
    }
    Ok(answer)
}
