//! Receive buffer limits and losses, compared with this kernel's defaults.

use crate::prelude::*;

const SYSCTL: &str = "kernel: Documentation/admin-guide/sysctl/net.rst";
const IP_SYSCTL: &str = "kernel: Documentation/networking/ip-sysctl.rst";
const FILE: &str = "/etc/sysctl.d/";

/// `SK_RMEM_MAX` (include/net/sock.h): 256 packets of 256 bytes with their truesize, on 64-bit. The default of
/// rmem_default, and up to 6.17 of rmem_max.
const OLD_DEFAULT_BYTES: i64 = 212_992;

/// What QUIC implementations ask for: quic-go's wiki, UDP Buffer Sizes.
const WANTED_BYTES: i64 = 7_500_000;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "socket-rcvbuf-actual",
        what: "Do UDP sockets lose datagrams because their buffer is full?",
        applies: "hosts whose UDP counters can be read and have received datagrams",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "each one is a datagram that a program never received",
        check: Check::Host(lost),
        why: "A datagram that finds its socket's buffer full is dropped. The program does not see the loss unless \
              it asks for it.",
        mechanism: "__udp_enqueue_schedule_skb (net/ipv4/udp.c) against sk_rcvbuf, which counts truesize: a \
                    small datagram takes several times its payload. Udp.RcvbufErrors counts.",
        not_when: "the reader is permanently too slow: a larger buffer only delays the loss",
        side_effects: "a longer queue is a longer wait",
        set_now: "more receiving threads or larger reads in the program; SO_RCVBUF with net.core.rmem_max",
        persist: "the application's configuration",
        undo: NOTHING_CHANGED,
        verify: "nstat -az UdpRcvbufErrors, twice; ss -uamn: d of the socket",
        since: "2.6; the drops of a socket 2.6.27",
        sources: &[
            "kernel: net/ipv4/udp.c __udp_enqueue_schedule_skb",
            "kernel: Documentation/networking/snmp_counter.rst",
        ],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "rmem-max",
        what: "May a program set a receive buffer large enough for a burst?",
        applies: "every host; it limits SO_RCVBUF of UDP and raw sockets, and of TCP sockets that set it",
        weight: Weight::by_goal()
            .when(Throughput, Info)
            .when(Benchmark, Info)
            .sized(Benchmark, Unmeasured),
        size: Multiple,
        effect: "about twice the transfer rate of a QUIC stack after doubling its receive buffer",
        figure_from: "quic-go issue 2255",
        check: Check::Host(max),
        why: "Programs that request more get only this limit, without an error.",
        mechanism: "sk_setsockopt SO_RCVBUF (net/core/sock.c) takes the smaller of the requested size and \
                    rmem_max, and doubles it for the packets' own overhead.",
        not_when: "latency: a longer queue is a longer wait; TCP does not need it, its buffer grows up to \
                   tcp_rmem[2] when the program sets none",
        side_effects: "any program may then hold as much kernel memory for each socket",
        set_now: "sysctl -w net.core.rmem_max=7500000",
        persist: FILE,
        verify: "ss -uamn: rb of the socket is twice what the program asked for",
        since: "2.2; 4 MiB by default since 6.18",
        sources: &[
            "kernel: net/core/sock.c sk_setsockopt",
            SYSCTL,
            "https://github.com/quic-go/quic-go/issues/2255",
        ],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "rmem-default",
        what: "Is the default socket receive buffer at least the kernel's default?",
        applies: "every host",
        weight: Weight::always(Warn),
        check: Check::Host(default),
        why: "Every UDP socket without SO_RCVBUF has this buffer size. Something lowered it.",
        mechanism: "sock_init_data (net/core/sock.c) copies it into sk_rcvbuf.",
        not_when: "thousands of sockets on little memory",
        side_effects: "sockets created later use more memory",
        set_now: "sysctl -w net.core.rmem_default=212992",
        persist: "remove the line that lowers it",
        verify: "sysctl net.core.rmem_default; existing sockets keep their size",
        since: "2.2",
        sources: &["kernel: net/core/sock.c sock_init_data", SYSCTL],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "tcp-mem",
        what: "Is TCP's memory limit (in pages) plausible for this host?",
        applies: "every host whose memory can be read",
        weight: Weight::always(Warn),
        size: Tens,
        effect: "under pressure every window shrinks; without a limit the host runs out of memory",
        check: Check::Host(tcp_mem),
        why: "The unit is pages. A limit given in bytes is thousands of times the memory: no limit at all.",
        mechanism: "tcp_enter_memory_pressure (net/ipv4/tcp.c) at the second number, no more memory at the third; \
                    tcp_init_mem derives them from the memory size.",
        not_when: "leave it to the kernel",
        side_effects: "acts at once on all connections",
        set_now: "sysctl -w net.ipv4.tcp_mem='...' with the three defaults, or remove the line and reboot",
        persist: "remove the line that sets it",
        verify: "the mem column of TCP in /proc/net/sockstat against the three numbers",
        since: "2.4",
        sources: &[IP_SYSCTL, "kernel: net/ipv4/tcp.c tcp_init_mem"],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "udp-mem",
        what: "Is UDP's memory limit (in pages) plausible and not reached?",
        applies: "every host whose memory can be read",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "beyond the limit datagrams are dropped even if the socket is empty",
        check: Check::Host(udp_mem),
        why: "All UDP sockets share this many pages. Beyond the limit datagrams are lost although no socket is \
              full.",
        mechanism: "__sk_mem_raise_allocated (net/core/sock.c); Udp.MemErrors counts since 5.11.",
        not_when: "leave it to the kernel, unless MemErrors rises",
        side_effects: "UDP may hold more memory",
        set_now: "sysctl -w net.ipv4.udp_mem='...' (pages)",
        persist: FILE,
        verify: "nstat -az UdpMemErrors; the mem column of UDP in /proc/net/sockstat",
        since: "2.6.25",
        sources: &[
            IP_SYSCTL,
            "kernel: net/ipv4/udp.c udp_init",
            "redhat-performance/tuned pull request 354 (a udp_mem of 12G 16G 64G taken out of a profile)",
        ],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "udp-rmem-min",
        what: "How much memory may a UDP socket use while UDP's memory is short?",
        applies: "every host",
        check: Check::Host(udp_min),
        why: "A socket that uses less than this is not affected by UDP memory pressure.",
        mechanism: "net.ipv4.udp_rmem_min: __sk_mem_raise_allocated lets sockets below it allocate.",
        not_when: "leave it",
        side_effects: "memory above udp_mem",
        set_now: "sysctl -w net.ipv4.udp_rmem_min=4096",
        persist: FILE,
        undo: VALUE_BACK,
        verify: "sysctl net.ipv4.udp_rmem_min",
        since: "2.6.25",
        sources: &[IP_SYSCTL],
        ..Rule::record(Area::Sockets)
    },
];

fn lost(ask: &Ask<'_>) -> Checked {
    let received = ask.facts.count("Udp.InDatagrams").known()?;
    let lost = ask.facts.count("Udp.RcvbufErrors").known()?;
    if lost.total == 0 {
        return if received.total == 0 {
            Answer::silent("no datagram came yet")
        } else {
            Answer::fine(format!("none of {} datagrams", received.total))
        };
    }
    let watched = &ask.facts.watched;
    let told = watched.tell(lost, "datagrams lost at full sockets", ask.facts.protocols_began());
    let ratio = lost.ratio_of(lost.plus(received)).unwrap_or(1.0);
    if ratio < RARE_RATIO {
        return Answer::fine(format!("{told}: less than one in a million"));
    }
    let of = if lost.evidence() == Evidence::Now { "what came in that time" } else { "what came" };
    let place = ask.facts.worst_udp_socket().map_or_else(String::new, |(port, drops)| {
        format!("; the socket of port {port} alone {drops} since it was opened")
    });
    Answer::found(
        format!("{told} ({} of {of}){place}", percent(ratio)),
        "none, or a count that no longer rises",
        "the reader was stopped or too slow for longer than its buffer lasts",
    )
    .advice("`rxpath diagnose` and `rxpath model bounds` show which of the two; counts of closed sockets are lost")
    .severity(if ratio > 0.01 { Fail } else { Warn })
    .rests_on(lost, watched)
}

fn max(ask: &Ask<'_>) -> Checked {
    let max = ask.facts.sysctl_number("net.core.rmem_max").known()?;
    if max >= WANTED_BYTES || max > OLD_DEFAULT_BYTES * 8 {
        return Answer::fine(format!("{max} bytes"));
    }
    Answer::found(
        format!("net.core.rmem_max is {max}"),
        format!("{WANTED_BYTES}, when programs here receive bursts over UDP or QUIC"),
        "a program that asks for a larger SO_RCVBUF silently gets this much",
    )
    .change(Set::new(Knob::sysctl("net.core.rmem_max"), WANTED_BYTES as u64))
}

fn default(ask: &Ask<'_>) -> Checked {
    let now = ask.facts.sysctl_number("net.core.rmem_default").known()?;
    if now >= OLD_DEFAULT_BYTES {
        return Answer::fine(format!("{now} bytes"));
    }
    Answer::found(
        format!("net.core.rmem_default is {now}"),
        format!("{OLD_DEFAULT_BYTES} or more, the kernel's own default"),
        "every socket that asks for no buffer of its own gets this little",
    )
    .change(Set::new(Knob::sysctl("net.core.rmem_default"), OLD_DEFAULT_BYTES as u64))
}

/// Pages of the whole memory: tcp_mem and udp_mem count pages of the kernel's size.
fn memory_pages(ask: &Ask<'_>) -> Result<i64, Gap> {
    Ok((ask.facts.memory_bytes().known()? / ask.facts.page_bytes().known()?.max(1)) as i64)
}

/// With fewer pages for all connections of a host, no connection works for long.
const DEAD_PAGES: i64 = 1024;

fn tcp_mem(ask: &Ask<'_>) -> Checked {
    let limits = ask.facts.sysctl_numbers("net.ipv4.tcp_mem").known()?;
    let max = limits.get(2).copied().or_gap("the third limit")?;
    let pages = memory_pages(ask)?;
    if max > pages {
        return Answer::found(
            format!("net.ipv4.tcp_mem ends at {max} pages, the host has {pages}"),
            "less than the memory: it counts pages, not bytes",
            "there is no limit in effect",
        )
        .advice("remove the line that sets it: the kernel's own limits follow the memory");
    }
    // tcp_init_mem (net/ipv4/tcp.c): a sixteenth of the free pages, and half of that more: 9.4 % at boot.
    if max * 64 < pages {
        let found = Answer::found(
            format!("net.ipv4.tcp_mem ends at {max} pages, the host has {pages}"),
            "about a tenth of the memory, the kernel's own limit",
            "all windows shrink when TCP holds this little",
        )
        .advice("remove the line that sets it");
        let is_dead = max < DEAD_PAGES;
        return if is_dead { found.severity(Fail).size(Loss) } else { found };
    }
    Answer::fine(format!("{max} of {pages} pages"))
}

fn udp_mem(ask: &Ask<'_>) -> Checked {
    let limits = ask.facts.sysctl_numbers("net.ipv4.udp_mem").known()?;
    let max = limits.get(2).copied().or_gap("the third limit")?;
    let pages = memory_pages(ask)?;
    let refused = ask.facts.count("Udp.MemErrors").known();
    if let Ok(refused @ Count { total: 1.., .. }) = refused {
        let watched = &ask.facts.watched;
        let told = watched.tell(
            refused,
            "datagrams found UDP's memory used up",
            ask.facts.protocols_began(),
        );
        return Answer::found(
            format!("{told}; udp_mem ends at {max} pages"),
            "none, or a count that no longer rises",
            "all UDP sockets share this limit",
        )
        .advice("fewer or smaller buffers, or a higher third number of net.ipv4.udp_mem")
        .rests_on(refused, watched);
    }
    if max > pages {
        return Answer::found(
            format!("net.ipv4.udp_mem ends at {max} pages, the host has {pages}"),
            "less than the memory: it counts pages, not bytes",
            "there is no limit in effect",
        )
        .advice("remove the line that sets it: the kernel's own limits follow the memory")
        .size(Unmeasured);
    }
    // Kernels before 5.11 count the other errors of UDP and not these.
    if refused.is_err() {
        ask.facts.counter("Udp.InErrors").known()?;
        return Answer::fine(format!(
            "{max} of {pages} pages; this kernel does not count refusals"
        ));
    }
    Answer::fine(format!("{max} of {pages} pages, none refused"))
}

fn udp_min(ask: &Ask<'_>) -> Checked {
    Answer::recorded(format!("{} bytes", ask.facts.sysctl_number("net.ipv4.udp_rmem_min").known()?))
}
