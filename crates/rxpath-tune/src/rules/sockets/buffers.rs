//! Receive buffer limits and losses, compared with this kernel's defaults.

use rxpath_core::number::grouped;

use crate::prelude::*;

/// `SK_RMEM_MAX` (include/net/sock.h): 256 packets of 256 bytes with their truesize, on 64-bit. The default of
/// rmem_default, and up to 6.17 of rmem_max.
const OLD_DEFAULT_BYTES: i64 = 212_992;

/// What QUIC implementations ask for: quic-go's wiki, UDP Buffer Sizes.
const WANTED_BYTES: i64 = 7_500_000;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("socket-rcvbuf-actual", Check::Host(lost)),
    ("rmem-max", Check::Host(max)),
    ("rmem-default", Check::Host(default)),
    ("tcp-mem", Check::Host(tcp_mem)),
    ("udp-mem", Check::Host(udp_mem)),
    ("udp-rmem-min", Check::Host(|ask| recorded(ask, "net.ipv4.udp_rmem_min", " bytes"))),
];

fn lost(ask: &Ask<'_>) -> Checked {
    let received = ask.facts.count("Udp.InDatagrams").known()?;
    let lost = ask.facts.count("Udp.RcvbufErrors").known()?;
    if lost.total == 0 {
        return if received.total == 0 {
            Answer::silent("no datagram came yet")
        } else {
            Answer::fine(format!("none of {} datagrams", grouped(received.total)))
        };
    }
    let told =
        ask.facts.watched.tell(lost, "datagrams lost at full sockets", ask.facts.protocols_began());
    let ratio = lost.ratio_of(lost.plus(received)).unwrap_or(1.0);
    if ratio < RARE_RATIO {
        return Answer::fine(format!("{told}: less than one in a million"));
    }
    let of = if lost.evidence() == Evidence::Now { "what came in that time" } else { "what came" };
    let place = ask.facts.worst_udp_socket().map_or_else(String::new, |(port, drops)| {
        format!("; the socket of port {port} alone {} since it was opened", grouped(drops))
    });
    Answer::observed(format!("{told} ({} of {of}){place}", percent(ratio)))
    .advice("`rxpath diagnose` and `rxpath model bounds` show which of the two; counts of closed sockets are lost")
    .severity(if ratio > 0.01 { Fail } else { Warn })
    .rests_on(lost, &ask.facts.watched)
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

/// The last number of tcp_mem or udp_mem, and the whole memory, both in pages of the kernel's size.
fn memory_limit(ask: &Ask<'_>, key: &str) -> Result<(i64, i64), Gap> {
    let max = ask.facts.sysctl_numbers(key).known()?.get(2).copied().or_gap("the third limit")?;
    let pages = ask.facts.memory_bytes().known()? / ask.facts.page_bytes().known()?.max(1);
    Ok((max, pages as i64))
}

fn beyond_memory(key: &str, max: i64, pages: i64) -> Checked {
    Answer::found(
        format!("{key} ends at {max} pages, the host has {pages}"),
        "less than the memory: it counts pages, not bytes",
        "there is no limit in effect",
    )
    .advice("remove the line that sets it: the kernel's own limits follow the memory")
}

/// With fewer pages for all connections of a host, no connection works for long.
const DEAD_PAGES: i64 = 1024;

fn tcp_mem(ask: &Ask<'_>) -> Checked {
    let (max, pages) = memory_limit(ask, "net.ipv4.tcp_mem")?;
    if max > pages {
        return beyond_memory("net.ipv4.tcp_mem", max, pages);
    }
    // tcp_init_mem (net/ipv4/tcp.c): a sixteenth of the free pages, and half of that more: 9.4 % at boot.
    if max * 64 < pages {
        let found = Answer::found(
            format!("net.ipv4.tcp_mem ends at {max} pages, the host has {pages}"),
            "about a tenth of the memory, the kernel's own limit",
            "all windows shrink when TCP holds this little",
        )
        .advice("remove the line that sets it");
        return if max < DEAD_PAGES { found.severity(Fail).size(Loss) } else { found };
    }
    Answer::fine(format!("{max} of {pages} pages"))
}

fn udp_mem(ask: &Ask<'_>) -> Checked {
    let (max, pages) = memory_limit(ask, "net.ipv4.udp_mem")?;
    let refused = ask.facts.count("Udp.MemErrors").known();
    if let Ok(refused @ Count { total: 1.., .. }) = refused {
        let told = ask.facts.watched.tell(
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
        .rests_on(refused, &ask.facts.watched);
    }
    if max > pages {
        return beyond_memory("net.ipv4.udp_mem", max, pages).size(Unmeasured);
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
