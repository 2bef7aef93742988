//! The kernel's counters of the receive path: what each counts, where it is read, which function adds to it.

/// One counter.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The name of results: `Udp.RcvbufErrors`.
    pub name: &'static str,
    /// Other names of it.
    pub also: &'static [&'static str],
    /// Where it is read.
    pub read: &'static str,
    /// What it counts, in a sentence.
    pub what: &'static str,
    /// The kernel function that adds to it, with its file.
    pub function: &'static str,
    /// Rules of `check` about it.
    pub rules: &'static [&'static str],
}

const fn counter(
    name: &'static str,
    also: &'static [&'static str],
    [read, what, function]: [&'static str; 3],
    rules: &'static [&'static str],
) -> Counter {
    Counter { name, also, read, what, function, rules }
}

const SNMP: &str = "/proc/net/snmp, of the network namespace; nstat -az shows it without the dot";
const NETSTAT: &str =
    "/proc/net/netstat, of the network namespace; nstat -az shows it without the dot";
const SOFTNET: &str = "/proc/net/softnet_stat, one line per CPU, hexadecimal, of the whole machine";
const LINK: &str = "ip -s -s link show DEV; /sys/class/net/DEV/statistics/";
const UDP: &str = "__udp_queue_rcv_skb (net/ipv4/udp.c)";
const TCP_QUEUE: &str = "tcp_data_queue (net/ipv4/tcp_input.c)";

/// All of them, in the order of the path of a packet.
pub const COUNTERS: &[Counter] = &[
    counter(
        "rx_missed_errors",
        &["rx_missed"],
        [
            LINK,
            "Packets that the NIC had to drop because the ring had no free descriptor.",
            "the driver's ndo_get_stats64; a register of the NIC",
        ],
        &["ring-rx"],
    ),
    counter(
        "rx_fifo_errors",
        &["rx_fifo", "rx_over_errors", "rx_no_buffer_count", "rx_out_of_buffer"],
        [
            LINK,
            "Packets lost because the NIC's memory or the ring was full; which of the two depends on the driver. rx_no_buffer_count (Intel) is no loss yet: the packet found no descriptor and still waits in the NIC's memory.",
            "the driver's ndo_get_stats64",
        ],
        &["ring-rx"],
    ),
    counter(
        "rx_crc_errors",
        &["rx_frame_errors", "rx_length_errors", "rx_errors"],
        [
            LINK,
            "Damaged frames: wrong check sum, length or alignment. Look at cable, transceiver and MTU of the neighbour.",
            "the driver's ndo_get_stats64",
        ],
        &[],
    ),
    counter(
        "rx_dropped",
        &["rx dropped"],
        [
            LINK,
            "Packets that the driver or the core dropped after the NIC had them: no memory, no protocol that takes the frame, a full backlog of a CPU (RPS, veth, tunnels).",
            "dev_get_stats (net/core/dev.c) adds the driver's count and those of __netif_receive_skb_core and enqueue_to_backlog",
        ],
        &[],
    ),
    counter(
        "rx_nohandler",
        &[],
        [
            LINK,
            "Packets on an inactive device (the standby of a bond) that nobody took.",
            "__netif_receive_skb_core (net/core/dev.c)",
        ],
        &[],
    ),
    counter(
        "NET_RX",
        &["softirqs NET_RX"],
        [
            "/proc/softirqs, per CPU",
            "Runs of the receive softirq on each CPU. Very unequal columns mean that one CPU does the work.",
            "handle_softirqs (kernel/softirq.c), __do_softirq in older kernels",
        ],
        &["rps-cpus", "irq-affinity"],
    ),
    counter(
        "softnet.processed",
        &["processed"],
        [
            SOFTNET,
            "Packets that entered the protocols on this CPU (with RPS the one that it chose), once more for each VLAN, bond, macvlan or tunnel device that hands them on. Column 1.",
            "__netif_receive_skb_core (net/core/dev.c)",
        ],
        &[],
    ),
    counter(
        "softnet.dropped",
        &["softnet drops", "backlog drops"],
        [
            SOFTNET,
            "Packets that found the CPU's backlog queue full. Column 2.",
            "enqueue_to_backlog (net/core/dev.c)",
        ],
        &["backlog-max", "rps-cpus"],
    ),
    counter(
        "softnet.time_squeeze",
        &["time_squeeze", "squeezed"],
        [
            SOFTNET,
            "Times that the receive softirq stopped with work left, because its packet budget or its time was used up. Column 3.",
            "net_rx_action (net/core/dev.c)",
        ],
        &["napi-budget", "napi-budget-usecs"],
    ),
    counter(
        "softnet.received_rps",
        &["received_rps"],
        [
            SOFTNET,
            "Inter-processor interrupts that this CPU got for packets that RPS gave it; one serves many packets. Column 10.",
            "rps_trigger_softirq (net/core/dev.c)",
        ],
        &["rps-cpus"],
    ),
    counter(
        "softnet.flow_limit_count",
        &["flow_limit_count"],
        [
            SOFTNET,
            "Packets of a single large flow that the flow limit dropped in front of a filling backlog. Column 11.",
            "skb_flow_limit (net/core/dev.c)",
        ],
        &["flow-limit"],
    ),
    counter(
        "Ip.InReceives",
        &["IpInReceives"],
        [
            SNMP,
            "IP packets that arrived, good and bad. GRO aggregates count once.",
            "ip_rcv_core (net/ipv4/ip_input.c)",
        ],
        &[],
    ),
    counter(
        "Ip.InHdrErrors",
        &["IpInHdrErrors"],
        [
            SNMP,
            "Packets with a bad IP header: version, length, header check sum, or a TTL of zero when forwarding.",
            "ip_rcv_core (net/ipv4/ip_input.c), ip_forward (net/ipv4/ip_forward.c)",
        ],
        &[],
    ),
    counter(
        "Ip.InAddrErrors",
        &["IpInAddrErrors"],
        [
            SNMP,
            "Packets for an address that this host neither has nor forwards to.",
            "ip_error (net/ipv4/route.c)",
        ],
        &["ip-forward"],
    ),
    counter(
        "Ip.InDiscards",
        &["IpInDiscards"],
        [
            SNMP,
            "Good packets that were dropped all the same, mostly for want of memory.",
            "ip_rcv_core (net/ipv4/ip_input.c)",
        ],
        &[],
    ),
    counter(
        "Ip.ReasmFails",
        &["IpReasmFails"],
        [
            SNMP,
            "Datagrams whose fragments did not all arrive in time, or for which the reassembly memory was full. One lost fragment loses the whole datagram.",
            "ip_expire, ip_frag_queue (net/ipv4/ip_fragment.c)",
        ],
        &[],
    ),
    counter(
        "TcpExt.IPReversePathFilter",
        &["IPReversePathFilter", "TcpExtIPReversePathFilter"],
        [
            NETSTAT,
            "Packets dropped by the reverse path filter: the reply would leave through another device.",
            "ip_rcv_finish_core (net/ipv4/ip_input.c)",
        ],
        &["rp-filter"],
    ),
    counter(
        "nf_conntrack.insert_failed",
        &["insert_failed", "conntrack drop", "early_drop"],
        [
            "conntrack -S; /proc/net/stat/nf_conntrack, per CPU",
            "insert_failed: new flows that clashed with an entry; drop: those for which there was no room. The packet is dropped. early_drop: entries thrown out to make room.",
            "__nf_conntrack_confirm, __nf_conntrack_alloc, early_drop (net/netfilter/nf_conntrack_core.c)",
        ],
        &["conntrack-sizing", "conntrack-active"],
    ),
    counter(
        "Udp.InDatagrams",
        &["UdpInDatagrams", "Udp6.InDatagrams"],
        [
            SNMP,
            "UDP datagrams that programs read. It counts at the read, not at the arrival.",
            "udp_recvmsg (net/ipv4/udp.c)",
        ],
        &[],
    ),
    counter(
        "Udp.NoPorts",
        &["UdpNoPorts", "NoPorts", "Udp6.NoPorts"],
        [
            SNMP,
            "UDP datagrams for a port that nobody listens on.",
            "__udp4_lib_rcv (net/ipv4/udp.c)",
        ],
        &[],
    ),
    counter(
        "Udp.InErrors",
        &["UdpInErrors", "Udp6.InErrors"],
        [
            SNMP,
            "UDP datagrams that were dropped at a socket for any reason: it holds RcvbufErrors, MemErrors and InCsumErrors too, so never add it to them.",
            UDP,
        ],
        &["socket-rcvbuf-actual"],
    ),
    counter(
        "Udp.RcvbufErrors",
        &["UdpRcvbufErrors", "RcvbufErrors", "Udp6.RcvbufErrors", "Udp6RcvbufErrors"],
        [SNMP, "UDP datagrams dropped because the receive buffer of their socket was full.", UDP],
        &["socket-rcvbuf-actual", "rmem-max", "rmem-default"],
    ),
    counter(
        "Udp.MemErrors",
        &["UdpMemErrors", "MemErrors", "Udp6.MemErrors"],
        [
            SNMP,
            "UDP datagrams dropped because all UDP sockets together were over net.ipv4.udp_mem.",
            UDP,
        ],
        &["udp-mem"],
    ),
    counter(
        "Udp.InCsumErrors",
        &["UdpInCsumErrors", "Udp6.InCsumErrors"],
        [
            SNMP,
            "UDP datagrams with a wrong check sum.",
            "udp_queue_rcv_one_skb, udp_recvmsg (net/ipv4/udp.c)",
        ],
        &["offload-rx-csum"],
    ),
    counter(
        "Udp.SndbufErrors",
        &["UdpSndbufErrors", "SndbufErrors"],
        [
            SNMP,
            "Sends that failed: no send buffer, or a queue below refused the packet.",
            "udp_sendmsg (net/ipv4/udp.c)",
        ],
        &[],
    ),
    counter(
        "sk_drops",
        &["socket drops", "skmem d"],
        [
            "ss -uamn: d in skmem; /proc/net/udp, last column",
            "Packets that one socket dropped, for any reason, since it was made.",
            "sk_drops_add (include/net/sock.h)",
        ],
        &["socket-rcvbuf-actual"],
    ),
    counter(
        "TcpExt.ListenOverflows",
        &["ListenOverflows", "TcpExtListenOverflows"],
        [
            NETSTAT,
            "Connections that were complete, or requests for one, that found the listener's accept queue full.",
            "tcp_v4_syn_recv_sock (net/ipv4/tcp_ipv4.c), tcp_conn_request (net/ipv4/tcp_input.c)",
        ],
        &["somaxconn"],
    ),
    counter(
        "TcpExt.ListenDrops",
        &["ListenDrops", "TcpExtListenDrops"],
        [
            NETSTAT,
            "All requests for connections that a listener dropped; ListenOverflows is a part of it.",
            "tcp_listendrop (include/net/tcp.h)",
        ],
        &["somaxconn", "syn-backlog"],
    ),
    counter(
        "TcpExt.TCPReqQFullDrop",
        &["TCPReqQFullDrop", "TcpExtTCPReqQFullDrop"],
        [
            NETSTAT,
            "SYNs dropped because the queue of half-open connections was full and SYN cookies were off.",
            "tcp_syn_flood_action (net/ipv4/tcp_input.c)",
        ],
        &["syn-backlog"],
    ),
    counter(
        "TcpExt.TCPReqQFullDoCookies",
        &["TCPReqQFullDoCookies", "SyncookiesSent"],
        [
            NETSTAT,
            "SYNs answered with a SYN cookie because the queue of half-open connections was full: no loss, but options of the connection are lost.",
            "tcp_syn_flood_action (net/ipv4/tcp_input.c)",
        ],
        &["syn-backlog"],
    ),
    counter(
        "TcpExt.TCPBacklogDrop",
        &["TCPBacklogDrop", "TcpExtTCPBacklogDrop"],
        [
            NETSTAT,
            "Segments dropped because the socket's backlog was full while a program held the socket's lock.",
            "tcp_add_backlog (net/ipv4/tcp_ipv4.c)",
        ],
        &["tcp-rmem"],
    ),
    counter(
        "TcpExt.TCPRcvQDrop",
        &["TCPRcvQDrop", "TcpExtTCPRcvQDrop"],
        [NETSTAT, "Segments in order that found no memory in the receive queue.", TCP_QUEUE],
        &["tcp-rmem", "tcp-mem"],
    ),
    counter(
        "TcpExt.TCPZeroWindowDrop",
        &["TCPZeroWindowDrop", "TcpExtTCPZeroWindowDrop"],
        [
            NETSTAT,
            "Segments that came although the receiver had announced a window of zero: the program reads too slowly.",
            TCP_QUEUE,
        ],
        &["tcp-rmem"],
    ),
    counter(
        "TcpExt.TCPOFODrop",
        &["TCPOFODrop", "TcpExtTCPOFODrop"],
        [
            NETSTAT,
            "Segments out of order that found no memory.",
            "tcp_data_queue_ofo (net/ipv4/tcp_input.c)",
        ],
        &["tcp-rmem"],
    ),
    counter(
        "TcpExt.PruneCalled",
        &["PruneCalled", "RcvPruned", "OfoPruned"],
        [
            NETSTAT,
            "Times that TCP had to make room in a full receive buffer; RcvPruned and OfoPruned count what had to be thrown away for it.",
            "tcp_prune_queue, tcp_prune_ofo_queue (net/ipv4/tcp_input.c)",
        ],
        &["tcp-rmem", "tcp-mem"],
    ),
    counter(
        "TcpExt.TCPRcvCollapsed",
        &["TCPRcvCollapsed"],
        [
            NETSTAT,
            "Segments that were copied together to save memory: the buffer is too small for such small segments. It costs CPU and loses nothing.",
            "tcp_collapse (net/ipv4/tcp_input.c)",
        ],
        &["tcp-rmem"],
    ),
    counter(
        "TcpExt.TCPRcvCoalesce",
        &["TCPRcvCoalesce"],
        [
            NETSTAT,
            "Segments that were appended to the one before in the queue. Normal, and good.",
            "tcp_try_coalesce (net/ipv4/tcp_input.c)",
        ],
        &[],
    ),
    counter(
        "TcpExt.TCPMemoryPressures",
        &["TCPMemoryPressures"],
        [
            NETSTAT,
            "Times that TCP of the host came over the middle value of net.ipv4.tcp_mem and began to hold back buffers.",
            "tcp_enter_memory_pressure (net/ipv4/tcp.c)",
        ],
        &["tcp-mem"],
    ),
    counter(
        "TcpExt.PAWSEstab",
        &["PAWSEstab"],
        [
            NETSTAT,
            "Segments refused because their timestamp was older than the last one (PAWS).",
            "tcp_validate_incoming (net/ipv4/tcp_input.c)",
        ],
        &["tcp-timestamps"],
    ),
    counter(
        "TcpExt.BusyPollRxPackets",
        &["BusyPollRxPackets"],
        [
            NETSTAT,
            "Packets that a program fetched from the NIC itself by busy polling.",
            "napi_busy_loop (net/core/dev.c)",
        ],
        &["busy-poll-sysctl", "busy-poll-socket"],
    ),
    counter(
        "TcpExt.PFMemallocDrop",
        &["PFMemallocDrop"],
        [
            NETSTAT,
            "Packets from the memory reserve that were dropped because their socket is not for freeing memory: the host is out of memory.",
            "sk_filter_trim_cap (net/core/filter.c)",
        ],
        &[],
    ),
    counter(
        "TcpExt.TCPTimeouts",
        &["TCPTimeouts"],
        [
            NETSTAT,
            "Retransmission timers that expired.",
            "tcp_retransmit_timer, tcp_syn_ack_timeout (net/ipv4/tcp_timer.c)",
        ],
        &[],
    ),
    counter(
        "Tcp.RetransSegs",
        &["TcpRetransSegs", "RetransSegs"],
        [
            SNMP,
            "TCP segments that this host sent again.",
            "__tcp_retransmit_skb (net/ipv4/tcp_output.c)",
        ],
        &[],
    ),
    counter(
        "Tcp.InErrs",
        &["TcpInErrs", "TcpExt.TCPInCsumErrors", "Tcp.InCsumErrors"],
        [
            SNMP,
            "TCP segments with an error, a wrong check sum mostly.",
            "tcp_v4_rcv (net/ipv4/tcp_ipv4.c)",
        ],
        &["offload-rx-csum"],
    ),
    counter(
        "stat.softirq",
        &["%si", "%soft", "si"],
        [
            "/proc/stat, top, mpstat",
            "CPU time in softirqs. By default it is sampled at ticks and can be wrong by half; `rxpath steal` measures it.",
            "irqtime_account_process_tick or account_system_index_time (kernel/sched/cputime.c)",
        ],
        &["irq-time-accounting", "hz"],
    ),
    counter(
        "stat.steal",
        &["%st", "st"],
        [
            "/proc/stat, top, mpstat",
            "Time that the hypervisor gave the virtual CPU to somebody else.",
            "steal_account_process_time (kernel/sched/cputime.c)",
        ],
        &["hypervisor"],
    ),
];
