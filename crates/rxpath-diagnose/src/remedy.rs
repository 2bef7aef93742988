//! Remedies, in two wordings: for users of rxpath's own workloads, and for users with a service of their own.

use std::borrow::Cow;

/// One change. The same text for a trial and for a live host is plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The same text for both.
    Plain(Cow<'static, str>),
    /// Move the receive softirq off the reader's CPU; the mask may also be emptied.
    SoftirqOffReader {
        /// That CPU.
        cpu: u32,
        /// Whether switching RPS off helps as well.
        or_none: bool,
    },
    /// This many readers, each with its own socket and CPU.
    MoreReaders(usize),
    /// A socket for each of this many threads.
    SocketEach(usize),
    /// One thread instead of several that contend.
    OneReader,
    /// More datagrams per system call.
    LargerBatches,
    /// Less work per datagram.
    LessWork,
    /// A receive buffer that survives bursts and stalls, of this size if it is known.
    ReceiveBuffer(Option<String>),
    /// A receive buffer that survives waits for a CPU.
    BufferForWaits,
    /// Smaller buffers on sockets that no thread reads.
    SmallerBuffers,
    /// Senders that do not burst.
    SmootherSending,
    /// A lower rate of the sender on this host.
    LowerRate,
    /// A lower rate than the knee.
    OfferLess,
    /// More flows and a wider mask, for the backlog.
    SpreadBacklog,
    /// A sender that waits instead of losing.
    SmallerSendBuffer,
    /// Flows over more CPUs.
    SpreadFlows,
    /// Less work for the softirqs of this CPU.
    LighterSoftirq(u32),
    /// Packets that share their cost, on both sides.
    ShareCost,
    /// Aggregates kept whole at the receiver.
    KeepAggregates,
    /// More flows: a single flow cannot be distributed.
    MoreThanOneFlow,
    /// More flows over a group of sockets.
    MoreFlowsOverGroup,
    /// Sockets of a group chosen by CPU.
    SteerByCpu,
    /// A CPU for the reader alone.
    ReaderOwnCpu,
    /// Other work off the CPU that polls.
    OtherWorkOff,
    /// Traffic must run for a verdict.
    StartTraffic {
        /// Whether other namespaces have traffic.
        elsewhere: bool,
    },
    /// There is no limit at this load.
    MoreLoad,
}

impl From<&'static str> for Remedy {
    fn from(text: &'static str) -> Self {
        Self::Plain(text.into())
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Self {
        Self::Plain(text.into())
    }
}

impl Remedy {
    /// As text: for the services of a live host, or for the workloads of a trial.
    pub fn words(&self, live: bool) -> String {
        if let Self::Plain(text) = self {
            return text.clone().into_owned();
        }
        if live { self.live() } else { self.of_a_trial() }
    }

    #[expect(clippy::too_many_lines, reason = "a table: a line or two for each")]
    fn of_a_trial(&self) -> String {
        let text: &str = match self {
            Self::Plain(text) => text,
            Self::SoftirqOffReader { cpu, or_none } => {
                let none = if *or_none { ", or none (0)" } else { "" };
                return format!(
                    "take the receive softirq off CPU {cpu}: another CPU in rps_cpus{none}, or move the reader (`serve udp --cpu`)"
                );
            }
            Self::MoreReaders(threads) => {
                return format!(
                    "more readers, each with a socket and a CPU of its own: `serve udp --threads {threads} --sockets reuseport --cpu LIST`"
                );
            }
            Self::SocketEach(threads) => {
                return format!(
                    "a socket for each thread: `serve udp --sockets reuseport --threads {threads}`, with many flows"
                );
            }
            Self::OneReader => {
                "one thread with larger batches may read more than several that contend: `serve udp --threads 1 --batch 1024`"
            }
            Self::LargerBatches => {
                "more datagrams per system call: `serve udp --batch 1024` (recvmmsg); with a GSO sender `--gro`"
            }
            Self::LessWork => {
                "less work per datagram in the application: its share of the cost above is its own (`--work`)"
            }
            Self::ReceiveBuffer(size) => {
                let (what, option) = match size {
                    Some(size) => ("a buffer that survives it", format!(" {size}")),
                    None => ("a larger buffer", String::new()),
                };
                return format!(
                    "{what}: `serve udp --rcvbuf{option}` (the buffer as the kernel accounts it; a program of your own asks SO_RCVBUF for half of it; without CAP_NET_ADMIN net.core.rmem_max must be at least that half)"
                );
            }
            Self::BufferForWaits => {
                "a larger receive buffer (`serve udp --rcvbuf`) survives waits up to its length, not a lack of CPU"
            }
            Self::SmallerBuffers => {
                "or smaller buffers on the sockets that are not read (`serve udp --rcvbuf`)"
            }
            Self::SmootherSending => {
                "smoother sending: `load udp --rate` paces; smaller GSO batches make smaller bursts"
            }
            Self::LowerRate => "offer less: --rate on the sender",
            Self::OfferLess => {
                "offer less than the knee (`load udp --rate`): beyond it more offered means less delivered"
            }
            Self::SpreadBacklog => {
                "spread over more CPUs (a wider rps_cpus mask) with more flows (`load udp --unconnected --flows 16`)"
            }
            Self::SmallerSendBuffer => {
                "a sender's send buffer under the backlog's length slows the sender instead of losing (`load udp --sndbuf`)"
            }
            Self::SpreadFlows => {
                "spread the flows over more CPUs: a wider rps_cpus mask (/sys/class/net/IF/queues/rx-0/rps_cpus) or more queues (ethtool -L), with at least 16 flows (`load udp --unconnected --flows 16`)"
            }
            Self::LighterSoftirq(cpu) => {
                return format!(
                    "take work off CPU {cpu}: fewer netfilter rules and hooks on the way in, no conntrack for this traffic (NOTRACK), the reader on another CPU (`serve udp --cpu`)"
                );
            }
            Self::ShareCost => {
                "let packets share their cost: GSO on the sender (`load udp --gso`) with UDP_GRO on the receiver (`serve udp --gro`)"
            }
            Self::KeepAggregates => {
                "make each packet cheaper before the socket: UDP_GRO on the receiver (`serve udp --gro`) keeps a GSO sender's aggregates whole"
            }
            Self::MoreThanOneFlow => {
                "more flows (`load udp --unconnected --flows 16`, or more connections): no setting of the receiver distributes a single flow"
            }
            Self::MoreFlowsOverGroup => {
                "more flows: the group distributes flows by a hash of addresses and ports, and a few flows may all hit one socket (`load udp --unconnected --flows 64`)"
            }
            Self::SteerByCpu => {
                "choose the socket by the CPU of the softirq instead of the hash: `serve udp --steer cpu`"
            }
            Self::ReaderOwnCpu => {
                "give the reader a CPU of its own (`serve udp --cpu`), apart from the sender's and from other programs"
            }
            Self::OtherWorkOff => {
                "move the other work off the CPU that polls (`--cpu`, taskset, smp_affinity)"
            }
            Self::StartTraffic { .. } => {
                "start the sender; its exit status and its last line say why it did not send"
            }
            Self::MoreLoad => {
                "to find the limit, set a higher rate (`load udp --rate`), or leave the rate out"
            }
        };
        text.to_owned()
    }

    #[expect(clippy::too_many_lines, reason = "a table: a line or two for each")]
    fn live(&self) -> String {
        let text: &str = match self {
            Self::Plain(text) => text,
            Self::SoftirqOffReader { cpu, or_none } => {
                let none = if *or_none { ", or none (0)" } else { "" };
                return format!(
                    "take the receive softirq off CPU {cpu}: another CPU in rps_cpus{none} or in the interrupt's smp_affinity; or move the service (taskset, CPUAffinity= of its unit)"
                );
            }
            Self::MoreReaders(threads) => {
                return format!(
                    "more readers in the service's configuration (threads, workers, processes): {threads} or more, each with a SO_REUSEPORT socket and a CPU of its own"
                );
            }
            Self::SocketEach(threads) => {
                return format!(
                    "a socket for each of its {threads} readers, where the service's configuration has SO_REUSEPORT; it needs many flows"
                );
            }
            Self::OneReader => {
                "fewer threads on the one socket, in the service's configuration: one that reads in batches may read more than several that contend"
            }
            Self::LargerBatches => {
                "more datagrams per system call, if the service supports it: recvmmsg, UDP_GRO"
            }
            Self::LessWork => {
                "less work per datagram in the thread that reads: logging, disk and lookups to other threads"
            }
            Self::ReceiveBuffer(size) => {
                let size = size.as_ref().map_or_else(String::new, |size| {
                    format!(", {size} as the kernel accounts it, which is twice what is asked for")
                });
                return format!(
                    "a larger receive buffer in the service's configuration (SO_RCVBUF{size}), and net.core.rmem_max at least what it asks for; a service that sets none has net.core.rmem_default"
                );
            }
            Self::BufferForWaits => {
                "a larger receive buffer of the service (SO_RCVBUF, net.core.rmem_max) survives waits up to its length, not a lack of CPU"
            }
            Self::SmallerBuffers => {
                "or smaller receive buffers (SO_RCVBUF) of the services whose sockets are not read"
            }
            Self::SmootherSending => {
                "smoother sending, if you control the senders: pacing (qdisc `fq`, SO_MAX_PACING_RATE), smaller GSO batches"
            }
            Self::LowerRate => "send less from this host",
            Self::OfferLess => {
                "less load on this host (fewer clients, a limit in front of it): beyond the knee more offered means less delivered"
            }
            Self::SpreadBacklog => {
                "spread over more CPUs: a wider rps_cpus mask (/sys/class/net/IF/queues/rx-*/rps_cpus); it needs more than a few flows"
            }
            Self::SmallerSendBuffer => {
                "where the sender is on this host: a smaller send buffer (SO_SNDBUF) slows it instead of losing"
            }
            Self::SpreadFlows => {
                "spread the flows over more CPUs: a wider rps_cpus mask (/sys/class/net/IF/queues/rx-*/rps_cpus) or more queues (`ethtool -L IF combined N`); it needs more than a few flows"
            }
            Self::LighterSoftirq(cpu) => {
                return format!(
                    "take work off CPU {cpu}: fewer netfilter rules and hooks on the way in, no conntrack for this traffic (NOTRACK), programs on other CPUs (taskset, CPUAffinity= of the unit)"
                );
            }
            Self::ShareCost => {
                "let packets share their cost: GRO on the device (`ethtool -k IF`: generic-receive-offload), UDP_GRO in a service that has it"
            }
            Self::KeepAggregates => {
                "make each packet cheaper before the socket: UDP_GRO, where the service's configuration has it, keeps aggregates whole"
            }
            Self::MoreThanOneFlow => {
                "more flows (more connections, more tunnels): no setting of the receiver distributes a single flow"
            }
            Self::MoreFlowsOverGroup => {
                "more flows: the group distributes flows by a hash of addresses and ports, and a few flows may all hit one socket"
            }
            Self::SteerByCpu => {
                "choose the socket by the CPU of the softirq instead of the hash, where the service can: SO_INCOMING_CPU, SO_ATTACH_REUSEPORT_CBPF"
            }
            Self::ReaderOwnCpu => {
                "give the service a CPU of its own (taskset, cpuset, CPUAffinity= of its unit), apart from other programs"
            }
            Self::OtherWorkOff => {
                "move the other work off the CPU that polls (taskset, cpuset; smp_affinity of other interrupts)"
            }
            Self::StartTraffic { elsewhere: false } => {
                "watch while the traffic runs, or longer (`--duration`)"
            }
            Self::StartTraffic { elsewhere: true } => {
                "watch the network namespace of the traffic: `--netns NAME`, or `--pid PID` of a program in it"
            }
            Self::MoreLoad => {
                "nothing for this traffic; watch again while there is more, or longer (`--duration`)"
            }
        };
        text.to_owned()
    }
}
