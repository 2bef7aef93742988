//! Remedies, in two wordings: for users of rxpath's own workloads, and for users with a service of their own.

use std::borrow::Cow;

/// One change. Plain text becomes one with the same wording for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// For the workloads of a trial.
    pub of_a_trial: Cow<'static, str>,
    /// For the services of a live host.
    pub live: Cow<'static, str>,
}

impl From<&'static str> for Remedy {
    fn from(text: &'static str) -> Self {
        Self::new(text, text)
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Self {
        Self::of(text.clone(), text)
    }
}

impl Remedy {
    const fn new(of_a_trial: &'static str, live: &'static str) -> Self {
        Self { of_a_trial: Cow::Borrowed(of_a_trial), live: Cow::Borrowed(live) }
    }

    fn of(of_a_trial: String, live: String) -> Self {
        Self { of_a_trial: Cow::Owned(of_a_trial), live: Cow::Owned(live) }
    }

    /// One thread instead of several that contend.
    pub const ONE_READER: Self = Self::new(
        "one thread with larger batches may read more than several that contend: `serve udp --threads 1 --batch 1024`",
        "fewer threads on the one socket, in the service's configuration: one that reads in batches may read more than several that contend",
    );

    /// More datagrams per system call.
    pub const LARGER_BATCHES: Self = Self::new(
        "more datagrams per system call: `serve udp --batch 1024` (recvmmsg); with a GSO sender `--gro`",
        "more datagrams per system call, if the service supports it: recvmmsg, UDP_GRO",
    );

    /// A reader for each queue.
    pub const READER_PER_QUEUE: Self = Self::new(
        "a thread for each queue, on a CPU of its own (`serve udp --engine xdp --threads N`)",
        "a thread of the service for each queue with an AF_XDP socket, on a CPU of its own",
    );

    /// Room in AF_XDP sockets.
    pub const MORE_FRAMES: Self = Self::new(
        "more frames and a longer ring survive longer pauses: `serve udp --engine xdp --umem-frames 16384 --xdp-ring 8192`",
        "more frames and longer rings of the service's AF_XDP sockets survive longer pauses",
    );

    /// Less work per datagram.
    pub const LESS_WORK: Self = Self::new(
        "less work per datagram in the application: its share of the cost above is its own (`--work`)",
        "less work per datagram in the thread that reads: logging, disk and lookups to other threads",
    );

    /// A receive buffer that survives waits for a CPU.
    pub const BUFFER_FOR_WAITS: Self = Self::new(
        "a larger receive buffer (`serve udp --rcvbuf`) survives waits up to its length, not a lack of CPU",
        "a larger receive buffer of the service (SO_RCVBUF, net.core.rmem_max) survives waits up to its length, not a lack of CPU",
    );

    /// Smaller buffers on sockets that no thread reads.
    pub const SMALLER_BUFFERS: Self = Self::new(
        "or smaller buffers on the sockets that are not read (`serve udp --rcvbuf`)",
        "or smaller receive buffers (SO_RCVBUF) of the services whose sockets are not read",
    );

    /// Senders that do not burst.
    pub const SMOOTHER_SENDING: Self = Self::new(
        "smoother sending: `load udp --rate` paces; smaller GSO batches make smaller bursts",
        "smoother sending, if you control the senders: pacing (qdisc `fq`, SO_MAX_PACING_RATE), smaller GSO batches",
    );

    /// A lower rate of the sender on this host.
    pub const LOWER_RATE: Self =
        Self::new("offer less: --rate on the sender", "send less from this host");

    /// A lower rate than the knee.
    pub const OFFER_LESS: Self = Self::new(
        "offer less than the knee (`load udp --rate`): beyond it more offered means less delivered",
        "less load on this host (fewer clients, a limit in front of it): beyond the knee more offered means less delivered",
    );

    /// More flows and a wider mask, for the backlog.
    pub const SPREAD_BACKLOG: Self = Self::new(
        "spread over more CPUs (a wider rps_cpus mask) with more flows (`load udp --unconnected --flows 16`)",
        "spread over more CPUs: a wider rps_cpus mask (/sys/class/net/IF/queues/rx-*/rps_cpus); it needs more than a few flows",
    );

    /// A sender that waits instead of losing.
    pub const SMALLER_SEND_BUFFER: Self = Self::new(
        "a sender's send buffer under the backlog's length slows the sender instead of losing (`load udp --sndbuf`)",
        "where the sender is on this host: a smaller send buffer (SO_SNDBUF) slows it instead of losing",
    );

    /// Flows over more CPUs.
    pub const SPREAD_FLOWS: Self = Self::new(
        "spread the flows over more CPUs: a wider rps_cpus mask (/sys/class/net/IF/queues/rx-0/rps_cpus) or more queues (ethtool -L), with at least 16 flows (`load udp --unconnected --flows 16`)",
        "spread the flows over more CPUs: a wider rps_cpus mask (/sys/class/net/IF/queues/rx-*/rps_cpus) or more queues (`ethtool -L IF combined N`); it needs more than a few flows",
    );

    /// Packets that share their cost, on both sides.
    pub const SHARE_COST: Self = Self::new(
        "let packets share their cost: GSO on the sender (`load udp --gso`) with UDP_GRO on the receiver (`serve udp --gro`)",
        "let packets share their cost: GRO on the device (`ethtool -k IF`: generic-receive-offload), UDP_GRO in a service that has it",
    );

    /// Aggregates kept whole at the receiver.
    pub const KEEP_AGGREGATES: Self = Self::new(
        "make each packet cheaper before the socket: UDP_GRO on the receiver (`serve udp --gro`) keeps a GSO sender's aggregates whole",
        "make each packet cheaper before the socket: UDP_GRO, where the service's configuration has it, keeps aggregates whole",
    );

    /// More flows: a single flow cannot be distributed.
    pub const MORE_THAN_ONE_FLOW: Self = Self::new(
        "more flows (`load udp --unconnected --flows 16`, or more connections): no setting of the receiver distributes a single flow",
        "more flows (more connections, more tunnels): no setting of the receiver distributes a single flow",
    );

    /// More flows over a group of sockets.
    pub const MORE_FLOWS_OVER_GROUP: Self = Self::new(
        "more flows: the group distributes flows by a hash of addresses and ports, and a few flows may all hit one socket (`load udp --unconnected --flows 64`)",
        "more flows: the group distributes flows by a hash of addresses and ports, and a few flows may all hit one socket",
    );

    /// Sockets of a group chosen by CPU.
    pub const STEER_BY_CPU: Self = Self::new(
        "choose the socket by the CPU of the softirq instead of the hash: `serve udp --steer cpu`",
        "choose the socket by the CPU of the softirq instead of the hash, where the service can: SO_INCOMING_CPU, SO_ATTACH_REUSEPORT_CBPF",
    );

    /// A CPU for the reader alone.
    pub const READER_OWN_CPU: Self = Self::new(
        "give the reader a CPU of its own (`serve udp --cpu`), apart from the sender's and from other programs",
        "give the service a CPU of its own (taskset, cpuset, CPUAffinity= of its unit), apart from other programs",
    );

    /// Other work off the CPU that polls.
    pub const OTHER_WORK_OFF: Self = Self::new(
        "move the other work off the CPU that polls (`--cpu`, taskset, smp_affinity)",
        "move the other work off the CPU that polls (taskset, cpuset; smp_affinity of other interrupts)",
    );

    /// There is no limit at this load.
    pub const MORE_LOAD: Self = Self::new(
        "to find the limit, set a higher rate (`load udp --rate`), or leave the rate out",
        "nothing for this traffic; watch again while there is more, or longer (`--duration`)",
    );

    /// Move the receive softirq off the reader's CPU; switching RPS off may help as well.
    pub fn softirq_off_reader(cpu: u32, or_none: bool) -> Self {
        let none = if or_none { ", or none (0)" } else { "" };
        let off = format!("take the receive softirq off CPU {cpu}: another CPU in rps_cpus{none}");
        Self::of(
            format!("{off}, or move the reader (`serve udp --cpu`)"),
            format!(
                "{off} or in the interrupt's smp_affinity; or move the service (taskset, CPUAffinity= of its unit)"
            ),
        )
    }

    /// This many readers, each with its own socket and CPU.
    pub fn more_readers(threads: usize) -> Self {
        Self::of(
            format!(
                "more readers, each with a socket and a CPU of its own: `serve udp --threads {threads} --sockets reuseport --cpu LIST`"
            ),
            format!(
                "more readers in the service's configuration (threads, workers, processes): {threads} or more, each with a SO_REUSEPORT socket and a CPU of its own"
            ),
        )
    }

    /// A socket for each of this many threads.
    pub fn socket_each(threads: usize) -> Self {
        Self::of(
            format!(
                "a socket for each thread: `serve udp --sockets reuseport --threads {threads}`, with many flows"
            ),
            format!(
                "a socket for each of its {threads} readers, where the service's configuration has SO_REUSEPORT; it needs many flows"
            ),
        )
    }

    /// A receive buffer that survives bursts and stalls, of this size if it is known.
    pub fn receive_buffer(size: Option<&str>) -> Self {
        let (what, option, kernel) = match size {
            Some(size) => (
                "a buffer that survives it",
                format!(" {size}"),
                format!(", {size} as the kernel accounts it, which is twice what is asked for"),
            ),
            None => ("a larger buffer", String::new(), String::new()),
        };
        Self::of(
            format!(
                "{what}: `serve udp --rcvbuf{option}` (the buffer as the kernel accounts it; a program of your own asks SO_RCVBUF for half of it; without CAP_NET_ADMIN net.core.rmem_max must be at least that half)"
            ),
            format!(
                "a larger receive buffer in the service's configuration (SO_RCVBUF{kernel}), and net.core.rmem_max at least what it asks for; a service that sets none has net.core.rmem_default"
            ),
        )
    }

    /// Less work for the softirqs of this CPU.
    pub fn lighter_softirq(cpu: u32) -> Self {
        let off = format!(
            "take work off CPU {cpu}: fewer netfilter rules and hooks on the way in, no conntrack for this traffic (NOTRACK)"
        );
        Self::of(
            format!("{off}, the reader on another CPU (`serve udp --cpu`)"),
            format!("{off}, programs on other CPUs (taskset, CPUAffinity= of the unit)"),
        )
    }

    /// Traffic must run for a verdict; other namespaces may have it.
    pub const fn start_traffic(elsewhere: bool) -> Self {
        let live = if elsewhere {
            "watch the network namespace of the traffic: `--netns NAME`, or `--pid PID` of a program in it"
        } else {
            "watch while the traffic runs, or longer (`--duration`)"
        };
        Self::new(
            "start the sender; its exit status and its last line say why it did not send",
            live,
        )
    }
}
