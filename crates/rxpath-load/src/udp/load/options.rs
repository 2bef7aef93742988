//! Requested and effective settings of a sender.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use rxpath_core::{Bytes, ItemCount, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::address;
pub use crate::pace::Pacing;
use crate::pool::Threads;
use crate::udp::xdp::{XdpOptions, XdpSettings};
use crate::values::{number, size};

rxpath_core::named! {
    /// How datagrams get to the device.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[derive(clap::ValueEnum)]
    pub enum Engine {
        /// UDP sockets: send, sendmmsg, GSO
        #[default]
        Socket => "--engine socket",
        /// AF_XDP sockets: whole frames from memory that is shared with the kernel
        Xdp => "--engine xdp",
        /// An XDP program that the kernel runs for each frame (BPF_PROG_TEST_RUN with live frames)
        XdpFrames => "--engine xdp-frames",
        /// Raw sockets: whole packets, with a wrong UDP checksum
        #[value(skip)]
        RawBadChecksum => "--corrupt checksum",
    }
    /// What users call it: the option that chooses it.
    pub fn option(self) -> &'static str
}

impl Engine {
    /// The words of `--engine`, which scenario files have too.
    pub fn words() -> Vec<&'static str> {
        Self::ALL.iter().filter_map(|engine| engine.option().strip_prefix("--engine ")).collect()
    }

    /// Whether datagrams go around the kernel's UDP, whose counters leave them out.
    pub fn bypasses_udp(self) -> bool {
        self != Self::Socket
    }

    /// System call of the loop, which takes a batch of this many messages.
    pub fn call(self, batch: usize) -> &'static str {
        match self {
            Self::Socket if batch == 1 => "send",
            Self::Socket | Self::RawBadChecksum => "sendmmsg",
            Self::Xdp => "sendto of an AF_XDP socket",
            Self::XdpFrames => "BPF_PROG_TEST_RUN",
        }
    }

    /// Whether it hands whole Ethernet frames to a device.
    pub fn sends_frames(self) -> bool {
        matches!(self, Self::Xdp | Self::XdpFrames)
    }
}

/// What is asked for: the options of `rxpath load udp`.
#[derive(Clone, Debug, Args)]
pub struct LoadOptions {
    /// Destinations: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT
    #[allow(rustdoc::broken_intra_doc_links)] // `[v6]` is no link.
    #[arg(required = true, value_parser = address)]
    pub to: Vec<SocketAddr>,
    /// The worker threads.
    #[command(flatten)]
    pub threads: Threads,
    /// Payload size of a datagram
    #[arg(long, value_name = "BYTES", default_value = "32", value_parser = size)]
    pub size: usize,
    /// Datagrams per second over all threads (50k, 1.2Mpps), by an absolute schedule
    #[arg(long = "rate", value_name = "RATE", value_parser = number::<Rate>)]
    pub rate_pps: Option<u64>,
    /// Send as fast as possible, without a rate
    #[arg(long, conflicts_with = "rate_pps")]
    pub flood: bool,
    /// How to wait for the next scheduled send
    #[arg(long, value_enum, default_value = "auto", requires = "rate_pps")]
    pub pacing: Pacing,
    /// Stop after exactly this many datagrams
    #[arg(long, value_name = "N", value_parser = number::<ItemCount>)]
    pub count: Option<u64>,
    /// Datagrams (with --gso: sends) per system call; 1 = plain send
    #[arg(long, value_name = "N", default_value = "64")]
    pub batch: usize,
    /// Let the kernel split each send into N datagrams (UDP_SEGMENT); each send has exactly N
    #[arg(long, value_name = "N")]
    pub gso: Option<usize>,
    /// Source ports per destination (default: one per thread)
    #[arg(long, value_name = "N")]
    pub flows: Option<usize>,
    /// Local address to send from
    #[arg(long, value_name = "IP")]
    pub source: Option<IpAddr>,
    /// First source port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub source_port: Option<u16>,
    /// Send buffer as the kernel accounts it (default: 2000 messages), forced with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES", value_parser = number::<Bytes>)]
    pub sndbuf: Option<u64>,
    /// Do not connect the sockets
    #[arg(long)]
    pub unconnected: bool,
    /// How datagrams get to the device; xdp and xdp-frames send whole frames past the stack and need CAP_NET_ADMIN,
    /// CAP_NET_RAW and CAP_BPF
    #[arg(long, value_enum, default_value = "socket")]
    pub engine: Engine,
    /// AF_XDP sockets.
    #[command(flatten)]
    pub xdp: XdpOptions,
    /// Let xdp and xdp-frames send to this address, which is not in a lab
    #[arg(long = "yes-send-to", value_name = "IP", value_delimiter = ',')]
    pub permitted: Vec<IpAddr>,
    /// Number of the clock in the datagrams' headers
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub clock_id: Option<u16>,
    /// Stop after this long.
    #[arg(skip)]
    pub duration_ns: Option<u64>,
}

impl LoadOptions {
    /// The clock as the headers name it.
    pub fn clock(&self) -> u16 {
        self.clock_id.unwrap_or_else(crate::engine::clock::identity)
    }

    /// Datagrams per send.
    pub fn segments(&self) -> usize {
        self.gso.unwrap_or(1)
    }
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSettings {
    /// Destinations.
    pub to: Vec<SocketAddr>,
    /// Local addresses of the flows, in the order of their stream numbers; the first 64.
    pub from: Vec<SocketAddr>,
    /// Flows over all destinations.
    pub flows_count: usize,
    /// Payload bytes of a datagram.
    pub size_bytes: usize,
    /// What payloads carry: `stream, sequence number, send time` or nothing (under 16 bytes).
    pub header: String,
    /// Threads.
    #[serde(flatten)]
    pub threads: Threads,
    /// Messages per call.
    pub batch: usize,
    /// System call of the loop.
    pub call: String,
    /// Datagrams per send (`UDP_SEGMENT`); every send is a full batch of them.
    pub gso_segments: Option<usize>,
    /// Whether sockets are connected.
    pub connected: bool,
    /// How datagrams get to the device.
    #[serde(default)]
    pub engine: Engine,
    /// AF_XDP sockets, with `--engine xdp`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub xdp: Option<XdpSettings>,
    /// Whether checksums are wrong.
    pub corrupt_checksum: bool,
    /// Datagrams per second; `None` = as fast as possible.
    pub target_pps: Option<u64>,
    /// How the schedule is waited for.
    pub pacing: String,
    /// `sk_sndbuf` of each socket; `None` where frames go to the device without one, or in place.
    pub sndbuf_bytes: Option<u64>,
    /// Whether `SO_SNDBUFFORCE` set it, which `net.core.wmem_max` does not cap.
    pub sndbuf_forced: bool,
    /// Least path MTU to the destinations, where there is a route.
    pub mtu_bytes: Option<u32>,
    /// IP packets per datagram: more than 1 means fragments.
    pub fragments_per_datagram: u32,
    /// Stop after this many datagrams.
    pub count: Option<u64>,
    /// Stop after this long.
    pub duration_s: Option<f64>,
}
