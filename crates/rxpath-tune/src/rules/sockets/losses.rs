//! Losses and damage that the protocols count while rxpath watches. Counts since boot are not used here.

use rxpath_core::number::grouped;

use crate::prelude::*;

const COUNTERS: &str = "kernel: Documentation/networking/snmp_counter.rst";
const SNMP: &str = "kernel: net/ipv4/proc.c snmp4_net_list";

/// Fewer in a window are not significant.
const FEW: u64 = 5;
/// The same for events that also happen on healthy networks.
const SOME: u64 = 20;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "tcp-receive-losses",
        what: "Do TCP sockets drop received segments?",
        applies: "hosts whose TCP counters were read twice",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "each of these segments is sent again, a round trip or a timeout later",
        check: Check::Host(tcp_losses),
        why: "The network delivered these segments, but the socket buffer was full: its reader is too slow, or \
              its buffer is too small for many small segments.",
        mechanism: "tcp_add_backlog (net/ipv4/tcp_ipv4.c) counts TCPBacklogDrop while the reader holds the \
                    socket. tcp_data_queue and tcp_data_queue_ofo (net/ipv4/tcp_input.c) count TCPRcvQDrop and \
                    TCPOFODrop; tcp_prune_queue counts RcvPruned and tcp_prune_ofo_queue OfoPruned. Buffers count \
                    the memory of a packet, many times the payload of a small packet.",
        not_when: "a test deliberately sends small segments faster than the window allows",
        side_effects: "larger buffers hold more memory for each connection",
        set_now: "find the slow reader: ss -tmn shows Recv-Q and skmem of each connection; then a faster reader, \
                  or a larger maximum in net.ipv4.tcp_rmem",
        persist: "the application's configuration, or /etc/sysctl.d/ for tcp_rmem",
        verify: "nstat -az TcpExtTCPBacklogDrop TcpExtTCPRcvQDrop TcpExtRcvPruned, twice",
        since: "2.6; TCPBacklogDrop 2.6.34, TCPOFODrop 3.5, TCPRcvQDrop 4.20",
        sources: &["kernel: net/ipv4/tcp_input.c tcp_prune_queue", COUNTERS],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "tcp-retransmits",
        what: "Does this host retransmit a large share of its TCP segments?",
        applies: "hosts that sent TCP segments between two readings",
        weight: Weight::always(Warn),
        size: Multiple,
        effect: "the rate of loss-based congestion control falls with the square root of the loss",
        check: Check::Host(retransmits),
        why: "Segments or their acknowledgements are lost on the path, or so late that the sender assumes loss.",
        mechanism: "__tcp_retransmit_skb (net/ipv4/tcp_output.c) counts RetransSegs; __tcp_transmit_skb counts \
                    OutSegs, without retransmissions.",
        not_when: "a long path that is known to lose packets, or congestion control that probes for loss",
        side_effects: "none: this only counts",
        set_now: "find where they are lost: ss -ti names the connections (retrans, lost); then the counters of this host's qdisc \
                  and device, of the switch and of the peer",
        persist: "no setting: the cause is a link, a queue or a peer",
        undo: NOTHING_CHANGED,
        verify: "nstat -az TcpRetransSegs TcpOutSegs, twice",
        since: "2.2",
        sources: &["kernel: net/ipv4/tcp_output.c __tcp_retransmit_skb", SNMP],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "checksum-errors",
        what: "Do packets arrive with wrong checksums?",
        applies: "hosts whose protocol counters were read twice",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "each one is dropped",
        check: Check::Host(checksums),
        why: "The link's own check passed, so the packet was damaged inside a machine: a NIC, a virtual switch, a \
              router, or a sender that relies on checksum offload that does not work.",
        mechanism: "udp_csum_pull_header and __udp4_lib_rcv (net/ipv4/udp.c), tcp_checksum_complete and \
                    tcp_v4_rcv (net/ipv4/tcp_ipv4.c), icmp_rcv and ip_rcv_core drop such a packet and count InCsumErrors.",
        not_when: "a test that sends damaged packets on purpose",
        side_effects: "turning an offload off costs CPU time",
        set_now: "find the sender; if it is a virtual machine or container with broken checksum offload: ethtool \
                  -K DEV tx off, in the sender",
        persist: "a udev rule in the sender, until its driver is fixed",
        undo: "ethtool -K DEV tx on",
        verify: "nstat -az UdpInCsumErrors TcpInCsumErrors IpExtInCsumErrors, twice",
        since: "3.10",
        sources: &["kernel: Documentation/networking/checksum-offloads.rst", SNMP],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "udp-no-ports",
        what: "Do datagrams arrive for ports without a socket?",
        applies: "hosts that received datagrams between two readings",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "each one is dropped, and answered by an ICMP message within icmp_ratelimit",
        check: Check::Host(no_ports),
        why: "The program ended, listens on another port or address, or the sender has the wrong host.",
        mechanism: "__udp4_lib_rcv (net/ipv4/udp.c) finds no socket, counts NoPorts and calls icmp_send.",
        not_when: "a port scan or flood: the datagrams are not meant for a program",
        side_effects: "none: this only counts",
        set_now: "compare the datagrams' ports with the listeners: ss -ulnp; the drop reason NO_SOCKET names the \
                  port: rxpath explain NO_SOCKET",
        persist: "the application's configuration, or the sender's",
        undo: NOTHING_CHANGED,
        verify: "nstat -az UdpNoPorts Udp6NoPorts, twice",
        since: "2.2",
        sources: &["kernel: net/ipv4/udp.c __udp4_lib_rcv", SNMP],
        ..Rule::judge(Area::Sockets)
    },
    Rule {
        id: "ip-input-errors",
        what: "Does IP drop received packets?",
        applies: "hosts whose IP counters were read twice",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "each one is dropped before any socket",
        check: Check::Host(ip_errors),
        why: "Each counter names one cause: a damaged header, an address that is not this host's, no route, \
              fragments that are never reassembled, a packet too large for its outgoing link.",
        mechanism: "ip_rcv_core counts InHdrErrors, InTruncatedPkts and InDiscards (net/ipv4/ip_input.c), ip_error \
                    InAddrErrors and InNoRoutes (net/ipv4/route.c), ip_protocol_deliver_rcu InUnknownProtos, ip_defrag \
                    and ip_expire ReasmFails (net/ipv4/ip_fragment.c), ip_forward and ip_do_fragment FragFails.",
        not_when: "the packets are forged or broken, and dropping them is right",
        side_effects: "none: this only counts",
        set_now: "depends on the named counter. ReasmFails: a smaller datagram at the sender, or more memory: \
                  sysctl -w net.ipv4.ipfrag_high_thresh=4194304. InAddrErrors and InNoRoutes: ip route get shows \
                  the route of an address. FragFails: the path's MTU and the ICMP messages that report it",
        persist: "/etc/sysctl.d/ for the memory of fragments; routes in the network's configuration",
        verify: "nstat -az IpInHdrErrors IpInAddrErrors IpReasmFails IpFragFails IpInDiscards IpExtInNoRoutes, twice",
        since: "2.2; InTruncatedPkts 2.6.25",
        sources: &[
            "kernel: net/ipv4/ip_input.c ip_rcv_core",
            "kernel: net/ipv4/ip_fragment.c ip_defrag",
            COUNTERS,
        ],
        ..Rule::judge(Area::Sockets)
    },
];

/// A counter's change in the window; `None` if this kernel lacks the counter.
fn moved(ask: &Ask<'_>, name: &str) -> Result<Option<u64>, Gap> {
    match ask.facts.count(name).known() {
        Ok(count) => count.in_window().map(Some),
        Err(Gap::Absent(_)) => Ok(None),
        Err(gap) => Err(gap),
    }
}

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
        return Answer::fine(format!("{most} of {received} segments {}", ask.facts.watched.span()));
    }
    Answer::found(
        format!("{} of {} segments received {}", listed(&lost), grouped(received), ask.facts.watched.span()),
        "none",
        "the reader or its buffer does not keep up, and the peer retransmits",
    )
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
    Answer::found(
        told,
        "less than 2 %",
        "packets or their acknowledgements are lost between here and the peers",
    )
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
        return Answer::fine(format!("{all} of {received} packets {}", ask.facts.watched.span()));
    }
    Answer::found(
        format!(
            "{} of {} packets {} ({})",
            listed(&wrong),
            grouped(received),
            ask.facts.watched.span(),
            percent(ratio)
        ),
        "none",
        "they passed the link's own check, so they were damaged inside a machine, or their checksum was never filled \
         in",
    )
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
    Answer::found(
        told,
        "none, or few",
        "the program ended or listens elsewhere, or the sender has the wrong host",
    )
    .advice("compare their ports with the listeners: ss -ulnp")
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
            "{received} packets {span}, less than 1 % of them dropped by IP"
        ));
    }
    Answer::found(
        format!("{} of {} packets {}", listed(&wrong), grouped(received), ask.facts.watched.span()),
        "less than 1 %",
        "each counter names the place and the reason",
    )
    .advice("compare addresses, routes and MTU with those of the senders; `rxpath trace` names the function")
}
