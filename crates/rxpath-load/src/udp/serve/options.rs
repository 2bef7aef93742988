//! Requested and effective settings of a receiver.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pool::Threads;
pub use crate::stall::ReaderStall;
use crate::udp::sender_clock::SenderClock;
use crate::udp::xdp::{XdpOptions, XdpSettings};

/// How datagrams get from the device to the program.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServeEngine {
    /// UDP sockets
    #[default]
    Socket,
    /// AF_XDP sockets: an XDP program takes the datagrams from the device, past the stack
    Xdp,
    /// An XDP program drops the datagrams and counts them; nothing is delivered
    XdpDrop,
}

rxpath_core::named! {
    /// What users call it.
    option of ServeEngine {
        Socket => "--engine socket",
        Xdp => "--engine xdp",
        XdpDrop => "--engine xdp-drop",
    }
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
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sockets {
    /// All threads read one socket.
    #[default]
    Shared,
    /// Each thread has a socket of its own in one `SO_REUSEPORT` group.
    Reuseport,
}

/// How the kernel picks a socket of a `SO_REUSEPORT` group.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Steer {
    /// By the hash of addresses and ports.
    #[default]
    Hash,
    /// By the CPU on which the softirq runs (`SO_ATTACH_REUSEPORT_CBPF`).
    Cpu,
}

/// Busy polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BusyPoll {
    /// `SO_BUSY_POLL`: poll the device for this long before sleeping. **Unit** us.
    pub poll_us: u32,
    /// `SO_PREFER_BUSY_POLL`.
    pub prefer: bool,
    /// `SO_BUSY_POLL_BUDGET` in packets.
    pub budget_packets: Option<u32>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Address to bind.
    pub addr: SocketAddr,
    /// The worker threads.
    pub threads: Threads,
    /// Datagrams (with GRO: aggregates) per call; 1 = plain `recv`.
    pub batch: usize,
    /// Expected payload, to state the socket's capacity; buffers hold at least 2 KiB.
    pub size: usize,
    /// How threads share sockets.
    pub sockets: Sockets,
    /// How the kernel picks the socket.
    pub steer: Steer,
    /// `UDP_GRO`.
    pub gro: bool,
    /// Busy polling.
    pub busy_poll: Option<BusyPoll>,
    /// `sk_rcvbuf` to get; `None` = the kernel's default.
    pub rcvbuf: Option<u64>,
    /// Simulated work per datagram. **Unit** ns.
    pub work_ns: u64,
    /// A stalling reader.
    pub stall: Option<ReaderStall>,
    /// After a read that emptied the socket: sleep this long instead of being woken by the next datagram.
    pub nap_ns: Option<u64>,
    /// Kernel receive stamps.
    pub stamps: bool,
    /// How datagrams get from the device to the program.
    pub engine: ServeEngine,
    /// AF_XDP sockets.
    pub xdp: XdpOptions,
    /// Device of the XDP program; `None` = the one that has the address.
    pub device: Option<String>,
    /// Clocks of senders on other hosts.
    pub sender_clocks: Vec<SenderClock>,
}

impl ServeOptions {
    /// One thread, one socket, default everything.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            threads: Threads::default(),
            batch: 64,
            size: 32,
            sockets: Sockets::Shared,
            steer: Steer::Hash,
            gro: false,
            busy_poll: None,
            rcvbuf: None,
            work_ns: 0,
            stall: None,
            nap_ns: None,
            stamps: false,
            engine: ServeEngine::Socket,
            xdp: XdpOptions::default(),
            device: None,
            sender_clocks: Vec::new(),
        }
    }
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
