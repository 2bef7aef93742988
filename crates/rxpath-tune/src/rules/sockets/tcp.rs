//! TCP: buffers, options, queues of connections.

use crate::prelude::*;

const SYSCTL: &str = "kernel: Documentation/networking/ip-sysctl.rst";
const FILE: &str = "/etc/sysctl.d/";

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

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "tcp-rmem",
        what: "May TCP's receive buffers grow to this kernel's default?",
        applies: "every host whose memory and sysctls can be read",
        weight: Weight::always(Warn).when(Latency, Info).sized(Latency, Unmeasured),
        size: Tens,
        effect: "one connection transfers at most its window per round trip, about half of the buffer: 6 MiB at 100 \
                 ms is 0.25 Gb/s",
        check: Check::Host(tcp_rmem),
        why: "Old tuning guides and profiles contain sizes that were large then. On a new kernel these sizes \
              lower the default.",
        mechanism: "tcp_rcv_space_adjust (net/ipv4/tcp_input.c) grows the buffer up to tcp_rmem[2]; tcp_init sets \
                    the default by the memory: at most 6 MiB, 32 MiB since 6.16. The window is the buffer without \
                    overhead: half with tcp_adv_win_scale 1; since 6.6 derived from the packets' truesize, half \
                    at first.",
        not_when: "many connections on little memory, or a short window on purpose for latency",
        side_effects: "connections may hold more memory each, within tcp_mem",
        set_now: "sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'",
        persist: "remove the line from /etc/sysctl.d/ (or the tuned profile) that lowers it",
        verify: "sysctl net.ipv4.tcp_rmem; ss -tmi: rb of a connection over a long path",
        since: "2.4; 32 MiB by default since 6.16",
        sources: &[
            SYSCTL,
            "kernel: net/ipv4/tcp.c tcp_init",
            "kernel commit 572be9bf9d0d (32 MiB)",
            "tuned: profiles/network-throughput/tuned.conf",
        ],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "tcp-wmem",
        what: "May TCP's send buffers grow to the kernel's default?",
        applies: "every host whose memory and sysctls can be read",
        weight: Weight::always(Info).sized(Latency, Unmeasured),
        size: Tens,
        effect: "a sender keeps unacknowledged data: its buffer limits the data per round trip",
        check: Check::Host(tcp_wmem),
        why: "Replies over long paths need a window as large as requests do.",
        mechanism: "tcp_sndbuf_expand (net/ipv4/tcp_input.c) grows it up to tcp_wmem[2]; 4 MiB by default.",
        not_when: "many connections on little memory",
        side_effects: "connections may hold more memory each, within tcp_mem",
        set_now: "sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'",
        persist: FILE,
        verify: "ss -tmi: tb of a connection",
        since: "2.4",
        sources: &[SYSCTL, "kernel: net/ipv4/tcp.c tcp_init"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "tcp-moderate-rcvbuf",
        what: "Does TCP size its receive buffers itself?",
        applies: "every host",
        weight: Weight::always(Warn),
        size: Multiple,
        effect: "without it the window stays at about half of tcp_rmem[1]: with 128 KiB at 50 ms that is 10 Mb/s",
        check: Check::Host(moderate),
        why: "Without it every connection keeps its initial window.",
        mechanism: "tcp_rcv_space_adjust (net/ipv4/tcp_input.c) does nothing when it is 0 or the program has \
                    set SO_RCVBUF.",
        not_when: "a measurement with a fixed window",
        side_effects: "buffers grow up to tcp_rmem[2]",
        set_now: "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1",
        persist: FILE,
        verify: "ss -tmi: rb grows during a transfer over a long path",
        since: "2.6.7",
        sources: &[SYSCTL, "kernel: net/ipv4/tcp_input.c tcp_rcv_space_adjust"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "tcp-timestamps",
        what: "Are TCP timestamps on?",
        applies: "every host",
        weight: Weight::always(Warn),
        check: Check::Host(timestamps),
        why: "Timestamps measure round trips and reject old segments of fast connections (PAWS). Old guides turn \
              them off to save 12 bytes per packet.",
        mechanism: "RFC 7323; the receive window needs them for its own round trip estimate \
                    (tcp_rcv_rtt_measure_ts).",
        not_when: "a private network where a measurement shows that the 12 bytes matter",
        side_effects: "12 bytes in each segment; existing connections keep their negotiated options",
        set_now: "sysctl -w net.ipv4.tcp_timestamps=1",
        persist: FILE,
        verify: "ss -ti: ts among the options",
        since: "2.2",
        sources: &[SYSCTL, "RFC 7323"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "tcp-sack",
        what: "Are selective acknowledgements on?",
        applies: "every host",
        weight: Weight::always(Warn),
        size: Multiple,
        effect: "without them each loss in a window costs a round trip",
        check: Check::Host(sack),
        why: "The sender learns which segments are missing and sends those only.",
        mechanism: "RFC 2018; loss recovery by RACK (RFC 8985) needs it.",
        not_when: "never on a network that can lose packets",
        side_effects: "existing connections keep their negotiated options",
        set_now: "sysctl -w net.ipv4.tcp_sack=1",
        persist: FILE,
        verify: "ss -ti: sack among the options",
        since: "2.2",
        sources: &[SYSCTL, "RFC 2018", "RFC 8985"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "tcp-backlog-ack-defer",
        what: "Are acknowledgements deferred while a socket backlog is processed?",
        applies: "kernels that have it",
        check: Check::Host(ack_defer),
        why: "One acknowledgement for the whole backlog instead of one for every other segment.",
        mechanism: "tcp_backlog_ack_defer: tcp_release_cb sends the acknowledgement when the socket is released.",
        not_when: "leave it at 1",
        side_effects: "fewer, later acknowledgements",
        set_now: "sysctl -w net.ipv4.tcp_backlog_ack_defer=1",
        persist: FILE,
        undo: VALUE_BACK,
        verify: "sysctl net.ipv4.tcp_backlog_ack_defer; acknowledgements per segment: nstat -az TcpOutSegs \
                 TcpInSegs",
        since: "6.7",
        sources: &[SYSCTL],
        ..Rule::record(Area::Sockets)
    },
    Rule {
        id: "tcp-comp-sack",
        what: "How far are selective acknowledgements compressed?",
        applies: "kernels that have it",
        check: Check::Host(comp_sack),
        why: "During a loss every segment would cause an acknowledgement; compression sends one for several.",
        mechanism: "tcp_comp_sack_nr and tcp_comp_sack_delay_ns limit number and delay (net/ipv4/tcp_input.c).",
        not_when: "leave it, unless you measured loss recovery with and without it",
        side_effects: "the sender learns of missing segments a little later",
        set_now: "sysctl -w net.ipv4.tcp_comp_sack_nr=44",
        persist: FILE,
        undo: VALUE_BACK,
        verify: "TcpExtTCPAckCompressed in /proc/net/netstat",
        since: "4.18",
        sources: &[SYSCTL],
        ..Rule::record(Area::Sockets)
    },
    Rule {
        id: "somaxconn",
        what: "Do accept queues overflow?",
        applies: "hosts whose TCP counters can be read",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "a connection that finds the accept queue full is dropped, and the client retries after a second",
        check: Check::Host(accept_queue),
        why: "A connection whose listener's queue is full is dropped; the client retries after a second.",
        mechanism: "sk_acceptq_is_full (include/net/sock.h) against the smaller of listen()'s backlog and \
                    net.core.somaxconn; ListenOverflows counts.",
        not_when: "the listener is permanently too slow: a longer queue only delays the loss",
        side_effects: "connections wait longer in a longer queue",
        set_now: "sysctl -w net.core.somaxconn=16384, and a larger backlog in the program; restart the listener",
        persist: FILE,
        verify: "nstat -az TcpExtListenOverflows, twice; ss -ltn: Recv-Q below Send-Q",
        since: "2.2; 4096 by default since 5.4",
        sources: &[SYSCTL, "kernel: net/ipv4/tcp_ipv4.c tcp_v4_syn_recv_sock"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "syn-backlog",
        what: "Are connection requests dropped before they are accepted?",
        applies: "hosts whose TCP counters can be read",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "a dropped SYN costs the client a second",
        check: Check::Host(syn_backlog),
        why: "A listener's queue of open handshakes is as long as its backlog. When it is full, the kernel sends a \
              SYN cookie, or drops the request.",
        mechanism: "tcp_conn_request (net/ipv4/tcp_input.c) checks inet_csk_reqsk_queue_is_full: the backlog of \
                    listen(), at most somaxconn. tcp_syn_flood_action then counts TCPReqQFullDoCookies, or \
                    TCPReqQFullDrop where tcp_syncookies is 0. tcp_max_syn_backlog matters only if tcp_syncookies \
                    is 0: when less than a quarter of it is left, requests of unknown clients are dropped, and \
                    only ListenDrops counts them.",
        not_when: "a SYN flood: a longer queue only gives the attacker more memory; use cookies",
        side_effects: "a connection from a cookie has fewer options; a longer queue holds more memory",
        set_now: "sysctl -w net.ipv4.tcp_syncookies=1, and a larger backlog in the program's listen()",
        persist: FILE,
        verify: "nstat -az TcpExtTCPReqQFullDrop, twice",
        since: "2.2",
        sources: &[SYSCTL, "kernel: net/ipv4/tcp_input.c tcp_conn_request"],
        ..Rule::judge(Area::Sockets)
    },
];

/// net/ipv4/tcp.c `tcp_init`: `tcp_rmem[1]` is 131072; `starving-settings` calls less than a part of it too small.
const DEFAULT_START_BYTES: i64 = 131_072;
const SMALL_START_BYTES: i64 = 16_384;

fn tcp_rmem(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_numbers("net.ipv4.tcp_rmem").known()?;
    let [min, start, max] = now[..] else {
        return Err(Gap::Absent("net.ipv4.tcp_rmem does not hold three numbers".into()));
    };
    let default = default_rmem_max(ask)?;
    // The kernel counts the pages that were free at boot: a margin of a fifth allows for the rest.
    if max * 5 >= default * 4 {
        return Answer::fine(format!("up to {max} bytes"));
    }
    // A tiny initial window is not fixed by a larger maximum.
    let start = if start < SMALL_START_BYTES { DEFAULT_START_BYTES } else { start };
    Answer::found(
        format!("net.ipv4.tcp_rmem ends at {max} bytes"),
        format!("{default} or more: this kernel's default with this memory"),
        "something lowered it, as old profiles do",
    )
    .change(Set::new(Knob::sysctl("net.ipv4.tcp_rmem"), format!("{min} {start} {default}")))
}

/// net/ipv4/tcp.c `tcp_init`: `max_wshare` is at most 4 MiB.
const DEFAULT_WMEM_BYTES: i64 = 4 << 20;

fn tcp_wmem(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_numbers("net.ipv4.tcp_wmem").known()?;
    let [min, start, max] = now[..] else {
        return Err(Gap::Absent("net.ipv4.tcp_wmem does not hold three numbers".into()));
    };
    let default = DEFAULT_WMEM_BYTES.min(ask.facts.memory_bytes().known()? as i64 / 128);
    if max * 5 >= default * 4 {
        return Answer::fine(format!("up to {max} bytes"));
    }
    Answer::found(
        format!("net.ipv4.tcp_wmem ends at {max} bytes"),
        format!("{default} or more: the kernel's default with this memory"),
        "something lowered it",
    )
    .change(Set::new(Knob::sysctl("net.ipv4.tcp_wmem"), format!("{min} {start} {default}")))
}

/// A switch that is right at `wanted` or above.
fn switch(ask: &Ask<'_>, key: &str, why: &str) -> Checked {
    match ask.facts.sysctl_number(key).known()? {
        0 => Answer::found(format!("{key} is 0"), "1, the default", why)
            .change(Set::new(Knob::sysctl(key), 1)),
        value => Answer::fine(format!("{key} is {value}")),
    }
}

fn moderate(ask: &Ask<'_>) -> Checked {
    switch(ask, "net.ipv4.tcp_moderate_rcvbuf", "every connection keeps its initial window")
}

fn timestamps(ask: &Ask<'_>) -> Checked {
    switch(
        ask,
        "net.ipv4.tcp_timestamps",
        "round trips are measured less precisely, and old segments are not rejected",
    )
}

fn sack(ask: &Ask<'_>) -> Checked {
    switch(ask, "net.ipv4.tcp_sack", "each loss in a window costs a separate round trip")
}

fn ack_defer(ask: &Ask<'_>) -> Checked {
    Answer::recorded(ask.facts.sysctl_number("net.ipv4.tcp_backlog_ack_defer").known()?.to_string())
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
    let watched = &ask.facts.watched;
    let told = watched.tell(
        overflows,
        "connections found their listener's queue full",
        ask.facts.protocols_began(),
    );
    let found = Answer::found(
        format!("{told}; somaxconn is {max}"),
        "none, or a count that no longer rises",
        "clients wait a second and retry",
    )
    .advice("a larger backlog in the program's listen(), and a faster accept loop");
    let set = (max < 4096).then(|| Set::new(Knob::sysctl("net.core.somaxconn"), 4096));
    found.changes(set).rests_on(overflows, watched)
}

fn syn_backlog(ask: &Ask<'_>) -> Checked {
    let dropped = ask.facts.count("TcpExt.TCPReqQFullDrop").known()?;
    let cookies = ask.facts.sysctl_number("net.ipv4.tcp_syncookies").known()?;
    if dropped.total == 0 {
        return Answer::fine(format!("none dropped; tcp_syncookies is {cookies}"));
    }
    let watched = &ask.facts.watched;
    let told = watched.tell(dropped, "connection requests dropped", ask.facts.protocols_began());
    let found = Answer::found(
        format!("{told}; tcp_syncookies is {cookies}"),
        "none, or a count that no longer rises; tcp_syncookies 1",
        "a listener's queue of open handshakes was full, and no cookie was sent instead",
    );
    let longer = "a larger backlog in the program's listen(): that is the length of the queue";
    let advice = match cookies {
        0 => format!(
            "sysctl -w net.ipv4.tcp_syncookies=1 (it guards the host: rxpath never changes it), and {longer}"
        ),
        _ => longer.to_owned(),
    };
    found.advice(advice).rests_on(dropped, watched)
}
