//! Every key that a scenario can set, with its type and range. A new setting is one line here and,
//! for a lab setting, one line in `typed`.
//!
//! Keys of `[serve]` and `[load]` are the long options of `rxpath serve` and `rxpath load` of the scenario's
//! protocol with `_` for `-`, except those marked as not an option.

use super::protocol::Protocol;

/// One key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Dotted name: `serve.batch`.
    pub name: &'static str,
    pub kind: Kind,
    /// The protocols that have it; none named = all.
    pub protocols: &'static [Protocol],
    /// One line for the reference.
    pub doc: &'static str,
}

impl Key {
    /// Whether a workload of this protocol has it.
    pub fn fits(&self, protocol: Protocol) -> bool {
        self.protocols.is_empty() || self.protocols.contains(&protocol)
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bool,
    Int(u64, u64),
    /// A whole number that may be negative.
    Signed(i64, i64),
    /// A number with k, M or G.
    Count(u64, u64),
    /// A number of things per second.
    Rate(u64, u64),
    /// Bits per second.
    BitRate(u64, u64),
    /// A size such as 64KiB; the bounds are bytes.
    Bytes(u64, u64),
    /// A duration such as 10us; the bounds are nanoseconds.
    Nanos(u64, u64),
    /// A share between the bounds.
    Ratio(f64, f64),
    Choice(&'static [&'static str]),
    Cpus,
    OneCpu,
    Text,
    /// A list of texts.
    Lines,
    /// A command: a list of words, or one text that is split as a shell splits it.
    Command,
    /// A table of names to values.
    Names,
    Qdisc,
    Parser,
}

const S: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;
/// Largest value of a C int: what `SO_RCVBUF` and its like take.
const INT_MAX: u64 = i32::MAX as u64;
/// `UDP_MAX_SEGMENTS` (include/linux/udp.h) is 128 since Linux 6.9 and was 64 before.
const MAX_SEGMENTS: u64 = 128;
/// `UIO_MAXIOV` (include/uapi/linux/uio.h): most messages that one sendmmsg or recvmmsg takes.
const MAX_BATCH: u64 = 1024;

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

const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    of(&[], name, kind, doc)
}

/// A key that only some protocols have.
const fn of(
    protocols: &'static [Protocol],
    name: &'static str,
    kind: Kind,
    doc: &'static str,
) -> Key {
    Key { name, kind, protocols, doc }
}

/// All keys, in the order in which options are put on a command line.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    key("topology.kind", Kind::Choice(&["netns", "local"]), "two network namespaces (needs root) or loopback"),

    key("lab.queues", Kind::Int(1, 64), "queues of each end of the veth pair"),
    key("lab.mtu_bytes", Kind::Bytes(1280, 65_535), "MTU of both ends"),
    key("lab.ipv6", Kind::Bool, "IPv6 instead of IPv4"),
    key("lab.addresses", Kind::Int(1, 200), "addresses of the receiver that the sender spreads over"),
    key("lab.rps_cpus", Kind::Cpus, "RPS mask of the receiver's end; empty = off"),
    key("lab.gro", Kind::Bool, "GRO of the receiver's end; with tso = false it switches NAPI on"),
    key("lab.udp_gro_forwarding", Kind::Bool, "rx-udp-gro-forwarding of the receiver's end"),
    key("lab.tso", Kind::Bool, "tx-tcp-segmentation of the sender's end"),
    key("lab.tso_rx", Kind::Bool, "tx-tcp-segmentation of the receiver's end, for what it answers"),
    key("lab.napi_defer_hard_irqs", Kind::Int(0, 1_000_000), "empty polls after which NAPI of the receiver's end gives up"),
    key("lab.gro_flush_timeout", Kind::Nanos(0, S), "time to the next poll meanwhile"),
    key("lab.udp_segmentation", Kind::Bool, "tx-udp-segmentation of the sender's end; off = GSO batches are cut before the link"),
    key("lab.threaded", Kind::Bool, "NAPI of the receiver's end in a kernel thread"),
    key("lab.napi_cpu", Kind::OneCpu, "CPU that the NAPI threads are pinned to"),
    key("lab.napi_idle", Kind::Bool, "NAPI threads run as SCHED_IDLE (starves the ring on purpose)"),
    key("lab.awake", Kind::Bool, "keep idle CPUs from sleeping during a trial: in a virtual machine a sleeping one resumes late"),
    key("lab.upper", Kind::Choice(&["bridge", "macvlan"]), "a device over the receiver's end, which has its addresses"),
    key("lab.flow_rule", Kind::Bool, "a flow rule of the receiving device that steers the workload to one queue; needs n-tuple filters"),
    key("lab.turbo", Kind::Bool, "what the host's turbo must be; a run never switches it"),
    key("lab.smt", Kind::Bool, "what the host's SMT must be; a run never switches it"),
    key("lab.sysctl_rx", Kind::Names, "sysctls of the receiver's namespace"),
    key("lab.sysctl_tx", Kind::Names, "sysctls of the sender's namespace"),
    key("lab.nft_rx", Kind::Text, "nftables ruleset of the receiver's namespace"),
    key("lab.nft_tx", Kind::Text, "nftables ruleset of the sender's namespace"),
    key("lab.conntrack_room", Kind::Int(0, 65_535), "fills the receiver's connection table with other connections until room for so many is left"),
    key("lab.iptables_rx", Kind::Lines, "iptables command lines (without the word) of the receiver's namespace"),
    key("lab.qdisc_tx", Kind::Qdisc, "queueing discipline of the sender's end"),

    key("background.victim", Kind::OneCpu, "known work on this CPU over the window, which knows what was taken from it; switches observe.steal on"),
    key("background.hogs", Kind::Int(0, 1024), "busy loops next to the workload, or copies of background.command"),
    key("background.command", Kind::Command, "a command instead of the busy loop"),
    key("background.cpus", Kind::Cpus, "CPUs that they take turns on; empty = anywhere"),
    key("background.nice", Kind::Signed(-20, 19), "their nice value"),
    key("background.policy", Kind::Choice(&["other", "batch", "idle"]), "their scheduler class"),

    key("observe.sample_interval", Kind::Nanos(0, S), "time from sample to sample of the sockets' queues; 0 = none"),
    key("observe.drops", Kind::Bool, "why the kernel drops packets (BPF), in addition to the ledger"),
    key("observe.steal", Kind::Bool, "CPU time that networking takes, by task and CPU (BPF)"),
    key("observe.trace", Kind::Bool, "softirqs, packets per poll and the latency of stages over the window (BPF)"),

    key("serve.protocol", Kind::Choice(Protocol::WORDS), "what both sides speak (not an option)"),
    key("serve.absent", Kind::Bool, "nothing listens (not an option)"),
    key("serve.command", Kind::Command, "another program as receiver (not an option)"),
    key("serve.parser", Kind::Parser, "how that program's output becomes numbers (not an option)"),
    key("serve.files", Kind::Names, "files for that program: name to text, written into {dir} (not an option)"),
    key("serve.ready", Kind::Text, "its line that says that it is ready; default: its port is bound (not an option)"),
    key("serve.port", Kind::Int(1, 65_535), "port (not an option)"),
    key("serve.cpu", Kind::Cpus, "one thread per CPU of the list"),
    key("serve.threads", Kind::Int(1, 256), "threads"),
    of(UDP, "serve.batch", Kind::Int(1, MAX_BATCH), "datagrams per recvmmsg; 1 = one call per datagram"),
    key("serve.sockets", Kind::Choice(&["shared", "reuseport"]), "one socket for all threads, or one each"),
    of(UDP, "serve.steer", Kind::Choice(&["hash", "cpu"]), "how SO_REUSEPORT chooses a socket"),
    of(UDP, "serve.gro", Kind::Bool, "read aggregates (UDP_GRO)"),
    key("serve.busy_poll", Kind::Nanos(1_000, S), "busy polling time (SO_BUSY_POLL)"),
    key("serve.prefer_busy_poll", Kind::Bool, "keep interrupts off while polling (SO_PREFER_BUSY_POLL)"),
    key("serve.busy_poll_budget", Kind::Int(1, 65_535), "packets per poll (SO_BUSY_POLL_BUDGET)"),
    key("serve.nice", Kind::Signed(-20, 19), "nice value of the threads"),
    key("serve.rcvbuf", Kind::Bytes(1, INT_MAX), "receive buffer to get (sk_rcvbuf, what SO_RCVBUF doubles)"),
    key("serve.work", Kind::Nanos(0, S), "simulated work per datagram, read, transaction or request"),
    of(UDP_TCP, "serve.sleep", Kind::Nanos(0, 60 * S), "length of a stall"),
    of(UDP_TCP, "serve.every", Kind::Nanos(1_000, 600 * S), "time from stall to stall"),
    of(UDP, "serve.nap", Kind::Nanos(1_000, S), "sleep after emptying the socket instead of being woken by each datagram"),
    of(UDP, "serve.stamps", Kind::Bool, "kernel receive stamps: time in the socket's queue"),
    of(OVER_TCP, "serve.sndbuf", Kind::Bytes(1, INT_MAX), "send buffer of each connection"),
    of(TCP, "serve.buffer", Kind::Bytes(1, 1 << 30), "bytes per read and write"),
    of(STREAM, "serve.low_water", Kind::Bytes(1, 64 * MIB), "payload that must wait before the reader is woken"),
    of(TCP, "serve.receive", Kind::Choice(&["read", "trunc", "zerocopy"]), "how data is taken"),
    of(TCP, "serve.congestion", Kind::Text, "congestion control of the connections"),
    of(HTTP, "serve.engine", Kind::Choice(&["epoll", "uring"]), "how the server waits and moves data"),
    of(HTTP, "serve.events", Kind::Int(1, 65_536), "events taken per wait"),
    of(HTTP, "serve.trigger", Kind::Choice(&["edge", "level"]), "when epoll reports a socket"),
    of(HTTP, "serve.epoll_timeout", Kind::Int(0, 60_000), "longest wait in ms; 0 = never block"),
    of(HTTP, "serve.body", Kind::Bytes(0, 1 << 30), "bytes of the reply's body"),
    of(HTTP, "serve.backlog", Kind::Int(1, 65_535), "accept queue of the listener"),
    of(HTTP, "serve.max_connections", Kind::Int(1, 10_000_000), "connections at once"),

    key("load.protocol", Kind::Choice(Protocol::WORDS), "the same as serve.protocol, which of them is set is one (not an option)"),
    key("load.command", Kind::Command, "another program as sender (not an option)"),
    key("load.parser", Kind::Parser, "how that program's output becomes numbers (not an option)"),
    key("load.files", Kind::Names, "files for that program: name to text, written into {dir} (not an option)"),
    key("load.ready", Kind::Text, "its line that says that it is ready (not an option)"),
    key("load.port", Kind::Int(1, 65_535), "port (not an option)"),
    key("load.cpu", Kind::Cpus, "one thread per CPU of the list"),
    key("load.threads", Kind::Int(1, 256), "threads"),
    of(UDP, "load.size", Kind::Bytes(0, 65_507), "payload bytes of a datagram"),
    of(COUNTED, "load.rate", Kind::Rate(1, 1_000_000_000), "datagrams, transactions or requests per second, all threads; default = as fast as possible"),
    of(UDP, "load.capacity_ratio", Kind::Ratio(0.01, 100.0), "the same as a share of what the receiver takes without loss, measured before the first block (not an option)"),
    of(STREAM, "load.bitrate", Kind::BitRate(1, 1_000_000_000_000), "bits per second, all connections; default = as fast as possible"),
    of(UDP_HTTP, "load.pacing", Kind::Choice(&["auto", "spin", "sleep"]), "how the schedule of load.rate is waited for"),
    key("load.start_multiple", Kind::Nanos(0, S), "the load starts at a whole multiple of this of CLOCK_MONOTONIC, where ticks are since Linux 6.4; 0 = anywhere (not an option)"),
    key("load.nice", Kind::Signed(-20, 19), "nice value of the threads"),
    of(UDP, "load.batch", Kind::Int(1, MAX_BATCH), "messages per sendmmsg; 1 = one call per datagram"),
    of(UDP, "load.gso", Kind::Int(1, MAX_SEGMENTS), "datagrams per GSO send (UDP_SEGMENT)"),
    of(UDP, "load.flows", Kind::Int(1, 65_535), "source ports"),
    of(UDP, "load.source_port", Kind::Int(1, 65_535), "first source port"),
    of(UDP, "load.unconnected", Kind::Bool, "sockets without a connected peer, so that hashes follow addresses"),
    of(UDP, "load.corrupt", Kind::Choice(&["checksum"]), "send damaged datagrams"),
    of(UDP_TCP, "load.sndbuf", Kind::Bytes(1, INT_MAX), "send buffer to get (with UDP instead of the large one that keeps the loop open)"),
    of(TCP, "load.rcvbuf", Kind::Bytes(1, INT_MAX), "receive buffer of each connection"),
    of(UDP, "load.count", Kind::Count(1, u64::MAX), "datagrams in all, then stop"),
    of(OVER_TCP, "load.connections", Kind::Int(1, 1_000_000), "connections, all threads"),
    of(TCP, "load.buffer", Kind::Bytes(1, 1 << 30), "bytes per read and write"),
    of(TCP, "load.congestion", Kind::Text, "congestion control of the connections"),
    of(TCP, "load.mss", Kind::Int(88, 65_495), "largest segment (TCP_MAXSEG)"),
    of(TCP, "load.verify", Kind::Bool, "check every byte"),
    of(STREAM, "load.direction", Kind::Choice(&["send", "receive", "both"]), "which way data goes"),
    of(STREAM, "load.send", Kind::Choice(&["copy", "zerocopy", "splice", "sendfile"]), "how data is given to the kernel"),
    of(STREAM, "load.receive", Kind::Choice(&["read", "trunc", "zerocopy"]), "how data is taken"),
    of(STREAM, "load.pacing_rate", Kind::BitRate(1, 1_000_000_000_000), "bits per second of each connection (SO_MAX_PACING_RATE)"),
    of(STREAM, "load.nodelay", Kind::Bool, "send small segments at once (TCP_NODELAY)"),
    of(STREAM, "load.notsent_lowat", Kind::Bytes(1, INT_MAX), "unsent bytes above which the socket takes no more"),
    of(REQUESTS, "load.request", Kind::Bytes(1, 1 << 30), "bytes of a request"),
    of(REQUESTS, "load.response", Kind::Bytes(0, 1 << 30), "bytes of a reply"),
    of(CRR, "load.close", Kind::Choice(&["server", "client", "reset"]), "who closes the connection"),
    of(HTTP, "load.pipeline", Kind::Int(1, 1024), "requests in flight per connection"),
    of(HTTP, "load.requests", Kind::Count(1, u64::MAX), "requests in all, then stop"),
    of(HTTP, "load.method", Kind::Text, "method of the request"),
    of(HTTP, "load.header", Kind::Lines, "further header lines"),
    of(HTTP, "load.body", Kind::Text, "body of the request"),
    of(HTTP, "load.timeout", Kind::Nanos(1_000_000, 600 * S), "longest wait for a reply"),
    of(HTTP, "load.no_keepalive", Kind::Bool, "a new connection for each request"),
    of(HTTP, "load.engine", Kind::Choice(&["epoll", "uring"]), "how the client waits and moves data"),

    key("trials.blocks", Kind::Int(1, 1000), "blocks at least, the A/A block not counted"),
    key("trials.max_blocks", Kind::Int(1, 1000), "blocks at most"),
    key("trials.ramp", Kind::Nanos(0, 60 * S), "load before the settle test"),
    key("trials.settle", Kind::Nanos(0, 600 * S), "longest wait for a settled rate"),
    key("trials.measure", Kind::Nanos(S / 10, 3600 * S), "measured window"),
    key("trials.precision_ratio", Kind::Ratio(0.000_1, 1.0), "half-width of each interval that blocks are added for; not set, blocks are added for the verdict alone"),
    key("trials.threshold_ratio", Kind::Ratio(0.0, 1.0), "differences inside it are `same`"),
    key("trials.time_limit", Kind::Nanos(S, 24 * 3600 * S), "limit of the whole run"),
    key("trials.aa", Kind::Bool, "run block 0 with one variant twice"),
    key("trials.seed", Kind::Int(0, i64::MAX as u64), "seed of the order and the bootstrap"),
];

/// Largest datagrams are bounded by this many bytes of one send; used by the cross checks too.
pub(super) const MAX_UDP_PAYLOAD: u64 = 65_507;

/// Rulesets and commands longer than this are refused: they belong in a file of their own.
pub(super) const MAX_TEXT: usize = MIB as usize;

/// The key of that name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The names in one section, without the section.
pub(super) fn names_in(section: &str) -> Vec<&'static str> {
    KEYS.iter().filter_map(|key| key.name.strip_prefix(section)?.strip_prefix('.')).collect()
}

/// What is right instead of an unknown `section.name`.
pub(super) fn instead_of(section: &str, name: &str) -> String {
    let plain = name.replace('-', "_");
    let elsewhere = KEYS.iter().find_map(|key| {
        let (other, own) = key.name.split_once('.')?;
        (own == plain && other != section).then_some(other)
    });
    let known = names_in(section);
    match super::error::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match elsewhere {
            Some(other) => format!("`{plain}` belongs to [{other}]"),
            None => super::error::suggestion(name, "keys", &known),
        },
    }
}

/// Name, type and meaning of every key, for the reference.
pub fn reference() -> Vec<[String; 3]> {
    KEYS.iter().map(|key| [key.name.into(), key.kind.wanted(), key.doc.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_option_says_so() {
        for key in KEYS {
            let Some(("serve" | "load", name)) = key.name.split_once('.') else { continue };
            let is_option = !crate::scenario::typed::NOT_OPTIONS.contains(&name);
            assert_eq!(is_option, !key.doc.ends_with("(not an option)"), "{}", key.name);
        }
    }

    #[test]
    fn names_are_unique_and_dotted() {
        let mut names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| name.split('.').count() == 2));
    }

    #[test]
    fn a_key_of_the_other_side_is_pointed_at() {
        assert_eq!(instead_of("serve", "rate"), "`rate` belongs to [load]");
        assert_eq!(instead_of("load", "unconected"), "did you mean `unconnected`?");
    }
}
