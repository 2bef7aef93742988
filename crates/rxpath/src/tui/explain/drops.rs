//! A drop: how many, where, for which port, and the remedy for frequent reasons.

use rxpath_core::number::si;
use rxpath_record::watch::DropRow;

pub(super) fn words(drop: &DropRow) -> Vec<String> {
    let named = [&drop.reason, &drop.place, &drop.source];
    let known = REASONS.iter().find(|(word, _)| named.iter().any(|name| name.contains(word)));
    let mut words = vec![counted(drop)];
    words.push(known.map_or_else(
        || "No remedy is known under this name: see the function in the kernel's source for when it drops.".into(),
        |(word, what)| format!("{word}: {what}"),
    ));
    words
}

fn counted(drop: &DropRow) -> String {
    let mut words = format!(
        "{} packets/s, {} since watching began, at {}",
        si(drop.packets_pps),
        drop.packets_total,
        drop.place
    );
    if !drop.reason.is_empty() {
        words += &format!(", reason {}", drop.reason);
    }
    if !drop.device.is_empty() {
        words += &format!(", from {}", drop.device);
    }
    if drop.port != 0 {
        words += &format!(", for {} port {}", drop.transport, drop.port);
    }
    if !drop.processes.is_empty() {
        words += &format!(", open in {}", drop.processes.join(", "));
    }
    words + "."
}

/// Frequent reasons and counters, with the remedy. The first match is shown.
pub const REASONS: [(&str, &str); 17] = [
    (
        "SOCKET_RCVBUFF",
        "the socket's receive buffer was full: a larger SO_RCVBUF against bursts, a faster reader against overload.",
    ),
    (
        "RcvbufErrors",
        "sockets' receive buffers were full: tab 4 says which; a larger SO_RCVBUF against bursts, a faster reader \
         against overload.",
    ),
    (
        "ListenDrops",
        "requests for connections found the listener's queue full: a larger listen() backlog and net.core.somaxconn, or \
         a program that accepts faster. Tab 4 says which listener.",
    ),
    (
        "PROTO_MEM",
        "memory was used up: UDP's (net.ipv4.udp_mem), or a TCP socket's or all TCP's (tcp_rmem, tcp_mem).",
    ),
    (
        "NO_SOCKET",
        "nobody listens on the port: look at the address, the port, and the program's state.",
    ),
    ("NoPorts", "nobody listens on the port: BPF shows which port it was."),
    ("UDP_CSUM", "the checksum was wrong: cable, memory, or an offload that computes it wrongly."),
    ("NETFILTER_DROP", "a packet filter's rule dropped it on purpose."),
    (
        "CPU_BACKLOG",
        "the backlog of the CPU was full: net.core.netdev_max_backlog, or more CPUs in rps_cpus.",
    ),
    ("IP_RPFILTER", "the reverse path filter: the reply would leave through another device."),
    ("QDISC_DROP", "a queueing discipline dropped it."),
    ("FULL_RING", "the ring of a virtual device was full: its reader is too slow."),
    (
        "UNHANDLED_PROTO",
        "no protocol handler here takes such frames (LLDP, spanning tree): nothing needed was lost.",
    ),
    (
        "no free descriptor",
        "the ring was full when packets arrived: a larger rx ring against bursts, more queues or CPU time against overload.",
    ),
    (
        "damaged frame",
        "length, CRC or alignment were wrong: cable, transceiver, MTU of the neighbours.",
    ),
    (
        "behind the ring",
        "the driver had no memory, or no protocol handler took the frame (LLDP, spanning tree): BPF shows which.",
    ),
    (
        "TCPBacklogDrop",
        "segments arrived while a process held the socket's lock for too long: use larger socket buffers, or a program that reads in shorter calls.",
    ),
];
