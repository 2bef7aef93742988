//! Requested and effective settings of a TCP server.

use std::net::SocketAddr;

use clap::Args;
use rxpath_core::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::address;
use crate::pool::Threads;
use crate::tcp::socket::{SocketOptions, SocketSettings};
use crate::udp::serve::options::{BusyPoll, ReaderStall, Sockets};
use crate::values::{nanoseconds, number, size};

/// How bytes are taken from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum ReceiveMethod {
    /// `recv`: copied into user memory.
    #[default]
    Read,
    /// `recv` with `MSG_TRUNC`: discarded in the kernel.
    Trunc,
    /// `TCP_ZEROCOPY_RECEIVE`: whole pages are mapped, the rest is read.
    Zerocopy,
}

/// What is asked for: the options of `rxpath serve tcp`.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Address to listen on: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT; port 0 lets the kernel choose
    #[allow(rustdoc::broken_intra_doc_links)] // `[v6]` is no link.
    #[arg(value_parser = address)]
    pub addr: SocketAddr,
    /// The worker threads.
    #[command(flatten)]
    pub threads: Threads,
    /// How threads share the listener
    #[arg(long, value_enum, default_value = "shared")]
    pub sockets: Sockets,
    /// How the server takes bytes from the kernel
    #[arg(long, value_enum, default_value = "read")]
    pub receive: ReceiveMethod,
    /// Buffer of a receive call
    #[arg(long = "buffer", value_name = "BYTES", default_value = "128KiB", value_parser = size)]
    pub buffer_bytes: usize,
    /// Wake a stream's reader only when this much waits, or at the end (SO_RCVLOWAT): fewer wake-ups, a longer queue
    #[arg(long = "low-water", value_name = "BYTES", value_parser = number::<Bytes>)]
    pub low_water_bytes: Option<u64>,
    /// Options of the connections' sockets.
    #[command(flatten)]
    pub socket: SocketOptions,
    /// Busy polling.
    #[command(flatten)]
    pub busy_poll: Option<BusyPoll>,
    /// Simulated CPU work per packet, read or transaction in nanoseconds (or with a unit: 2us)
    #[arg(long = "work", value_name = "NS", value_parser = nanoseconds, default_value = "0")]
    #[arg(hide_default_value = true)]
    pub work_ns: u64,
    /// A stalling reader.
    #[command(flatten)]
    pub stall: Option<ReaderStall>,
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeSettings {
    /// Bound address.
    pub addr: SocketAddr,
    /// Version of the preamble that clients must speak.
    pub preamble_version: u16,
    /// Threads.
    #[serde(flatten)]
    pub threads: Threads,
    /// One listener for all threads (connections are distributed evenly), or one each (the kernel's hash).
    pub sockets: Sockets,
    /// How a thread waits for its connections.
    pub call: String,
    /// Buffer of a receive call.
    pub buffer_bytes: usize,
    /// How bytes are taken.
    pub receive: ReceiveMethod,
    /// Payload that must wait before a stream's reader is woken (`SO_RCVLOWAT`), as the kernel took it; `null`: any.
    pub low_water_bytes: Option<u64>,
    /// Of the listener; connections inherit it.
    pub socket: SocketSettings,
    /// Simulated work per read or transaction.
    pub work_ns: u64,
    /// A stalling reader.
    pub stall: Option<ReaderStall>,
    /// File descriptors that the process may open (`RLIMIT_NOFILE`, raised to its hard limit).
    pub descriptors_count: u64,
}
