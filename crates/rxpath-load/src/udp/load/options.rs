//! Requested and effective settings of a sender.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::pace::Pacing;
use crate::pool::Threads;
use crate::udp::xdp::{XdpOptions, XdpSettings};

/// How datagrams get to the device.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// UDP sockets: send, sendmmsg, GSO
    #[default]
    Socket,
    /// AF_XDP sockets: whole frames from memory that is shared with the kernel
    Xdp,
    /// An XDP program that the kernel runs for each frame (BPF_PROG_TEST_RUN with live frames)
    XdpFrames,
    /// Raw sockets: whole packets, with a wrong UDP checksum
    #[cfg_attr(feature = "clap", value(skip))]
    RawBadChecksum,
}

rxpath_core::named! {
    /// What users call it: the option that chooses it.
    option of Engine {
        Socket => "--engine socket",
        Xdp => "--engine xdp",
        XdpFrames => "--engine xdp-frames",
        RawBadChecksum => "--corrupt checksum",
    }
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

    /// Whether it hands whole Ethernet frames to a device.
    pub fn sends_frames(self) -> bool {
        matches!(self, Self::Xdp | Self::XdpFrames)
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Destinations.
    pub to: Vec<SocketAddr>,
    /// Local address to send from.
    pub source: Option<IpAddr>,
    /// First source port; the flows of a destination take this and the following ones.
    pub source_port: Option<u16>,
    /// Payload bytes of a datagram.
    pub size: usize,
    /// The worker threads.
    pub threads: Threads,
    /// Source ports per destination; `None` = as many as the threads need.
    pub flows: Option<usize>,
    /// Datagrams per second over all threads; `None` = as fast as possible.
    pub rate_pps: Option<u64>,
    /// How to wait for the schedule.
    pub pacing: Pacing,
    /// Datagrams per send (`UDP_SEGMENT`); `None` = one.
    pub gso: Option<usize>,
    /// Messages per call; 1 = plain `send`.
    pub batch: usize,
    /// `sk_sndbuf` to get; `None` = 2000 messages, at least 4 MiB.
    pub sndbuf: Option<u64>,
    /// Do not connect: the kernel looks up the route for each datagram and hashes the flow by its addresses.
    pub unconnected: bool,
    /// How datagrams get to the device.
    pub engine: Engine,
    /// AF_XDP sockets.
    pub xdp: XdpOptions,
    /// Addresses outside of a lab that an engine that goes around the stack may send to.
    pub permitted: Vec<IpAddr>,
    /// Stop after exactly this many datagrams.
    pub count: Option<u64>,
    /// Stop after this long.
    pub duration_ns: Option<u64>,
    /// Number of the clock in the headers; `None` = [`crate::engine::clock::identity`].
    pub clock_id: Option<u16>,
}

impl LoadOptions {
    /// The clock as the headers name it.
    pub fn clock(&self) -> u16 {
        self.clock_id.unwrap_or_else(crate::engine::clock::identity)
    }

    /// One thread, one flow, 32 bytes, as fast as possible, without end.
    pub fn new(to: Vec<SocketAddr>) -> Self {
        Self {
            to,
            source: None,
            source_port: None,
            size: 32,
            threads: Threads::default(),
            flows: None,
            rate_pps: None,
            pacing: Pacing::default(),
            gso: None,
            batch: 64,
            sndbuf: None,
            unconnected: false,
            engine: Engine::default(),
            xdp: XdpOptions::default(),
            permitted: Vec::new(),
            count: None,
            duration_ns: None,
            clock_id: None,
        }
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
