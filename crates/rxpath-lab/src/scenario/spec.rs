//! The resolved form of a scenario: what the runner is handed, with nothing left to interpret.
//!
//! A scenario file is a base and overlays. Resolving merges them per variant, replaces CPU roles by CPU
//! numbers of this host and marks the variants that this host cannot run.

use std::collections::BTreeMap;

use rxpath_core::{CpuList, Nanos, Warning};
use serde::Serialize;

pub use super::protocol::Protocol;

/// A scenario ready to run on this host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resolved {
    /// Name: the file's, without its directory and ending.
    pub name: String,
    /// The question it answers, one sentence.
    pub question: String,
    /// What is expected and why, one or two sentences.
    pub expected: Option<String>,
    /// The variants in the file's order; sweeps are expanded.
    pub variants: Vec<Variant>,
    /// Differences to be judged at the end.
    pub compare: Vec<Compare>,
    /// How trials are made and when to stop.
    pub trials: Trials,
    /// What the host's shape changed: fewer CPUs than wished, roles that share a CPU.
    pub warnings: Vec<Warning>,
}

/// One variant, complete in itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variant {
    /// Name, unique in the scenario.
    pub name: String,
    /// What it changes, one line.
    pub what: String,
    /// Dotted keys in which it differs from the base, with its values.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Why this host cannot run it.
    pub not_available: Option<String>,
    /// The lab around the workloads.
    pub lab: Lab,
    /// What runs beside them.
    pub background: Background,
    /// Time from sample to sample of the queues; zero = no samples.
    pub sample_interval: Nanos,
    /// The load starts at a whole multiple of this of `CLOCK_MONOTONIC`; zero = anywhere.
    pub start_multiple: Nanos,
    /// What else is watched.
    pub observe: Observe,
    /// The receiving side.
    pub serve: Workload,
    /// The sending side.
    pub load: Workload,
}

impl Variant {
    /// What the two sides speak.
    pub fn protocol(&self) -> Protocol {
        self.load.protocol()
    }

    /// The metric that it is about: what its victim got, or that of its protocol.
    pub fn main_metric(&self) -> &'static str {
        if self.background.victim.is_some() {
            "victim_got_ratio"
        } else {
            self.protocol().main_metric()
        }
    }
}

/// What is watched by BPF while a trial runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Observe {
    /// Why the kernel drops packets.
    pub drops: bool,
    /// CPU time that networking takes, by task and CPU.
    pub steal: bool,
    /// Softirqs, polls and the latency of stages.
    pub trace: bool,
}

impl Observe {
    /// Those that look, by their keys.
    pub fn names(&self) -> Vec<&'static str> {
        let all = [("drops", self.drops), ("steal", self.steal), ("trace", self.trace)];
        all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()
    }
}

/// Where the two sides live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Two network namespaces of one machine, joined by a veth pair. Needs root.
    #[default]
    Netns,
    /// Loopback of the namespace the program runs in. Needs no root; other traffic is counted with it.
    Local,
}

/// Everything around the workloads that a variant can set. Device names are `veth` on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lab {
    /// Where the two sides live.
    pub topology: Topology,
    /// Queues of each end of the veth pair.
    pub queues: u32,
    /// MTU of both ends, bytes.
    pub mtu_bytes: u32,
    /// IPv6 instead of IPv4 between the two ends.
    pub ipv6: bool,
    /// Receiver addresses (1 = only the first).
    pub addresses: u32,
    /// RPS mask of every receive queue of the receiver's end; empty = off.
    pub rps_cpus: CpuList,
    /// `rx-gro` of the receiver's end (with the right sender it switches NAPI on).
    pub gro: bool,
    /// `rx-udp-gro-forwarding` of the receiver's end.
    pub udp_gro_forwarding: bool,
    /// `tx-tcp-segmentation` of the sender's end.
    pub tso: bool,
    /// `tx-tcp-segmentation` of the receiver's end, for what it answers.
    pub tso_rx: bool,
    /// `napi_defer_hard_irqs` of the receiver's end, when it is set.
    pub napi_defer_hard_irqs: Option<u32>,
    /// `gro_flush_timeout` of the receiver's end, when it is set.
    pub gro_flush_timeout: Option<Nanos>,
    /// `tx-udp-segmentation` of the sender's end: off = GSO batches are cut before the link.
    pub udp_segmentation: bool,
    /// A device over the receiver's end, which has its addresses in its place.
    pub upper: Option<Upper>,
    /// NAPI of the receiver's end in a kernel thread.
    pub threaded: bool,
    /// CPU that the NAPI threads are pinned to.
    pub napi_cpu: Option<u32>,
    /// Scheduler policy of the NAPI threads is `SCHED_IDLE` (to starve a ring on purpose).
    pub napi_idle: bool,
    /// Idle CPUs of the machine do not sleep during a trial.
    pub awake: bool,
    /// sysctls of the receiver's namespace.
    pub sysctl_rx: BTreeMap<String, String>,
    /// sysctls of the sender's namespace.
    pub sysctl_tx: BTreeMap<String, String>,
    /// nftables ruleset loaded in the receiver's namespace, in nft's language.
    pub nft_rx: Option<String>,
    /// The same for the sender's namespace.
    pub nft_tx: Option<String>,
    /// iptables command lines (without the word `iptables`) run in the receiver's namespace.
    pub iptables_rx: Vec<String>,
    /// Entries that the receiver's connection table has room for, when it is filled with others first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conntrack_room: Option<u64>,
    /// Queueing discipline of the sender's end.
    pub qdisc_tx: Option<Qdisc>,
}

/// A device over another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Upper {
    /// A bridge with the receiver's end as its only port.
    Bridge,
    /// A macvlan in bridge mode.
    Macvlan,
}

/// Load beside the workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Background {
    /// Busy loops, or copies of `command` when there is one.
    pub hogs: u32,
    /// What runs instead of a busy loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// CPUs that they take turns on; empty = wherever the scheduler puts them.
    pub cpus: CpuList,
    /// Their nice value.
    pub nice: i32,
    /// Their scheduler class.
    pub policy: Policy,
    /// CPU of a victim: known work that runs over the window and knows what was taken from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim: Option<u32>,
}

/// A scheduler class without privileges over others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
}

/// A queueing discipline of the sender's end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Qdisc {
    /// Token bucket.
    Tbf {
        /// Rate in bits per second.
        rate_bps: u64,
        /// Bucket in bytes.
        burst_bytes: u32,
        /// Queue in bytes.
        limit_bytes: u32,
    },
    /// First in, first out.
    Pfifo {
        /// Queue in packets.
        limit_packets: u32,
    },
    /// Fair queueing with default values.
    Fq,
}

/// One side's program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// `rxpath serve` or `rxpath load`; addresses are added by the runner.
    Own(Own),
    /// Any other program.
    External(External),
}

/// A workload of this program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Own {
    /// What it speaks.
    pub protocol: Protocol,
    /// Command-line options in their final form, `--cpu 1 --batch 64`; without ADDR, `--control`, `--interval`.
    pub options: Vec<String>,
    /// CPUs of its threads, when pinned.
    pub cpus: CpuList,
    /// Port.
    pub port: u16,
    /// Nothing listens (the server is not started).
    pub absent: bool,
    /// The form of its datagrams, with UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// The sender's rate as a share of what the receiver takes without loss; the run measures that first and then
    /// puts `--rate` into the options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_ratio: Option<f64>,
}

/// The form of a UDP workload's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// Payload bytes of a datagram (load) or expected (serve: same value).
    pub size_bytes: u32,
    /// Datagrams per send (load with GSO), else 1.
    pub segments: u32,
    /// Whether the receiver reads GRO aggregates.
    pub gro: bool,
}

/// A program of somebody else's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct External {
    /// What it speaks.
    pub protocol: Protocol,
    /// The command, word by word; `{addr}`, `{port}`, `{duration_s}`, `{dir}` are replaced.
    pub command: Vec<String>,
    /// Files that are written into a directory of the trial (`{dir}`) before it starts, name to text; the same words
    /// are replaced in them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// CPUs it is bound to.
    pub cpus: CpuList,
    /// How its output becomes numbers.
    pub parser: Parser,
    /// Line on its output that says that it is ready; `None` = ready when its port is bound.
    pub ready: Option<String>,
    /// Port that it uses.
    pub port: u16,
}

impl Workload {
    /// What it speaks.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Own(own) => own.protocol,
            Self::External(external) => external.protocol,
        }
    }

    /// CPUs that it is bound to; empty = not bound.
    pub fn cpus(&self) -> &CpuList {
        match self {
            Self::Own(own) => &own.cpus,
            Self::External(external) => &external.cpus,
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Own(own) => own.port,
            Self::External(external) => external.port,
        }
    }

    /// Our own program, when it is one.
    pub fn own(&self) -> Option<&Own> {
        match self {
            Self::Own(own) => Some(own),
            Self::External(_) => None,
        }
    }

    /// The form of our own program's datagrams.
    pub fn datagrams(&self) -> Option<&Datagrams> {
        self.own().and_then(|own| own.datagrams.as_ref())
    }

    /// Whether it is a program of somebody else's.
    pub fn is_external(&self) -> bool {
        matches!(self, Self::External(_))
    }
}

/// How the output of an external program becomes numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Parser {
    /// `iperf3 -J`.
    Iperf3,
    /// wrk's summary.
    Wrk,
    /// JSON with one pointer per metric.
    Json {
        /// Metric name to RFC 6901 pointer.
        pointers: BTreeMap<String, String>,
    },
    /// A regular expression with named groups; each group is a metric.
    Regex {
        /// The pattern.
        pattern: String,
    },
    /// Output is kept and not read.
    None,
}

/// A difference to be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compare {
    /// Metric name.
    pub metric: String,
    /// Base of the ratio.
    pub base: String,
    /// The variant held against it.
    pub variant: String,
    /// `up`, `down` or `same`.
    pub expected: Option<String>,
}

/// How trials are made and when to stop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trials {
    /// Blocks at least (the A/A block is one more).
    pub blocks: u32,
    /// Blocks at most, when the stop rule is not met.
    pub max_blocks: u32,
    /// Load before the settle test.
    pub ramp: Nanos,
    /// Longest wait for a settled rate.
    pub settle: Nanos,
    /// Measured window.
    pub measure: Nanos,
    /// Half-width of the interval of each difference that blocks are added for, as a share of the ratio; `None`: for the
    /// verdict alone.
    pub precision_ratio: Option<f64>,
    /// Differences inside `1 +- this` are "same".
    pub threshold_ratio: f64,
    /// Whole run's limit; when it is up, the run ends after the trial in progress.
    pub time_limit: Nanos,
    /// Run block 0 with the same variant twice.
    pub aa: bool,
    /// Seed of the order and the bootstrap.
    pub seed: u64,
}
