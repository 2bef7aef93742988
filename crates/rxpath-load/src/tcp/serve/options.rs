//! Requested and effective settings of a TCP server.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pool::Threads;
use crate::tcp::socket::{SocketOptions, SocketSettings};
use crate::udp::serve::options::{ReaderStall, Sockets};

/// How bytes are taken from the kernel.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveMethod {
    /// `recv`: copied into user memory.
    #[default]
    Read,
    /// `recv` with `MSG_TRUNC`: discarded in the kernel.
    Trunc,
    /// `TCP_ZEROCOPY_RECEIVE`: whole pages are mapped, the rest is read.
    Zerocopy,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Address to bind.
    pub addr: SocketAddr,
    /// The worker threads.
    pub threads: Threads,
    /// One listener for all threads, or one each.
    pub sockets: Sockets,
    /// Buffer of a receive call.
    pub buffer_bytes: usize,
    /// How bytes are taken.
    pub receive: ReceiveMethod,
    /// Payload that must wait before a stream's reader is woken (`SO_RCVLOWAT`); `None`: any.
    pub low_water_bytes: Option<u64>,
    /// Options of the connections' sockets.
    pub socket: SocketOptions,
    /// Simulated work per read or transaction. **Unit** ns.
    pub work_ns: u64,
    /// A stalling reader.
    pub stall: Option<ReaderStall>,
}

impl ServeOptions {
    /// One thread, default everything.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            threads: Threads::default(),
            sockets: Sockets::Shared,
            buffer_bytes: 128 << 10,
            receive: ReceiveMethod::Read,
            low_water_bytes: None,
            socket: SocketOptions::default(),
            work_ns: 0,
            stall: None,
        }
    }
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
