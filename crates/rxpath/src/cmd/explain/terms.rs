//! Terms of the receive path in plain words, each with its place on the path.

mod beside;

/// One term.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// `NAPI`, `IRQ affinity`.
    pub name: &'static str,
    /// Other names.
    pub also: &'static [&'static str],
    /// Where on the path it is.
    pub place: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The consequence for a host.
    pub so: &'static str,
    /// Rules, counters and commands about it, as `explain` finds them.
    pub see: &'static [&'static str],
}

const fn term(
    [name, place, what, so]: [&'static str; 4],
    also: &'static [&'static str],
    see: &'static [&'static str],
) -> Term {
    Term { name, also, place, what, so, see }
}

const NIC: &str = "1, the NIC";
const IRQ: &str = "2, hard interrupt and NAPI";
const GRO: &str = "3, GRO";
const BACKLOG: &str = "4, the backlog of a CPU (RPS, loopback)";
const IP: &str = "5, packet filter and IP";
const SOCKET: &str = "6, the socket's queue";
const APP: &str = "7, the application";

/// Every term.
pub fn all() -> impl Iterator<Item = &'static Term> {
    ON_THE_PATH.iter().chain(beside::TERMS)
}

/// Those of the path, in its order.
const ON_THE_PATH: &[Term] = &[
    term(
        [
            "ring",
            NIC,
            "The queue of descriptors that NIC and driver share: each free descriptor takes one packet, which the NIC writes by DMA.",
            "A full ring loses packets in the NIC. A larger ring holds a longer burst and adds waiting time. It does not help if the CPU is too slow all the time.",
        ],
        &["rx ring", "descriptor", "ring buffer", "DMA"],
        &["ring-rx", "rx_missed_errors", "rx_fifo_errors"],
    ),
    term(
        [
            "queue",
            NIC,
            "A NIC has several receive queues, each with its own ring, interrupt and NAPI instance; ethtool calls a queue with its interrupt a channel.",
            "Packets of one queue are handled by one CPU at a time. Fewer queues than busy CPUs leave CPUs idle.",
        ],
        &["channel", "multiqueue", "rx queue"],
        &["channels-combined", "channels-vs-cpus", "RSS"],
    ),
    term(
        [
            "RSS",
            NIC,
            "Receive side scaling: the NIC hashes addresses and ports of a packet and looks up in its indirection table which queue gets it.",
            "One flow stays on one queue: RSS distributes many flows, but never splits a single flow. UDP ports are often not hashed by default.",
        ],
        &["receive side scaling", "indirection table", "flow hash", "Toeplitz"],
        &["rss-indirection", "rss-fields-udp4", "rss-hash-key", "RPS"],
    ),
    term(
        [
            "flow steering",
            NIC,
            "Rules in the NIC that send chosen flows to chosen queues (ethtool -N, ntuple); aRFS writes such rules by itself.",
            "Use it to keep one flow, or one service, on a CPU of its own.",
        ],
        &["ntuple", "flow director", "aRFS", "accelerated RFS"],
        &["ntuple-rules", "arfs"],
    ),
    term(
        [
            "interrupt coalescing",
            NIC,
            "The NIC waits some microseconds (rx-usecs) or frames (rx-frames) before it interrupts, so that one interrupt serves several packets; adaptive coalescing (DIM) chooses the wait by the load.",
            "A longer wait adds latency and saves CPU time; a shorter wait does the opposite.",
        ],
        &[
            "coalescing",
            "interrupt moderation",
            "adaptive coalescing",
            "DIM",
            "ITR",
            "rx-usecs and rx-frames",
        ],
        &["irq-coalesce-rx-usecs", "irq-coalesce-adaptive", "NAPI"],
    ),
    term(
        [
            "checksum offload",
            NIC,
            "The NIC verifies the checksums of TCP and UDP.",
            "Without it, the CPU reads each byte once more.",
        ],
        &["rx checksum", "rx-csum"],
        &["offload-rx-csum"],
    ),
    term(
        [
            "flow control",
            NIC,
            "Pause frames: a NIC whose own buffer fills, because its rings are full or the bus is slow, asks the switch to stop sending for a while.",
            "It turns loss into delay, for all flows of the link.",
        ],
        &["pause frames", "802.3x"],
        &["flow-control-pause"],
    ),
    term(
        [
            "EEE",
            NIC,
            "Energy-Efficient Ethernet: the link sleeps between packets.",
            "Waking up costs some microseconds for the first packet.",
        ],
        &["energy efficient ethernet"],
        &["eee"],
    ),
    term(
        [
            "XDP",
            NIC,
            "A BPF program that the driver runs on each packet before the kernel allocates an skb; it can drop, redirect or pass. AF_XDP is a socket behind it.",
            "The cheapest place to drop. Packets dropped here are in no counter of IP or UDP.",
        ],
        &["AF_XDP", "express data path"],
        &["xdp-attached"],
    ),
    term(
        [
            "hardirq",
            IRQ,
            "The hardware interrupt: the NIC says that packets are there. Its handler masks the interrupt and schedules NAPI, nothing more.",
            "It stops the program on its CPU. Under load, NAPI needs one interrupt for many packets.",
        ],
        &["hard irq", "hard interrupt", "MSI-X", "interrupt", "IRQ"],
        &["irq-affinity", "interrupt coalescing", "softirq"],
    ),
    term(
        [
            "IRQ affinity",
            IRQ,
            "The CPUs on which a queue's interrupt may be handled (/proc/irq/N/smp_affinity_list); its packets are then polled on the same CPU.",
            "All queues on one CPU overload it. A running irqbalance may undo what was set by hand.",
        ],
        &["interrupt affinity", "smp_affinity", "smp_affinity_list"],
        &["irq-affinity", "irq-numa-local", "irqbalance-running"],
    ),
    term(
        [
            "NAPI",
            IRQ,
            "How Linux receives packets: after an interrupt the driver is polled for packets, with the interrupt off, until the ring is empty or the budget is used up.",
            "Under load there are few interrupts and many packets per poll. A poll that ends at its limit of 64 packets means that more was waiting.",
        ],
        &["NAPI poll", "new API", "poll"],
        &["napi-budget", "napi-threaded", "softnet.time_squeeze"],
    ),
    term(
        [
            "budget",
            IRQ,
            "The receive softirq stops after netdev_budget packets or netdev_budget_usecs, whichever comes first; a single poll ends after 64 packets.",
            "Each stop with work left counts as time_squeeze. A larger budget serves packets sooner and makes other work wait longer.",
        ],
        &["netdev budget", "NAPI budget", "poll weight"],
        &["napi-budget", "napi-budget-usecs", "softnet.time_squeeze"],
    ),
    term(
        [
            "softirq",
            IRQ,
            "The second half of an interrupt, run right behind it on the same CPU, before the interrupted program goes on. NET_RX is the one that receives.",
            "IP, UDP and TCP up to the socket run in it, and use the CPU time of the interrupted program.",
        ],
        &["soft interrupt", "bottom half", "NET_RX_SOFTIRQ"],
        &["NET_RX", "ksoftirqd", "napi-budget", "irq-time-accounting"],
    ),
    term(
        [
            "ksoftirqd",
            IRQ,
            "A kernel thread per CPU that runs softirqs when there are too many, or when they would keep a program off its CPU for too long.",
            "Once it runs, packets wait until the scheduler runs this thread.",
        ],
        &["ksoftirqd/N"],
        &["ksoftirqd-sched", "softirq"],
    ),
    term(
        [
            "threaded NAPI",
            IRQ,
            "NAPI polls run in a kernel thread (napi/DEV-ID) instead of a softirq.",
            "The scheduler then accounts and places this work; a thread that is not pinned moves between CPUs.",
        ],
        &["napi threaded", "napi thread"],
        &["napi-threaded", "napi-threaded-busy"],
    ),
    term(
        [
            "busy polling",
            APP,
            "The reading program polls the NIC's queue itself for some microseconds instead of sleeping until an interrupt (SO_BUSY_POLL, net.core.busy_poll, epoll).",
            "It saves the interrupt and the wake-up, and uses the CPU fully while it waits.",
        ],
        &["busy poll", "SO_BUSY_POLL", "epoll busy poll", "low latency sockets"],
        &[
            "busy-poll-socket",
            "busy-poll-sysctl",
            "irq-suspend-timeout",
            "TcpExt.BusyPollRxPackets",
        ],
    ),
    term(
        [
            "IRQ deferral",
            IRQ,
            "napi_defer_hard_irqs and gro_flush_timeout: after an empty poll, the interrupt stays off for a while and a timer polls instead.",
            "Fewer interrupts under a steady load; the timer bounds the added wait.",
        ],
        &["defer hard irqs", "gro flush timeout"],
        &["napi-defer-hard-irqs", "gro-flush-timeout"],
    ),
    term(
        [
            "GRO",
            GRO,
            "Generic receive offload: segments of one TCP flow (and of UDP, if enabled) that arrive in one poll are merged into one large packet before IP sees them.",
            "One trip through the stack for up to 64 KiB: saves more CPU time for bulk TCP than any other setting. It adds no wait by itself.",
        ],
        &["generic receive offload", "UDP GRO", "rx-gro"],
        &["offload-gro", "offload-gro-hw", "udp-gro-socket", "gro-max-size", "GSO"],
    ),
    term(
        [
            "LRO",
            GRO,
            "Large receive offload: the NIC or driver merges segments and does not record how they were cut.",
            "Wrong on a host that forwards or bridges; GRO does the same without that damage.",
        ],
        &["large receive offload"],
        &["offload-lro", "GRO"],
    ),
    term(
        [
            "GSO",
            GRO,
            "Generic segmentation offload: one large packet travels through the sending stack and is cut into segments at its end; TSO is the same done by the NIC, UDP_SEGMENT the same for UDP.",
            "On veth and loopback the large packet arrives uncut: device counters count one packet where the receiver reads many.",
        ],
        &["TSO", "UDP GSO", "UDP_SEGMENT", "segmentation offload"],
        &["offload-tso-gso", "GRO"],
    ),
    term(
        [
            "RPS",
            BACKLOG,
            "Receive packet steering: RSS in software. The CPU that polled the packet hashes it and puts it into the backlog of another CPU.",
            "It helps a NIC with fewer queues than CPUs; it costs an inter-processor interrupt, and it cannot split a single flow.",
        ],
        &["receive packet steering", "rps_cpus"],
        &["rps-cpus", "RFS", "softnet.received_rps"],
    ),
    term(
        [
            "RFS",
            BACKLOG,
            "Receive flow steering: RPS that chooses the CPU on which the flow's program last read.",
            "Good cache use for many flows; useless if programs keep moving between CPUs.",
        ],
        &["receive flow steering"],
        &["rfs-flow-entries", "arfs", "RPS"],
    ),
    term(
        [
            "XPS",
            NIC,
            "Transmit packet steering: which transmit queue a CPU uses.",
            "It decides on which CPU the completions of sent packets are handled.",
        ],
        &["transmit packet steering", "xps_cpus"],
        &["xps"],
    ),
    term(
        [
            "backlog",
            BACKLOG,
            "A queue of packets per CPU in front of the protocols, for RPS, loopback, veth and old drivers (net.core.netdev_max_backlog packets).",
            "If it is full, packets are dropped and counted in softnet_stat. It is neither the listen backlog nor a TCP socket's backlog.",
        ],
        &["CPU backlog", "netdev backlog", "input_pkt_queue"],
        &["backlog-max", "softnet.dropped", "accept queue"],
    ),
    term(
        [
            "skb",
            IP,
            "The kernel's structure of one packet (struct sk_buff): the data and their metadata.",
            "It takes several times the memory of a small packet, and socket buffers count this memory: see truesize.",
        ],
        &["sk_buff", "socket buffer structure"],
        &["truesize"],
    ),
    term(
        [
            "netfilter",
            IP,
            "The hooks of nftables and iptables. Each packet passes them (a GRO aggregate counts as one packet).",
            "Rules are checked one after the other: hundreds of them cost as much as the rest of the path. Use sets and maps.",
        ],
        &["nftables", "iptables", "firewall", "packet filter"],
        &["nf-hooks", "iptables-legacy-chains", "conntrack"],
    ),
    term(
        [
            "conntrack",
            IP,
            "Connection tracking: netfilter keeps an entry for each flow, UDP flows included.",
            "A lookup per packet, and loss of new flows when the table is full.",
        ],
        &["connection tracking", "nf_conntrack"],
        &["conntrack-active", "conntrack-sizing", "nf_conntrack.insert_failed"],
    ),
    term(
        [
            "reverse path filter",
            IP,
            "IP drops a packet when the reply to its source would leave through another device (rp_filter).",
            "With asymmetric routes, all packets are lost. Only one counter and the drop reason IP_RPFILTER show it.",
        ],
        &["rpf", "rp_filter"],
        &["rp-filter", "TcpExt.IPReversePathFilter"],
    ),
    term(
        [
            "early demux",
            IP,
            "The socket of a packet is looked up before the route, so that the route cached in the socket can be used.",
            "Useful on a host with connected flows; wasted work on a router.",
        ],
        &[],
        &["tcp-early-demux", "udp-early-demux"],
    ),
    term(
        [
            "socket receive buffer",
            SOCKET,
            "Memory in which a socket keeps arrived data until the program reads them (SO_RCVBUF, bounded by net.core.rmem_max; TCP grows it by itself up to tcp_rmem).",
            "For UDP, a full buffer means loss. A larger buffer covers a longer burst or a longer pause of the reader. It does not help a reader that is too slow all the time.",
        ],
        &["receive buffer", "SO_RCVBUF", "rcvbuf", "socket buffer", "receive queue"],
        &["socket-rcvbuf-actual", "rmem-max", "Udp.RcvbufErrors", "truesize"],
    ),
    term(
        [
            "truesize",
            SOCKET,
            "The memory that a packet really takes: its structure and its whole buffers, not only its bytes.",
            "A socket buffer is filled by truesize. A datagram of 64 bytes takes 768 bytes and more, so a buffer of 208 KiB holds less than 280 of them.",
        ],
        &[],
        &["socket-rcvbuf-actual", "socket receive buffer"],
    ),
    term(
        [
            "accept queue",
            SOCKET,
            "Connections that are complete and wait for accept(), at most the smaller of listen()'s backlog and net.core.somaxconn.",
            "If it is full, requests are dropped, and the client retries a second later.",
        ],
        &["listen backlog", "listen queue", "somaxconn queue"],
        &["somaxconn", "TcpExt.ListenOverflows", "SYN queue"],
    ),
    term(
        [
            "SYN queue",
            SOCKET,
            "Connections whose first SYN has arrived and whose handshake is not complete.",
            "If it is full, SYN cookies are used, or SYNs are dropped.",
        ],
        &["half-open connections", "SYN backlog", "SYN cookies"],
        &["syn-backlog", "TcpExt.TCPReqQFullDrop"],
    ),
    term(
        [
            "SO_REUSEPORT",
            SOCKET,
            "Several sockets bound to one port: the kernel distributes flows over them by a hash, or by a BPF program.",
            "With one thread per socket, no lock is shared. The hash ignores load: one socket may get most of it.",
        ],
        &["reuseport"],
        &["reuseport-incoming-cpu", "reuseport-imbalance"],
    ),
    term(
        [
            "socket lock",
            SOCKET,
            "The lock of one socket, taken by each read and, for TCP, each segment.",
            "Several threads that read one socket wait for each other; SO_REUSEPORT avoids it.",
        ],
        &["lock contention"],
        &["socket-lock", "SO_REUSEPORT"],
    ),
    term(
        [
            "early wake-up",
            APP,
            "The softirq wakes the program that sleeps in read, poll or epoll; the scheduler decides when it runs.",
            "A busy CPU, or one in a deep sleep state, makes the first packet wait. Pinning, priority and shallow sleep states help.",
        ],
        &["wake-up", "wakeup latency", "scheduling latency"],
        &["reader-placement", "cpu-cstates", "other-load"],
    ),
    term(
        [
            "recvmmsg",
            APP,
            "One system call that reads many datagrams.",
            "The datagrams share the cost of the call; `rxpath serve udp --batch` uses it.",
        ],
        &["batching", "batched reads"],
        &["udp-batching", "udp-gro-socket"],
    ),
];
