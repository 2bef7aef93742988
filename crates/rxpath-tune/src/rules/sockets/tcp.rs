//! TCP: buffers, options, queues of connections.

use crate::prelude::*;

/// TCP's default maximum receive buffer.
///
/// **Source** net/ipv4/tcp.c `tcp_init`: the smaller of this size and 1/128 of the memory; 6 MiB up to 6.15, 32 MiB
/// since 6.16 (commit 572be9bf9d0d).
fn default_rmem_max(ask: &Ask<'_>) -> Result<i64, Gap> {
    let memory = ask.facts.memory_bytes().known()? as i64;
    (&ask.facts.kernel.version).known()?;
    let limit = if ask.facts.kernel.is_since(6, 16) { 32 << 20 } else { 6 << 20 };
    Ok(limit.min(memory / 128))
}

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("tcp-rmem", Check::Host(tcp_rmem)),
    ("tcp-wmem", Check::Host(tcp_wmem)),
    ("tcp-moderate-rcvbuf", Check::Host(|ask| switch(ask, "net.ipv4.tcp_moderate_rcvbuf"))),
    ("tcp-timestamps", Check::Host(|ask| switch(ask, "net.ipv4.tcp_timestamps"))),
    ("tcp-sack", Check::Host(|ask| switch(ask, "net.ipv4.tcp_sack"))),
    (
        "tcp-backlog-ack-defer",
        Check::Host(|ask| recorded(ask, "net.ipv4.tcp_backlog_ack_defer", "")),
    ),
    ("tcp-comp-sack", Check::Host(comp_sack)),
    ("somaxconn", Check::Host(accept_queue)),
    ("syn-backlog", Check::Host(syn_backlog)),
];

/// net/ipv4/tcp.c `tcp_init`: `tcp_rmem[1]` is 131072; `starving-settings` calls less than a part of it too small.
const DEFAULT_START_BYTES: i64 = 131_072;
const SMALL_START_BYTES: i64 = 16_384;

fn tcp_rmem(ask: &Ask<'_>) -> Checked {
    let why = ("this kernel's", "something lowered it, as old profiles do");
    limits(ask, "net.ipv4.tcp_rmem", default_rmem_max, SMALL_START_BYTES, why)
}

/// net/ipv4/tcp.c `tcp_init`: `max_wshare` is at most 4 MiB.
fn default_wmem_max(ask: &Ask<'_>) -> Result<i64, Gap> {
    let memory = ask.facts.memory_bytes().known()? as i64;
    Ok((memory / 128).min(4 << 20))
}

fn tcp_wmem(ask: &Ask<'_>) -> Checked {
    limits(ask, "net.ipv4.tcp_wmem", default_wmem_max, 0, ("the kernel's", "something lowered it"))
}

/// The limits of a buffer, of which the last is not far below the kernel's default.
fn limits(
    ask: &Ask<'_>,
    key: &str,
    default: fn(&Ask<'_>) -> Result<i64, Gap>,
    small_start_bytes: i64,
    (whose, why): (&str, &str),
) -> Checked {
    let now = ask.facts.sysctl_numbers(key).known()?;
    let [min, start, max] = now[..] else {
        return Err(Gap::Absent(format!("{key} does not hold three numbers")));
    };
    let default = default(ask)?;
    // The kernel counts the pages that were free at boot: a margin of a fifth allows for the rest.
    if max * 5 >= default * 4 {
        return Answer::fine(format!("up to {max} bytes"));
    }
    // A tiny initial window is not fixed by a larger maximum.
    let start = if start < small_start_bytes { DEFAULT_START_BYTES } else { start };
    Answer::found(
        format!("{key} ends at {max} bytes"),
        format!("{default} or more: {whose} default with this memory"),
        why,
    )
    .change(Set::new(Knob::sysctl(key), format!("{min} {start} {default}")))
}

/// A switch that should be on.
fn switch(ask: &Ask<'_>, key: &str) -> Checked {
    match ask.facts.sysctl_number(key).known()? {
        0 => Answer::observed(format!("{key} is 0")).change(Set::new(Knob::sysctl(key), 1)),
        value => Answer::fine(format!("{key} is {value}")),
    }
}

fn comp_sack(ask: &Ask<'_>) -> Checked {
    let count = ask.facts.sysctl_number("net.ipv4.tcp_comp_sack_nr").known()?;
    let delay = ask.facts.sysctl_number("net.ipv4.tcp_comp_sack_delay_ns").known()?;
    Answer::recorded(format!("at most {count}, for at most {delay} ns"))
}

fn accept_queue(ask: &Ask<'_>) -> Checked {
    let overflows = ask.facts.count("TcpExt.ListenOverflows").known()?;
    let max = ask.facts.sysctl_number("net.core.somaxconn").known()?;
    if overflows.total == 0 {
        return Answer::fine(format!("no overflow; somaxconn is {max}"));
    }
    let told = ask.facts.watched.tell(
        overflows,
        "connections found a listener's queue full",
        ask.facts.protocols_began(),
    );
    let found = Answer::observed(format!("{told}; somaxconn is {max}"))
        .advice("a larger backlog in the program's listen(), and a faster accept loop");
    let set = (max < 4096).then(|| Set::new(Knob::sysctl("net.core.somaxconn"), 4096));
    found.changes(set).rests_on(overflows, &ask.facts.watched)
}

fn syn_backlog(ask: &Ask<'_>) -> Checked {
    let dropped = ask.facts.count("TcpExt.TCPReqQFullDrop").known()?;
    let cookies = ask.facts.sysctl_number("net.ipv4.tcp_syncookies").known()?;
    if dropped.total == 0 {
        return Answer::fine(format!("none dropped; tcp_syncookies is {cookies}"));
    }
    let told =
        ask.facts.watched.tell(dropped, "connection requests dropped", ask.facts.protocols_began());
    let found = Answer::observed(format!("{told}; tcp_syncookies is {cookies}"));
    let longer = "a larger backlog in the program's listen(): that is the length of the queue";
    let advice = match cookies {
        0 => format!(
            "sysctl -w net.ipv4.tcp_syncookies=1 (it guards the host: rxpath never changes it), and {longer}"
        ),
        _ => longer.to_owned(),
    };
    found.advice(advice).rests_on(dropped, &ask.facts.watched)
}
