//! The sections of a scenario file as structs. A key is one line here: field, default, form, protocols, meaning.
//!
//! Keys of `[serve]` and `[load]` are the long options of `rxpath serve` and `rxpath load` of the scenario's
//! protocol with `_` for `-`, except those marked as not an option.

use std::collections::BTreeMap;

use rxpath_core::{CpuList, Nanos, SchedClass};
use rxpath_host::lab::upper::UpperKind;
use rxpath_load::http::serve::options::Trigger;
use rxpath_load::pace::Pacing;
use rxpath_load::tcp::serve::options::ReceiveMethod;
use rxpath_load::udp::load::options::Engine as SendEngine;
use rxpath_load::udp::serve::options::{ServeEngine, Sockets, Steer};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::forms::{Parser, Qdisc, Topology, WorkloadEngine};
use super::key::Kind::{
    Bool, Choice, Command, Cpus, Int, Lines, Names, OneCpu, Ratio, Signed, Text,
};
use super::key::{Key, Kind};
use super::on_hosts::OnHosts;
use super::protocol::Protocol;

const S: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;
/// Largest value of a C int: what `SO_RCVBUF` and its like take.
const INT_MAX: u64 = i32::MAX as u64;
/// `UDP_MAX_SEGMENTS` (include/linux/udp.h) is 128 since Linux 6.9 and was 64 before.
const MAX_SEGMENTS: u64 = 128;
/// `UIO_MAXIOV` (include/uapi/linux/uio.h): most messages that one sendmmsg or recvmmsg takes.
const MAX_BATCH: u64 = 1024;

const ALL: &[Protocol] = &[];
const UDP: &[Protocol] = &[Protocol::Udp];
const HTTP: &[Protocol] = &[Protocol::Http];
const STREAM: &[Protocol] = &[Protocol::TcpStream];
const TCP: &[Protocol] = &[Protocol::TcpStream, Protocol::TcpRr, Protocol::TcpCrr];
const UDP_TCP: &[Protocol] =
    &[Protocol::Udp, Protocol::TcpStream, Protocol::TcpRr, Protocol::TcpCrr];
const REQUESTS: &[Protocol] = &[Protocol::TcpRr, Protocol::TcpCrr];
const CRR: &[Protocol] = &[Protocol::TcpCrr];
const OVER_TCP: &[Protocol] =
    &[Protocol::TcpStream, Protocol::TcpRr, Protocol::TcpCrr, Protocol::Http];
const UDP_HTTP: &[Protocol] = &[Protocol::Udp, Protocol::Http];
/// All but streams, whose rate is in bits.
const COUNTED: &[Protocol] = &[Protocol::Udp, Protocol::TcpRr, Protocol::TcpCrr, Protocol::Http];

/// A struct whose fields are keys of one section.
pub(super) trait Section: DeserializeOwned {
    /// Its keys, in the order of the fields.
    const KEYS: &'static [Key];
}

macro_rules! or_default {
    () => {
        Default::default()
    };
    ($value:expr) => {
        $value
    };
}

/// Fields are `name: type [= default], kind, protocols, meaning;`.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $name:ident in $section:literal {
            $($(#[$own:meta])* $key:ident: $type:ty $(= $default:expr)?, $kind:expr, $protocols:expr, $doc:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(#[doc = $doc] $(#[$own])* pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: or_default!($($default)?),)* }
            }
        }

        impl Section for $name {
            const KEYS: &'static [Key] = &[
                $(Key::new(concat!($section, ".", stringify!($key)), $kind, $protocols, $doc),)*
            ];
        }
    };
}

/// A duration in the largest unit that loses nothing.
#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn with_unit<S: Serializer>(time: &Option<Nanos>, to: S) -> Result<S::Ok, S::Error> {
    let Some(Nanos(ns)) = *time else { return to.serialize_none() };
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    match units.into_iter().find(|(size, _)| ns > 0 && ns.is_multiple_of(*size)) {
        Some((size, unit)) => to.collect_str(&format_args!("{}{unit}", ns / size)),
        None => to.collect_str(&format_args!("{ns}ns")),
    }
}

/// The one duration that the command line takes as a bare number, of microseconds.
#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn in_us<S: Serializer>(time: &Option<Nanos>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.0 / 1000).serialize(to)
}

section! {
    /// Where the two sides live.
    Place in "topology" {
        kind: Topology, Choice(&["netns", "local"]), ALL, "two network namespaces (needs root) or loopback";
    }
}

section! {
    /// Everything around the workloads that a variant can set. Device names are `veth` on both sides.
    Lab in "lab" {
        queues: u32 = 1, Int(1, 64), ALL, "queues of each end of the veth pair";
        mtu_bytes: u32 = 1500, Kind::Bytes(1280, 65_535), ALL, "MTU of both ends";
        ipv6: bool, Bool, ALL, "IPv6 instead of IPv4";
        addresses: u32 = 1, Int(1, 200), ALL, "addresses of the receiver that the sender spreads over";
        rps_cpus: CpuList, Cpus, ALL, "RPS mask of the receiver's end; empty = off";
        gro: bool, Bool, ALL, "GRO of the receiver's end; with tso = false it switches NAPI on";
        udp_gro_forwarding: bool, Bool, ALL, "rx-udp-gro-forwarding of the receiver's end";
        tso: bool = true, Bool, ALL, "tx-tcp-segmentation of the sender's end";
        tso_rx: bool = true, Bool, ALL, "tx-tcp-segmentation of the receiver's end, for what it answers";
        napi_defer_hard_irqs: Option<u32>, Int(0, 1_000_000), ALL, "empty polls after which NAPI of the receiver's end gives up";
        gro_flush_timeout: Option<Nanos>, Kind::Nanos(0, S), ALL, "time to the next poll meanwhile";
        udp_segmentation: bool = true, Bool, ALL, "tx-udp-segmentation of the sender's end; off = GSO batches are cut before the link";
        threaded: bool, Bool, ALL, "NAPI of the receiver's end in a kernel thread";
        napi_cpu: Option<u32>, OneCpu, ALL, "CPU that the NAPI threads are pinned to";
        napi_idle: bool, Bool, ALL, "NAPI threads run as SCHED_IDLE (starves the ring on purpose)";
        awake: bool, Bool, ALL, "keep idle CPUs from sleeping during a trial: in a virtual machine a sleeping one resumes late";
        upper: Option<UpperKind>, Choice(&["bridge", "macvlan", "ipvlan"]), ALL, "a device over the receiver's end, which has its addresses";
        flow_rule: bool, Bool, ALL, "a flow rule of the receiving device that steers the workload to one queue; needs n-tuple filters";
        turbo: Option<bool>, Bool, ALL, "what the host's turbo must be; a run never switches it";
        smt: Option<bool>, Bool, ALL, "what the host's SMT must be; a run never switches it";
        sysctl_rx: BTreeMap<String, String>, Names, ALL, "sysctls of the receiver's namespace";
        sysctl_tx: BTreeMap<String, String>, Names, ALL, "sysctls of the sender's namespace";
        nft_rx: Option<String>, Text, ALL, "nftables ruleset of the receiver's namespace";
        nft_tx: Option<String>, Text, ALL, "nftables ruleset of the sender's namespace";
        conntrack_room: Option<u64>, Int(0, 65_535), ALL, "fills the receiver's connection table with other connections until room for so many is left";
        iptables_rx: Vec<String>, Lines, ALL, "iptables command lines (without the word) of the receiver's namespace";
        qdisc_tx: Option<Qdisc>, Kind::Qdisc, ALL, "queueing discipline of the sender's end";
    }
}

section! {
    /// Load that runs alongside the workload.
    Background in "background" {
        victim: Option<u32>, OneCpu, ALL, "known work on this CPU over the window, which knows what was taken from it; switches observe.steal on";
        victim_command: Vec<String>, Command, ALL, "a command instead of the known work, from the window's begin to its end; {seconds} in it is the window's length, rounded up";
        on: OnHosts, Kind::OnHosts, ALL, "the hosts that it runs on, between hosts; default: receivers; a victim is always the receiver's";
        hogs: u32, Int(0, 1024), ALL, "busy loops next to the workload, or copies of background.command";
        command: Vec<String>, Command, ALL, "a command instead of the busy loop";
        cpus: CpuList, Cpus, ALL, "CPUs that they take turns on; empty = anywhere";
        nice: i32, Signed(-20, 19), ALL, "their nice value";
        sched: SchedClass, Kind::SchedClass, ALL, "their scheduler class";
    }
}

section! {
    /// What is observed during a trial in addition to the counters.
    Observe in "observe" {
        sample_interval: Nanos = Nanos::from_millis(1), Kind::Nanos(0, S), ALL, "time from sample to sample of the sockets' queues; 0 = none";
        drops: bool, Bool, ALL, "why the kernel drops packets (BPF), in addition to the ledger";
        steal: bool, Bool, ALL, "CPU time that networking takes, by task and CPU (BPF)";
        irq_entry: Option<Nanos>, Kind::Nanos(0, S / 1000), ALL, "for observe.steal: the cost of an interrupt outside all tracepoints; not set, it is calibrated before the first trial, in six seconds";
        trace: bool, Bool, ALL, "softirqs, packets per poll and the latency of stages over the window (BPF)";
    }
}

section! {
    /// How trials are made and when to stop.
    Trials in "trials" {
        blocks: u32 = 5, Int(1, 1000), ALL, "blocks at least, the A/A block not counted";
        max_blocks: u32 = 20, Int(1, 1000), ALL, "blocks at most";
        ramp: Nanos = Nanos::from_secs(1), Kind::Nanos(0, 60 * S), ALL, "load before the settle test";
        settle: Nanos = Nanos::from_secs(10), Kind::Nanos(0, 600 * S), ALL, "longest wait for a settled rate";
        measure: Nanos = Nanos::from_secs(3), Kind::Nanos(S / 10, 3600 * S), ALL, "measured window";
        precision_ratio: Option<f64>, Ratio(0.000_1, 1.0), ALL, "half-width of each interval that blocks are added for; not set, blocks are added for the verdict alone";
        threshold_ratio: f64 = 0.03, Ratio(0.0, 1.0), ALL, "differences inside it are `same`";
        time_limit: Nanos = Nanos::from_secs(15 * 60), Kind::Nanos(S, 24 * 3600 * S), ALL, "limit of the whole run";
        aa: bool = true, Bool, ALL, "run block 0 with one variant twice";
        paired: bool = true, Bool, ALL, "after the blocks, add pairs of trials with and without the receive softirq on another CPU, if the verdict depends on them";
        seed: u64 = 1, Int(0, i64::MAX as u64), ALL, "seed of the order and the bootstrap";
    }
}

section! {
    /// Options of `rxpath serve`, in the order in which they are put on a command line.
    ServeOptions in "serve" {
        cpu: CpuList, Cpus, ALL, "one thread per CPU of the list";
        threads: Option<u64>, Int(1, 256), ALL, "threads";
        batch: Option<u64>, Int(1, MAX_BATCH), UDP, "datagrams per recvmmsg; 1 = one call per datagram";
        sockets: Option<Sockets>, Choice(&["shared", "reuseport"]), ALL, "one socket for all threads, or one each";
        steer: Option<Steer>, Choice(&["hash", "cpu"]), UDP, "how SO_REUSEPORT chooses a socket";
        gro: bool, Bool, UDP, "read aggregates (UDP_GRO)";
        #[serde(serialize_with = "in_us")] busy_poll: Option<Nanos>, Kind::Nanos(1_000, S), ALL, "busy polling time (SO_BUSY_POLL)";
        prefer_busy_poll: bool, Bool, ALL, "keep interrupts off while polling (SO_PREFER_BUSY_POLL)";
        busy_poll_budget: Option<u64>, Int(1, 65_535), ALL, "packets per poll (SO_BUSY_POLL_BUDGET)";
        nice: Option<i32>, Signed(-20, 19), ALL, "nice value of the threads";
        sched: Option<SchedClass>, Kind::SchedClass, ALL, "scheduler class of the threads";
        rcvbuf: Option<u64>, Kind::Bytes(1, INT_MAX), ALL, "receive buffer to get (sk_rcvbuf, what SO_RCVBUF doubles)";
        #[serde(serialize_with = "with_unit")] work: Option<Nanos>, Kind::Nanos(0, S), ALL, "simulated work per datagram, read, transaction or request";
        #[serde(serialize_with = "with_unit")] sleep: Option<Nanos>, Kind::Nanos(0, 60 * S), UDP_TCP, "length of a stall";
        #[serde(serialize_with = "with_unit")] every: Option<Nanos>, Kind::Nanos(1_000, 600 * S), UDP_TCP, "time from stall to stall";
        #[serde(serialize_with = "with_unit")] nap: Option<Nanos>, Kind::Nanos(1_000, S), UDP, "sleep after emptying the socket instead of being woken by each datagram";
        stamps: bool, Bool, UDP, "kernel receive stamps: time in the socket's queue";
        sndbuf: Option<u64>, Kind::Bytes(1, INT_MAX), OVER_TCP, "send buffer of each connection";
        buffer: Option<u64>, Kind::Bytes(1, 1 << 30), TCP, "bytes per read and write";
        low_water: Option<u64>, Kind::Bytes(1, 64 * MIB), STREAM, "payload that must wait before the reader is woken";
        receive: Option<ReceiveMethod>, Choice(&["read", "trunc", "zerocopy"]), TCP, "how data is taken";
        congestion: Option<String>, Text, TCP, "congestion control of the connections";
        engine: Option<WorkloadEngine<ServeEngine>>, Kind::Engine(ServeEngine::words), UDP_HTTP, "how data gets to the program: epoll (default) or uring with HTTP; with UDP a socket, AF_XDP past the stack, or an XDP program that counts and drops";
        events: Option<u64>, Int(1, 65_536), HTTP, "events taken per wait";
        trigger: Option<Trigger>, Choice(&["edge", "level"]), HTTP, "when epoll reports a socket";
        epoll_timeout: Option<u64>, Int(0, 60_000), HTTP, "longest wait in ms; 0 = never block";
        body: Option<u64>, Kind::Bytes(0, 1 << 30), HTTP, "bytes of the reply's body";
        backlog: Option<u64>, Int(1, 65_535), HTTP, "accept queue of the listener";
        max_connections: Option<u64>, Int(1, 10_000_000), HTTP, "connections at once";
    }
}

section! {
    /// Options of `rxpath load`, in the order in which they are put on a command line.
    LoadOptions in "load" {
        cpu: CpuList, Cpus, ALL, "one thread per CPU of the list";
        threads: Option<u64>, Int(1, 256), ALL, "threads";
        size: Option<u32>, Kind::Bytes(0, 65_507), UDP, "payload bytes of a datagram";
        rate: Option<u64>, Kind::Rate(1, 1_000_000_000), COUNTED, "datagrams, transactions or requests per second, all threads; default = as fast as possible";
        bitrate: Option<u64>, Kind::BitRate(1, 1_000_000_000_000), STREAM, "bits per second, all connections; default = as fast as possible";
        pacing: Option<Pacing>, Choice(&["auto", "spin", "sleep"]), UDP_HTTP, "how the schedule of load.rate is waited for";
        nice: Option<i32>, Signed(-20, 19), ALL, "nice value of the threads";
        sched: Option<SchedClass>, Kind::SchedClass, ALL, "scheduler class of the threads";
        batch: Option<u64>, Int(1, MAX_BATCH), UDP, "messages per sendmmsg; 1 = one call per datagram";
        gso: Option<u32>, Int(1, MAX_SEGMENTS), UDP, "datagrams per GSO send (UDP_SEGMENT)";
        flows: Option<u16>, Int(1, 65_535), UDP, "source ports";
        source_port: Option<u16>, Int(1, 65_535), UDP, "first source port";
        unconnected: bool, Bool, UDP, "sockets without a connected peer, so that hashes follow addresses";
        corrupt: Option<String>, Choice(&["checksum"]), UDP, "send damaged datagrams";
        sndbuf: Option<u64>, Kind::Bytes(1, INT_MAX), UDP_TCP, "send buffer to get (with UDP instead of the large one that keeps the loop open)";
        rcvbuf: Option<u64>, Kind::Bytes(1, INT_MAX), TCP, "receive buffer of each connection";
        count: Option<u64>, Kind::Count(1, u64::MAX), UDP, "datagrams in all, then stop";
        connections: Option<u64>, Int(1, 1_000_000), OVER_TCP, "connections, all threads";
        buffer: Option<u64>, Kind::Bytes(1, 1 << 30), TCP, "bytes per read and write";
        congestion: Option<String>, Text, TCP, "congestion control of the connections";
        mss: Option<u64>, Int(88, 65_495), TCP, "largest segment (TCP_MAXSEG)";
        verify: bool, Bool, TCP, "check every byte";
        direction: Option<String>, Choice(&["send", "receive", "both"]), STREAM, "which way data goes";
        send: Option<String>, Choice(&["copy", "zerocopy"]), STREAM, "how data is given to the kernel";
        receive: Option<ReceiveMethod>, Choice(&["read", "trunc", "zerocopy"]), STREAM, "how data is taken";
        pacing_rate: Option<u64>, Kind::BitRate(1, 1_000_000_000_000), STREAM, "bits per second of each connection (SO_MAX_PACING_RATE)";
        nodelay: bool, Bool, STREAM, "send small segments at once (TCP_NODELAY)";
        notsent_lowat: Option<u64>, Kind::Bytes(1, INT_MAX), STREAM, "unsent bytes above which the socket takes no more";
        request: Option<u64>, Kind::Bytes(1, 1 << 30), REQUESTS, "bytes of a request";
        response: Option<u64>, Kind::Bytes(0, 1 << 30), REQUESTS, "bytes of a reply";
        close: Option<String>, Choice(&["server", "client", "reset"]), CRR, "who closes the connection";
        pipeline: Option<u64>, Int(1, 1024), HTTP, "requests in flight per connection";
        requests: Option<u64>, Kind::Count(1, u64::MAX), HTTP, "requests in all, then stop";
        method: Option<String>, Text, HTTP, "method of the request";
        header: Vec<String>, Lines, HTTP, "further header lines";
        body: Option<String>, Text, HTTP, "body of the request";
        #[serde(serialize_with = "with_unit")] timeout: Option<Nanos>, Kind::Nanos(1_000_000, 600 * S), HTTP, "longest wait for a reply";
        no_keepalive: bool, Bool, HTTP, "a new connection for each request";
        engine: Option<WorkloadEngine<SendEngine>>, Kind::Engine(SendEngine::words), UDP_HTTP, "how data gets to the kernel: epoll (default) or uring with HTTP; with UDP a socket, AF_XDP, or an XDP program that the kernel runs for each frame";
    }
}

/// The options of one side of this program.
pub trait Options: Serialize {
    /// `serve` or `load`.
    const SIDE: &'static str;

    /// CPUs of its threads, when pinned.
    fn cpus(&self) -> &CpuList;

    /// Whether nothing limits the rate or the number of datagrams.
    fn is_unbounded(&self) -> bool {
        false
    }

    /// The options that are set, by their names in a scenario file.
    fn set(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut all)) = serde_json::to_value(self) else { return Map::new() };
        let unset = [Value::Null, false.into(), "".into(), Value::Array(Vec::new())];
        all.retain(|_, value| !unset.contains(value));
        all
    }
}

impl Options for ServeOptions {
    const SIDE: &'static str = "serve";

    fn cpus(&self) -> &CpuList {
        &self.cpu
    }
}

impl Options for LoadOptions {
    const SIDE: &'static str = "load";

    fn cpus(&self) -> &CpuList {
        &self.cpu
    }

    fn is_unbounded(&self) -> bool {
        self.rate.is_none() && self.count.is_none()
    }
}

impl ServeOptions {
    /// Whether an XDP program takes the datagrams from the device, before the stack.
    pub fn bypasses_stack(&self) -> bool {
        matches!(self.engine, Some(WorkloadEngine::Udp(ServeEngine::Xdp | ServeEngine::XdpDrop)))
    }
}

impl LoadOptions {
    /// Whether it hands whole frames to the device.
    pub fn bypasses_stack(&self) -> bool {
        matches!(self.engine, Some(WorkloadEngine::Udp(engine)) if engine.sends_frames())
    }
}

/// What a workload is besides its options: keys of `[serve]` and `[load]` that are no command-line options.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Program {
    pub protocol: Option<Protocol>,
    pub absent: bool,
    pub command: Vec<String>,
    pub parser: Parser,
    pub files: BTreeMap<String, String>,
    pub ready: Option<String>,
    pub port: Option<u16>,
    pub capacity_ratio: Option<f64>,
    pub capacity_slo: Option<String>,
    pub start_multiple: Nanos,
}

/// Keys of the receiver's [`Program`].
#[rustfmt::skip]
pub(super) const SERVE_KEYS: &[Key] = &[
    Key::new("serve.protocol", Choice(Protocol::WORDS), ALL, "what both sides speak (not an option)"),
    Key::new("serve.absent", Bool, ALL, "nothing listens (not an option)"),
    Key::new("serve.command", Command, ALL, "another program as receiver (not an option)"),
    Key::new("serve.parser", Kind::Parser, ALL, "how that program's output becomes numbers (not an option)"),
    Key::new("serve.files", Names, ALL, "files for that program: name to text, written into {dir} (not an option)"),
    Key::new("serve.ready", Text, ALL, "its line that says that it is ready; default: its port is bound (not an option)"),
    Key::new("serve.port", Int(1, 65_535), ALL, "port (not an option)"),
];

/// Keys of the sender's [`Program`].
#[rustfmt::skip]
pub(super) const LOAD_KEYS: &[Key] = &[
    Key::new("load.protocol", Choice(Protocol::WORDS), ALL, "alias of serve.protocol; set either one (not an option)"),
    Key::new("load.command", Command, ALL, "another program as sender (not an option)"),
    Key::new("load.parser", Kind::Parser, ALL, "how that program's output becomes numbers (not an option)"),
    Key::new("load.files", Names, ALL, "files for that program: name to text, written into {dir} (not an option)"),
    Key::new("load.ready", Text, ALL, "its line that says that it is ready (not an option)"),
    Key::new("load.port", Int(1, 65_535), ALL, "port (not an option)"),
    Key::new("load.capacity_ratio", Ratio(0.01, 100.0), COUNTED, "the same as a share of the highest rate that holds here, searched before the first block (not an option)"),
    Key::new("load.capacity_slo", Text, COUNTED, "what must hold at that rate, such as \"loss=0.1%\" or \"p99<2ms, loss=0\"; default: loss=0.1% (not an option)"),
    Key::new("load.start_multiple", Kind::Nanos(0, S), ALL, "the load starts at a whole multiple of this of CLOCK_MONOTONIC, where ticks are since Linux 6.4; 0 = anywhere (not an option)"),
];
