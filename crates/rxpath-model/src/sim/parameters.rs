//! Every parameter of a simulation, once: its name, unit, range, default and meaning, and the field of [`Parameters`]
//! that holds it.
//!
//! The reader of parameter files, `--set`, the messages about bad values and the table in `docs/reference/simulator.md` all come
//! from this list.

use serde::Deserialize;

use super::given::Values;
use super::keys::Sort::{
    self, Bytes, Count, Cpus, Flag, Nice, Rate, Ratio, States, Text, Time, Word,
};
use super::keys::{CPUS, ParameterKey};

mod checked;

/// The law of the arrivals.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Law {
    /// Independent exponential times.
    #[default]
    Poisson,
    /// One packet every so often.
    Cbr {
        /// Part of an interval before the first.
        phase: f64,
    },
    /// Poisson at the rate while on, nothing while off; both exponential, in ns.
    OnOff {
        /// Mean time on.
        on: u64,
        /// Mean time off.
        off: u64,
    },
    /// Poisson with a rate that changes in turn.
    Mmpp(Vec<State>),
    /// What a file says.
    Trace {
        /// Its path, for the caller that opens it.
        file: String,
    },
    /// One stream that a window limits.
    Tcp {
        /// Packets that may be unacknowledged or unread.
        window: u64,
        /// From a delivery to its acknowledgement, in ns.
        rtt: u64,
    },
}

/// A state of a modulated Poisson process.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct State {
    /// Packets/s.
    pub rate_pps: f64,
    /// Mean time in ns.
    pub mean_ns: f64,
}

/// When descriptors or socket memory are free again, and how polls take packets: see the keys of the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// By quarters of the buffer, or when the reader's queue is empty (`udp_rmem_release`).
    #[default]
    Lazy,
    /// When the reader takes the packet.
    Read,
    /// When the reader is done with it: the textbook's queue, whose places include the one in service.
    Done,
}

/// Who gets a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchedulerKind {
    /// Earliest eligible virtual deadline first, since 6.6.
    Eevdf,
    /// Active and expired arrays, 2.6.8 to 2.6.22.
    O1,
}

/// A second.
const S: u64 = 1_000_000_000;
/// Costs of single steps.
const COST: (u64, u64) = (0, 10 * S);
const CPU: (u64, u64) = (0, CPUS - 1);
const PACKETS: Sort = Count("packets");

macro_rules! option {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

/// A row: `/// meaning`, `"key" = "default": sort, range => field: type;`. A row without a field is used by
/// [`Parameters::new`], which derives other fields from it.
macro_rules! parameters {
    ($(
        #[doc = $what:literal]
        $key:literal $(= $default:literal)?: $sort:expr $(, $range:expr)? $(=> $field:ident: $type:ty)?;
    )*) => {
        /// All of them, section by section.
        pub const KEYS: &[ParameterKey] = &[$(ParameterKey {
            name: $key,
            sort: $sort,
            range: [$($range,)? (0, 0)][0],
            default: option!($($default)?),
            what: $what.trim_ascii(),
        }),*];

        /// Everything that a simulation needs; times in ns, rates in packets/s, sizes in bytes.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        pub struct Parameters {
            $($(
                #[doc = $what]
                #[serde(rename = $key)]
                pub $field: $type,
            )?)*
            /// What was given and the defaults, as results echo them.
            #[serde(skip)]
            pub values: Values,
            /// From `arrivals.kind` and what it needs.
            #[serde(skip)]
            pub law: Law,
            /// `arrivals.rate`, for laws that have one.
            #[serde(skip)]
            pub rate: f64,
            /// From one sample to the next.
            #[serde(skip)]
            pub sample: u64,
            /// `reader.period`, if the reader stalls.
            #[serde(skip)]
            pub period: u64,
            /// `softirq.budget_usecs`.
            #[serde(skip)]
            pub budget_ns: u64,
            /// From `softirq.hz`.
            #[serde(skip)]
            pub jiffy: u64,
            /// `nic.refill` is `poll`.
            #[serde(skip)]
            pub refill_by_poll: bool,
            /// `softirq.poll` is `exhaustive`.
            #[serde(skip)]
            pub exhaustive: bool,
            /// `softirq.ksoftirqd` is `instead`.
            #[serde(skip)]
            pub holds_back: bool,
            /// `socket.admission` is `old`.
            #[serde(skip)]
            pub old_admission: bool,
            /// `socket.release`, where the law leaves a choice.
            #[serde(skip)]
            pub release: Release,
            /// `reader.service` is `exponential`.
            #[serde(skip)]
            pub exponential_service: bool,
        }
    };
}

parameters! {
    /// Name of the set
    "name" = "simulation": Text => name: String;
    /// The question that the simulation answers
    "question" = "": Text => question: String;
    /// What is known about the answer
    "expected" = "": Text => expected: String;
    /// How long packets arrive
    "duration" = "1s": Time, (1, 100_000 * S) => duration: u64;
    /// Start of the measured window; the ledger covers the whole run
    "warmup" = "0": Time, (0, 100_000 * S) => warmup: u64;
    /// Longest wait for the queues to drain after the last arrival
    "drain" = "10s": Time, (0, 10_000 * S) => drain: u64;
    /// Sampling interval [1/1000 of the duration]
    "sample": Time, (1000, 10_000 * S);
    /// Seed of all random numbers
    "seed" = "1": Count("number"), (0, u64::MAX) => seed: u64;

    /// Arrival process; `tcp` is one window-limited stream
    "arrivals.kind" = "poisson": Word(&["poisson", "cbr", "onoff", "mmpp", "trace", "tcp"]);
    /// Mean rate; `onoff`: rate while on; `tcp`: line rate
    "arrivals.rate": Rate, (1, 1_000_000_000);
    /// Payload of a packet
    "arrivals.size" = "32": Bytes, (0, 65_507) => size: u64;
    /// `cbr`: the first packet arrives after this part of an interval
    "arrivals.phase" = "1.0": Ratio, (0, 1000);
    /// `onoff`: mean time on (exponential)
    "arrivals.on": Time, (1, 10_000 * S);
    /// `onoff`: mean time off (exponential)
    "arrivals.off": Time, (1, 10_000 * S);
    /// `mmpp`: the states, visited in order for exponential times
    "arrivals.states": States, (1, 64);
    /// `trace`: lines of `ns,bytes,flow`, or a pcap file
    "arrivals.file": Text;
    /// `tcp`: the receive window [what the socket holds]
    "arrivals.window": Bytes, (1, 1 << 40);
    /// `tcp`: time from delivery to the acknowledgement at the sender
    "arrivals.rtt" = "200us": Time, (1, 100 * S);
    /// Number of flows
    "arrivals.flows" = "1": Count("flows"), (1, 65_536) => flows: u32;
    /// Zipf exponent of flow popularity; 0 = all flows equal
    "arrivals.zipf" = "0.0": Ratio, (0, 10_000) => zipf: f64;

    /// Receive queues; a flow's queue follows from its Toeplitz hash
    "nic.queues" = "1": Count("queues"), (1, CPUS) => queues: usize;
    /// Descriptors of each queue
    "nic.ring" = "256": Count("descriptors"), (1, 1 << 20) => ring: u64;
    /// Entries of the indirection table; entry i is queue i mod queues
    "nic.indirection" = "128": Count("entries"), (1, 65_536) => indirection: u64;
    /// CPU of each queue's interrupt, in queue order
    "nic.cpus" = "[0]": Cpus, CPU => nic_cpus: Vec<u32>;
    /// Interrupt coalescing by time, from the first packet
    "nic.rx_usecs" = "0": Count("us"), (0, 1_000_000) => rx_usecs: u64;
    /// Interrupt coalescing by packets; 0 = by time only
    "nic.rx_frames" = "0": PACKETS, (0, 1 << 20) => rx_frames: u64;
    /// Total CPU time of an interrupt
    "nic.irq_ns" = "0": Time, COST => irq_ns: u64;
    /// When descriptors are free again: after each packet, or at the end of the poll
    "nic.refill" = "packet": Word(&["packet", "poll"]);

    /// CPU time per poll
    "softirq.poll_ns" = "0": Time, COST => poll_ns: u64;
    /// CPU time per packet in the poll, protocol included
    "softirq.packet_ns" = "0": Time, COST => packet_ns: u64;
    /// Whether a poll also takes packets that arrive during the poll
    "softirq.poll" = "exhaustive": Word(&["exhaustive", "gated"]);
    /// NAPI weight
    "softirq.weight" = "64": PACKETS, (1, 65_536) => weight: u64;
    /// net.core.netdev_budget
    "softirq.budget" = "300": PACKETS, (1, 1 << 30) => budget: u64;
    /// net.core.netdev_budget_usecs [two jiffies]
    "softirq.budget_usecs": Count("us"), (0, 10_000_000);
    /// CONFIG_HZ
    "softirq.hz" = "250": Count("ticks/s"), (24, 10_000);
    /// CPU time of a tick
    "softirq.tick_ns" = "0": Time, COST => tick_ns: u64;
    /// MAX_SOFTIRQ_RESTART: passes before ksoftirqd
    "softirq.restarts" = "10": Count("passes"), (1, 1 << 20) => restarts: u64;
    /// While ksoftirqd is awake, interrupts still run softirqs (`alongside`, since 6.5) or not (`instead`, 4.9 to 6.4)
    "softirq.ksoftirqd" = "alongside": Word(&["alongside", "instead"]);
    /// NAPI threads instead of softirqs, on the queues' CPUs
    "softirq.threaded" = "false": Flag => threaded: bool;

    /// CPUs that RPS steers to; none = no RPS
    "rps.cpus" = "[]": Cpus, CPU => rps_cpus: Vec<u32>;
    /// net.core.netdev_max_backlog
    "rps.backlog" = "1000": PACKETS, (1, 1 << 24) => backlog: u64;
    /// CPU time of the inter-processor interrupt
    "rps.ipi_ns" = "0": Time, COST => ipi_ns: u64;
    /// `rps.ipi_ns` varies uniformly by up to this part, up or down
    "rps.ipi_spread" = "0.0": Ratio, (0, 1000) => ipi_spread: f64;
    /// CPU time per poll of a backlog
    "rps.poll_ns" = "0": Time, COST => backlog_poll_ns: u64;
    /// CPU time per packet from the backlog onwards
    "rps.packet_ns" = "0": Time, COST => backlog_packet_ns: u64;

    /// Sockets of the REUSEPORT group; a flow's socket is (hash * count) >> 32
    "socket.count" = "1": Count("sockets"), (1, 256) => sockets: usize;
    /// sk_rcvbuf of each socket
    "socket.rcvbuf" = "212992": Bytes, (1, 1 << 40) => rcvbuf: u64;
    /// Kernel memory of a queued packet [estimated from the size]
    "socket.truesize": Bytes, (1, 1 << 30) => truesize: Option<u64>;
    /// Admission rule: of Linux 6.18 (`new`), or the older one (`old`: one packet more)
    "socket.admission" = "new": Word(&["new", "old"]);
    /// When memory is freed: in quarters as the kernel does, when read, or when the reader has finished with the packet
    "socket.release" = "lazy": Word(&["lazy", "read", "done"]);

    /// Reading threads; thread i reads socket i mod count
    "reader.threads" = "1": Count("threads"), (1, 256) => readers: usize;
    /// CPU of each thread, in thread order
    "reader.cpus" = "[1]": Cpus, CPU => reader_cpus: Vec<u32>;
    /// CPU time per packet: copy and application work
    "reader.packet_ns": Time, COST => reader_packet_ns: u64;
    /// Distribution of `reader.packet_ns`
    "reader.service" = "fixed": Word(&["fixed", "exponential"]);
    /// CPU time per call
    "reader.call_ns" = "0": Time, COST => call_ns: u64;
    /// Packets per call, at most (recvmmsg)
    "reader.batch" = "1": PACKETS, (1, 65_536) => batch: u64;
    /// Time from the packet until the woken thread is runnable
    "reader.wakeup_ns" = "0": Time, COST => wakeup_ns: u64;
    /// CPU time to go to sleep and wake up
    "reader.sleep_ns" = "0": Time, COST => sleep_ns: u64;
    /// Share of the CPU that the reader gets; it slows the reader down
    "reader.share" = "1.0": Ratio, (1, 1000) => share: f64;
    /// How long the reader stops at the start of each period
    "reader.stall" = "0": Time, (0, 10_000 * S) => stall: u64;
    /// Time from the start of one stop to the next
    "reader.period": Time, (1, 10_000 * S);
    /// Nice value of the reader
    "reader.nice" = "0": Nice, (0, 39) => nice: i64;
    /// Real-time priority: runs before all fair threads
    "reader.realtime" = "false": Flag => realtime: bool;

    /// Always-runnable threads on each of `background.cpus`
    "background.threads" = "0": Count("threads"), (0, 1000) => background: usize;
    /// CPUs of the background threads; none = the readers' CPUs
    "background.cpus" = "[]": Cpus, CPU => background_cpus: Vec<u32>;
    /// Nice value of the background threads
    "background.nice" = "0": Nice, (0, 39) => background_nice: i64;

    /// Simplified EEVDF, or the O(1) scheduler of Linux 2.6.8 to 2.6.22
    "scheduler.kind" = "eevdf": Word(&["eevdf", "o1"]) => scheduler: SchedulerKind;
    /// EEVDF time slice: the base slice, at least one tick
    "scheduler.slice" = "4ms": Time, (1000, 10 * S) => slice: u64;
    /// `o1`: threads that sleep a lot are not expired
    "scheduler.interactive" = "true": Flag => interactive: bool;
}

#[cfg(test)]
mod tests;
