//! The kernel's drop reasons (`enum skb_drop_reason`, include/net/dropreason-core.h): the function that sets each, and
//! its meaning. `rxpath trace`, `watch` and `run --observe drops` use these names.

/// One reason: name without `SKB_DROP_REASON_`, the function that sets it, its meaning, counters that change with it.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// `SOCKET_RCVBUFF`.
    pub name: &'static str,
    /// The kernel function, or the place.
    pub function: &'static str,
    /// What it means.
    pub what: &'static str,
    /// Counters and rules for the same loss, as `explain` finds them.
    pub see: &'static [&'static str],
}

const fn reason(
    name: &'static str,
    function: &'static str,
    what: &'static str,
    see: &'static [&'static str],
) -> Reason {
    Reason { name, function, what, see }
}

/// Those that occur on a receiving host, in the order of the path.
pub const REASONS: &[Reason] = &[
    reason(
        "NOT_SPECIFIED",
        "kfree_skb without a reason",
        "The kernel's code gives no reason here. Only the function in the column `place` is known.",
        &[],
    ),
    reason(
        "XDP",
        "do_xdp_generic",
        "A generic XDP program redirected the packet to another device, and the redirect failed. Deliberate XDP drops have no reason in generic mode, and no skb exists yet in native mode.",
        &["xdp-attached"],
    ),
    reason(
        "CPU_BACKLOG",
        "enqueue_to_backlog",
        "The backlog queue of the CPU was full, or it was half full and the flow limit dropped from the largest flow: RPS, loopback and devices without NAPI pass through it.",
        &["softnet.dropped", "softnet.flow_limit_count", "backlog-max"],
    ),
    reason(
        "FULL_RING",
        "tun_net_xmit, tap_handle_frame",
        "The ring of a virtual device (tun, tap) was full: the program or virtual machine that reads it is too slow.",
        &[],
    ),
    reason(
        "DEV_READY",
        "the driver of a virtual device",
        "The device was down, or its peer did not exist.",
        &[],
    ),
    reason("NOMEM", "the driver or the core", "The kernel had no memory for the packet.", &[]),
    reason(
        "TC_INGRESS",
        "sch_handle_ingress, tc_run",
        "A tc filter or BPF program at the ingress dropped the packet on purpose.",
        &["tc-ingress"],
    ),
    reason(
        "TC_EGRESS",
        "sch_handle_egress",
        "A tc filter or BPF program at the egress dropped the packet on purpose.",
        &[],
    ),
    reason(
        "UNHANDLED_PROTO",
        "__netif_receive_skb_core",
        "No protocol handler on this host takes such frames (LLDP, spanning tree).",
        &["rx_dropped"],
    ),
    reason(
        "OTHERHOST",
        "ip_rcv_core, ip6_rcv_core",
        "The frame was for another MAC address; a promiscuous device or a bridge received it.",
        &["nic-promisc-rxall"],
    ),
    reason(
        "IP_INHDR",
        "ip_rcv_core",
        "The IP header is damaged: version, length or options.",
        &["Ip.InHdrErrors"],
    ),
    reason(
        "IP_CSUM",
        "ip_rcv_core",
        "The checksum of the IP header is wrong.",
        &["Ip.InHdrErrors"],
    ),
    reason(
        "PKT_TOO_SMALL",
        "ip_rcv_core, __udp4_lib_rcv",
        "The packet is shorter than its header says.",
        &[],
    ),
    reason(
        "IP_RPFILTER",
        "ip_rcv_finish_core",
        "The reverse path filter: the reply would leave through another device.",
        &["TcpExt.IPReversePathFilter", "rp-filter"],
    ),
    reason(
        "IP_INADDRERRORS",
        "ip_error",
        "The packet is for an address that this host neither has nor forwards to.",
        &["Ip.InAddrErrors"],
    ),
    reason("IP_INNOROUTES", "ip_error", "There is no route for forwarding the packet.", &[]),
    reason(
        "IP_NOPROTO",
        "ip_protocol_deliver_rcu",
        "The kernel knows no protocol with this number.",
        &[],
    ),
    reason(
        "UNICAST_IN_L2_MULTICAST",
        "ip_rcv_finish_core",
        "A unicast address came in a multicast or broadcast frame, and the device rejects such packets.",
        &[],
    ),
    reason(
        "NETFILTER_DROP",
        "nf_hook_slow",
        "A rule of nftables or iptables, or connection tracking, dropped the packet.",
        &["nf-hooks", "nf_conntrack.insert_failed"],
    ),
    reason("DUP_FRAG", "ip_frag_queue", "A fragment arrived twice.", &["Ip.ReasmFails"]),
    reason(
        "FRAG_REASM_TIMEOUT",
        "ip_expire",
        "Not all fragments arrived in time.",
        &["Ip.ReasmFails"],
    ),
    reason(
        "PKT_TOO_BIG",
        "ip_forward and others",
        "The packet is larger than the MTU and must not be fragmented.",
        &["mtu-jumbo"],
    ),
    reason("XFRM_POLICY", "xfrm4_policy_check", "An IPsec policy forbids the packet.", &[]),
    reason(
        "NO_SOCKET",
        "__udp4_lib_rcv, tcp_v4_rcv",
        "Nobody listens on the port.",
        &["Udp.NoPorts"],
    ),
    reason(
        "UDP_CSUM",
        "udp_queue_rcv_one_skb, __udp4_lib_rcv",
        "The checksum of the UDP datagram is wrong.",
        &["Udp.InCsumErrors"],
    ),
    reason("TCP_CSUM", "tcp_v4_rcv", "The checksum of the TCP segment is wrong.", &["Tcp.InErrs"]),
    reason(
        "SKB_CSUM",
        "tap_handle_frame",
        "The checksum was left for a NIC to fill in. The kernel could not compute it before it handed the packet to a tap device.",
        &[],
    ),
    reason(
        "SOCKET_FILTER",
        "sk_filter_trim_cap",
        "The socket's own filter (SO_ATTACH_FILTER, BPF) dropped the packet.",
        &[],
    ),
    reason(
        "SECURITY_HOOK",
        "security_sock_rcv_skb",
        "A security module (SELinux, BPF LSM) rejected the packet.",
        &["socket-bpf-lsm"],
    ),
    reason(
        "SOCKET_RCVBUFF",
        "__udp_queue_rcv_skb, sock_queue_rcv_skb_reason",
        "The receive buffer of the socket was full.",
        &["Udp.RcvbufErrors", "socket-rcvbuf-actual"],
    ),
    reason(
        "PROTO_MEM",
        "__udp_queue_rcv_skb, tcp_data_queue, tcp_data_queue_ofo",
        "UDP: all sockets together were over udp_mem. TCP: this socket's receive buffer was full and could not be pruned, or all sockets were over tcp_mem.",
        &[
            "Udp.MemErrors",
            "TcpExt.TCPRcvQDrop",
            "TcpExt.TCPOFODrop",
            "udp-mem",
            "tcp-rmem",
            "tcp-mem",
        ],
    ),
    reason(
        "SOCKET_BACKLOG",
        "tcp_add_backlog",
        "The backlog of a TCP socket was full while a program held its lock.",
        &["TcpExt.TCPBacklogDrop"],
    ),
    reason(
        "TCP_FLAGS",
        "tcp_rcv_state_process and others",
        "The flags make no sense in this state of the connection.",
        &[],
    ),
    reason(
        "TCP_ZEROWINDOW",
        "tcp_data_queue",
        "The segment arrived although the receiver had announced a zero window.",
        &["TcpExt.TCPZeroWindowDrop"],
    ),
    reason(
        "TCP_OLD_DATA",
        "tcp_data_queue",
        "The data were received before: an unnecessary retransmission.",
        &[],
    ),
    reason(
        "TCP_OVERWINDOW",
        "tcp_data_queue",
        "The data lie beyond the end of the window that was announced.",
        &[],
    ),
    reason(
        "TCP_OFOMERGE",
        "tcp_data_queue_ofo",
        "The data are in the out-of-order queue already.",
        &[],
    ),
    reason(
        "TCP_OFO_QUEUE_PRUNE",
        "tcp_prune_ofo_queue",
        "The out-of-order queue was discarded to free memory.",
        &["TcpExt.PruneCalled"],
    ),
    reason(
        "TCP_OFO_DROP",
        "tcp_ofo_queue",
        "A segment of the out-of-order queue whose data had meanwhile arrived in another segment. No loss: a segment that found no memory has PROTO_MEM.",
        &[],
    ),
    reason(
        "TCP_RFC7323_PAWS",
        "tcp_validate_incoming",
        "Its timestamp is older than the last one of the connection (PAWS).",
        &["TcpExt.PAWSEstab"],
    ),
    reason(
        "TCP_OLD_SEQUENCE",
        "tcp_validate_incoming",
        "Its sequence number lies before the window.",
        &[],
    ),
    reason(
        "TCP_INVALID_SEQUENCE",
        "tcp_validate_incoming",
        "Its sequence number lies outside of the window.",
        &[],
    ),
    reason(
        "TCP_RESET",
        "tcp_validate_incoming, tcp_rcv_state_process",
        "A segment with RST that closed nothing: it arrived at a listener, or its sequence number was not the expected one and a challenge ACK was sent.",
        &[],
    ),
    reason("TCP_CLOSE", "tcp_rcv_state_process", "The socket is closed.", &[]),
    reason(
        "TCP_OLD_ACK",
        "tcp_ack",
        "The segment acknowledges data that were acknowledged before. Normal.",
        &[],
    ),
    reason("TCP_MINTTL", "tcp_v4_rcv", "Its TTL is below IP_MINTTL of the socket.", &[]),
    reason(
        "QUEUE_PURGE",
        "skb_queue_purge_reason",
        "A queue was purged, mostly because its socket was closed with unread packets in it.",
        &[],
    ),
    reason(
        "PACKET_SOCK_ERROR",
        "packet_rcv, tpacket_rcv",
        "The buffer of a packet socket (a capture) was full. The original packet still went on to its own socket.",
        &["packet-taps"],
    ),
    reason(
        "QDISC_DROP",
        "__dev_xmit_skb",
        "A queueing discipline dropped the packet on transmit.",
        &["qdisc-root"],
    ),
    reason(
        "NEIGH_FAILED",
        "neigh_invalidate, __neigh_event_send",
        "No neighbour answered ARP or neighbour discovery for the address.",
        &[],
    ),
    reason(
        "NEIGH_QUEUEFULL",
        "__neigh_event_send",
        "Too many packets waited for an answer to ARP or neighbour discovery.",
        &[],
    ),
];
