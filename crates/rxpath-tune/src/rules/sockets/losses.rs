//! Losses and damage that the protocols count while rxpath watches. Counts since boot are not used here.

use rxpath_core::number::grouped;

use crate::prelude::*;

/// Fewer in a window are not significant.
const FEW: u64 = 5;
/// The same for events that also happen on healthy networks.
const SOME: u64 = 20;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("tcp-receive-losses", Check::Host(tcp_losses)),
    ("tcp-retransmits", Check::Host(retransmits)),
    ("checksum-errors", Check::Host(checksums)),
    ("udp-no-ports", Check::Host(no_ports)),
    ("ip-input-errors", Check::Host(ip_errors)),
];

/// The counters that changed in the window, with their words; a gap if the kernel has none of them.
fn all_moved<'a>(
    ask: &Ask<'_>,
    names: &[(&'a str, &'a str)],
) -> Result<Vec<(&'a str, &'a str, u64)>, Gap> {
    let mut found = Vec::new();
    let mut known = false;
    for (name, words) in names {
        let Some(count) = moved(ask, name)? else { continue };
        known = true;
        if count > 0 {
            found.push((*name, *words, count));
        }
    }
    if known {
        return Ok(found);
    }
    let first = names.first().map_or("", |(name, _)| name);
    ask.facts.count(first).known().map(|_| Vec::new())
}

/// `TcpExt.RcvPruned 12 (words), ...`.
fn listed(all: &[(&str, &str, u64)]) -> String {
    let one =
        |(name, words, count): &(&str, &str, u64)| format!("{name} {} ({words})", grouped(*count));
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The share of `part` in `whole`, which it may or may not be counted in.
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(part).max(1) as f64
}

const TCP_LOSSES: [(&str, &str); 5] = [
    ("TcpExt.TCPBacklogDrop", "the reader held the socket and its backlog was full"),
    ("TcpExt.TCPRcvQDrop", "the receive buffer was full"),
    ("TcpExt.RcvPruned", "the receive buffer was full and could not be compacted"),
    ("TcpExt.OfoPruned", "the queue of segments out of order was emptied"),
    ("TcpExt.TCPOFODrop", "no room for a segment out of order"),
];

fn tcp_losses(ask: &Ask<'_>) -> Checked {
    let lost = all_moved(ask, &TCP_LOSSES)?;
    let received = ask.facts.count("Tcp.InSegs").known()?.in_window()?;
    // One segment can raise two of the counters: the largest is the loss.
    let most = lost.iter().map(|(_, _, count)| *count).max().unwrap_or(0);
    let ratio = share(most, received);
    if most < FEW || ratio < 1e-4 {
        let [most, received] = [most, received].map(grouped);
        return Answer::fine(format!("{most} of {received} segments {}", ask.facts.watched.span()));
    }
    Answer::observed(format!("{} of {} segments received {}", listed(&lost), grouped(received), ask.facts.watched.span()))
    .advice("ss -tmn shows the connection with a full Recv-Q, and its memory; `rxpath diagnose` names its reader")
    .severity(if ratio > 0.01 { Fail } else { Warn })
}

fn retransmits(ask: &Ask<'_>) -> Checked {
    let again = ask.facts.count("Tcp.RetransSegs").known()?.in_window()?;
    let sent = ask.facts.count("Tcp.OutSegs").known()?.in_window()?.saturating_add(again);
    let ratio = share(again, sent);
    let told = format!(
        "{} of {} segments sent again {} ({})",
        grouped(again),
        grouped(sent),
        ask.facts.watched.span(),
        percent(ratio)
    );
    if again < SOME || ratio < 0.02 {
        return Answer::fine(told);
    }
    Answer::observed(told)
    .advice(
        "ss -ti names the connections that retransmit; then check each queue and link on the path",
    )
    .severity(if ratio > 0.1 { Fail } else { Warn })
}

const CHECKSUMS: [(&str, &str); 6] = [
    ("Udp.InCsumErrors", "UDP"),
    ("Tcp.InCsumErrors", "TCP"),
    ("IpExt.InCsumErrors", "the IP header"),
    ("Icmp.InCsumErrors", "ICMP"),
    ("Udp6.InCsumErrors", "UDP over IPv6"),
    ("Icmp6.InCsumErrors", "ICMPv6"),
];

fn checksums(ask: &Ask<'_>) -> Checked {
    let wrong = all_moved(ask, &CHECKSUMS)?;
    let received = received(ask)?;
    let all: u64 = wrong.iter().map(|(_, _, count)| *count).fold(0, u64::saturating_add);
    let ratio = share(all, received);
    if all < FEW || ratio < 1e-4 {
        let [all, received] = [all, received].map(grouped);
        return Answer::fine(format!("{all} of {received} packets {}", ask.facts.watched.span()));
    }
    Answer::observed(format!(
        "{} of {} packets {} ({})",
        listed(&wrong),
        grouped(received),
        ask.facts.watched.span(),
        percent(ratio)
    ))
    .advice("find the sender; usually a virtual machine or container with broken checksum offload")
    .severity(if ratio > 0.01 { Fail } else { Warn })
}

/// Packets that IP received in the window, of both versions.
fn received(ask: &Ask<'_>) -> Result<u64, Gap> {
    let four = ask.facts.count("Ip.InReceives").known()?.in_window()?;
    Ok(four.saturating_add(moved(ask, "Ip6.InReceives")?.unwrap_or(0)))
}

fn no_ports(ask: &Ask<'_>) -> Checked {
    let mut lost = ask.facts.count("Udp.NoPorts").known()?.in_window()?;
    let mut read = ask.facts.count("Udp.InDatagrams").known()?.in_window()?;
    lost = lost.saturating_add(moved(ask, "Udp6.NoPorts")?.unwrap_or(0));
    read = read.saturating_add(moved(ask, "Udp6.InDatagrams")?.unwrap_or(0));
    let ratio = share(lost, read.saturating_add(lost));
    let told = format!(
        "{} datagrams for ports without a socket {}, {} for others",
        grouped(lost),
        ask.facts.watched.span(),
        grouped(read)
    );
    if lost < SOME || ratio < 0.1 {
        return Answer::fine(told);
    }
    Answer::observed(told).advice("compare their ports with the listeners: ss -ulnp")
}

const IP_ERRORS: [(&str, &str); 8] = [
    ("Ip.InHdrErrors", "a wrong header, or a TTL that ended here"),
    ("Ip.InAddrErrors", "not for this host, which does not forward them"),
    ("IpExt.InNoRoutes", "no route"),
    ("IpExt.InTruncatedPkts", "shorter than the header says"),
    ("Ip.InUnknownProtos", "a protocol that this host does not use"),
    ("Ip.InDiscards", "no memory, or refused by the kernel"),
    ("Ip.ReasmFails", "fragments that were not reassembled"),
    ("Ip.FragFails", "too large for the outgoing link, and must not be fragmented"),
];

fn ip_errors(ask: &Ask<'_>) -> Checked {
    let received = ask.facts.count("Ip.InReceives").known()?.in_window()?;
    let mut wrong = all_moved(ask, &IP_ERRORS)?;
    // A scanner or a slow neighbour causes some of each on any network.
    wrong.retain(|(_, _, count)| *count >= SOME && share(*count, received) >= 0.01);
    if wrong.is_empty() {
        let span = ask.facts.watched.span();
        return Answer::fine(format!(
            "{} packets {span}, less than 1 % of them dropped by IP",
            grouped(received)
        ));
    }
    Answer::observed(format!("{} of {} packets {}", listed(&wrong), grouped(received), ask.facts.watched.span()))
    .advice("compare addresses, routes and MTU with those of the senders; `rxpath trace` names the function")
}
