//! Requested and effective settings of a receiver.

use std::net::SocketAddr;

use clap::Args;
use rxpath_core::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::address;
use crate::pool::Threads;
pub use crate::stall::ReaderStall;
use crate::udp::sender_clock::SenderClock;
use crate::udp::xdp::{XdpOptions, XdpSettings};
use crate::values::{microseconds, nanoseconds, number, size};

rxpath_core::named! {
    /// How datagrams get from the device to the program.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[derive(clap::ValueEnum)]
    pub enum ServeEngine {
        /// UDP sockets
        #[default]
        Socket => "--engine socket",
        /// AF_XDP sockets: an XDP program takes the datagrams from the device, past the stack
        Xdp => "--engine xdp",
        /// An XDP program drops the datagrams and counts them; nothing is delivered
        XdpDrop => "--engine xdp-drop",
    }
    /// What users call it.
    pub fn option(self) -> &'static str
}

impl ServeEngine {
    /// The words of `--engine`, which scenario files have too.
    pub fn words() -> Vec<&'static str> {
        Self::ALL.iter().filter_map(|engine| engine.option().strip_prefix("--engine ")).collect()
    }
}

/// The XDP program of a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct XdpProgramSettings {
    /// The device.
    pub device: String,
    /// The kernel's number of the program.
    pub program_id: u32,
    /// Whether it runs in the driver, or behind it (`generic`), after the packet's memory was allocated.
    pub mode: rxpath_host::read::netlink::XdpMode,
    /// Tag of the frames that it takes.
    pub vlan_id: Option<u16>,
}

/// How threads share sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum Sockets {
    /// All threads read one socket.
    #[default]
    Shared,
    /// Each thread has a socket of its own in one `SO_REUSEPORT` group.
    Reuseport,
}

/// How the kernel picks a socket of a `SO_REUSEPORT` group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum Steer {
    /// By the hash of addresses and ports.
    #[default]
    Hash,
    /// By the CPU on which the softirq runs (`SO_ATTACH_REUSEPORT_CBPF`).
    Cpu,
}

/// Busy polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Args)]
pub struct BusyPoll {
    /// `SO_BUSY_POLL`: poll the device for this long before sleeping. **Unit** us.
    #[arg(long = "busy-poll", value_name = "US", value_parser = microseconds, required = false)]
    #[arg(
        help = "Busy-poll the device for this many microseconds (or with a unit: 50us) before sleeping (SO_BUSY_POLL; with HTTP also the epoll sets)"
    )]
    pub poll_us: u32,
    /// `SO_PREFER_BUSY_POLL`.
    #[arg(long = "prefer-busy-poll", requires = "poll_us")]
    #[arg(help = "Keep interrupts off during busy polling (SO_PREFER_BUSY_POLL)")]
    pub prefer: bool,
    /// `SO_BUSY_POLL_BUDGET` in packets.
    #[arg(long = "busy-poll-budget", value_name = "N", requires = "poll_us")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_535))]
    #[arg(help = "Packets per busy poll (SO_BUSY_POLL_BUDGET)")]
    pub budget_packets: Option<u32>,
}

/// What is asked for: the options of `rxpath serve udp`.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Address to bind: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT; port 0 lets the kernel choose
    #[allow(rustdoc::broken_intra_doc_links)] // `[v6]` is no link.
    #[arg(value_parser = address)]
    pub addr: SocketAddr,
    /// The worker threads.
    #[command(flatten)]
    pub threads: Threads,
    /// Datagrams per system call; 1 = plain recv
    #[arg(long, value_name = "N", default_value = "64")]
    pub batch: usize,
    /// Largest expected payload; buffers hold at least 2 KiB
    #[arg(long, value_name = "BYTES", default_value = "32", value_parser = size)]
    pub size: usize,
    /// How threads share sockets
    #[arg(long, value_enum, default_value = "shared")]
    pub sockets: Sockets,
    /// How the kernel picks a socket of the group
    #[arg(long, value_enum, default_value = "hash")]
    pub steer: Steer,
    /// Read aggregates (UDP_GRO); their datagrams are counted individually
    #[arg(long)]
    pub gro: bool,
    /// Busy polling.
    #[command(flatten)]
    pub busy_poll: Option<BusyPoll>,
    /// Receive buffer as the kernel accounts it; forced past rmem_max with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES", value_parser = number::<Bytes>)]
    pub rcvbuf: Option<u64>,
    /// Simulated CPU work per packet, read or transaction in nanoseconds (or with a unit: 2us)
    #[arg(long = "work", value_name = "NS", value_parser = nanoseconds, default_value = "0")]
    #[arg(hide_default_value = true)]
    pub work_ns: u64,
    /// A stalling reader.
    #[command(flatten)]
    pub stall: Option<ReaderStall>,
    /// Sleep this long after emptying the socket, instead of waiting to be woken by each datagram
    #[arg(long = "nap", value_name = "TIME", value_parser = number::<Nanos>)]
    #[arg(conflicts_with_all = ["poll_us", "sleep_ns"])]
    pub nap_ns: Option<u64>,
    /// Measure the time from the kernel's receive timestamp to the read (SO_TIMESTAMPING), as quantiles
    #[arg(long)]
    pub stamps: bool,
    /// How datagrams get from the device to the program; xdp and xdp-drop take them past the stack and need
    /// CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF
    #[arg(long, value_enum, default_value = "socket")]
    pub engine: ServeEngine,
    /// Device of xdp and xdp-drop (default: the one that has the address)
    #[arg(long = "dev", value_name = "NAME")]
    pub device: Option<String>,
    /// AF_XDP sockets.
    #[command(flatten)]
    pub xdp: XdpOptions,
    /// Clock of a sender on another host: ID:AHEAD_NS:AT_NS:RATE_PPB:ERROR_NS
    #[arg(long = "sender-clock", hide = true, value_name = "CLOCK")]
    pub sender_clocks: Vec<SenderClock>,
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeSettings {
    /// Bound address.
    pub addr: SocketAddr,
    /// Threads.
    #[serde(flatten)]
    pub threads: Threads,
    /// Datagrams or aggregates per call.
    pub batch: usize,
    /// System call of the loop.
    pub call: String,
    /// How threads share sockets.
    pub sockets: Sockets,
    /// How the kernel picks the socket; `None` with one socket.
    pub steer: Option<Steer>,
    /// `UDP_GRO`.
    pub gro: bool,
    /// Busy polling.
    pub busy_poll: Option<BusyPoll>,
    /// Requested `sk_rcvbuf`.
    pub rcvbuf_asked_bytes: Option<u64>,
    /// `sk_rcvbuf` of each socket; 0 with XDP.
    pub rcvbuf_bytes: u64,
    /// Whether `SO_RCVBUFFORCE` set it, which `net.core.rmem_max` does not cap.
    pub rcvbuf_forced: bool,
    /// Payload size of the two numbers below.
    pub size_bytes: usize,
    /// Memory of one such datagram, from a probe over loopback; the result has the value of the real datagrams.
    pub truesize_probe_bytes: Option<u64>,
    /// `floor(rcvbuf_bytes / truesize_probe_bytes)`.
    pub capacity_packets: Option<u64>,
    /// Bytes of each buffer; longer datagrams are counted at full length and read in part.
    pub buffer_bytes: usize,
    /// Simulated work per datagram.
    pub work_ns: u64,
    /// Sleep after a read that emptied the socket.
    #[serde(default)]
    pub nap_ns: Option<u64>,
    /// A stalling reader.
    pub stall: Option<ReaderStall>,
    /// Kernel receive stamps.
    pub stamps: bool,
    /// When one-way delay is given.
    pub one_way_delay: String,
    /// How datagrams get from the device to the program.
    #[serde(default)]
    pub engine: ServeEngine,
    /// The XDP program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub xdp_program: Option<XdpProgramSettings>,
    /// AF_XDP sockets.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub xdp: Option<XdpSettings>,
}
