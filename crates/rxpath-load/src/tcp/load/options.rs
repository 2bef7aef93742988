//! Requested and effective settings of the TCP clients.

use std::net::SocketAddr;

use clap::Args;
use rxpath_core::{BitRate, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::address;
use crate::pool::Threads;
use crate::tcp::preamble::SendMethod;
use crate::tcp::serve::options::ReceiveMethod;
use crate::tcp::socket::{SocketOptions, SocketSettings};
use crate::values::{count, message_size, number, size, small_size};

/// Which direction a stream goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum StreamDirection {
    /// From here to the server.
    #[default]
    Send,
    /// From the server to here.
    Receive,
    /// Both at once, on each connection.
    Both,
}

impl StreamDirection {
    /// Whether this side sends.
    pub fn sends(self) -> bool {
        self != Self::Receive
    }

    /// Whether this side receives.
    pub fn receives(self) -> bool {
        self != Self::Send
    }
}

/// Which side closes the connection of a single transaction, and so gets the TIME_WAIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum CloseBy {
    /// The server: the client's ports are free again at once.
    #[default]
    Server,
    /// The client: each of its ports stays in TIME_WAIT for a minute.
    Client,
    /// The client, by a reset: no TIME_WAIT at all.
    Reset,
}

/// What all clients are asked for: the options that all kinds of `rxpath load tcp` share.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// The server: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT of a `rxpath serve tcp`
    #[allow(rustdoc::broken_intra_doc_links)] // `[v6]` is no link.
    #[arg(value_parser = address)]
    pub addr: SocketAddr,
    /// Connections over all threads (default: one per thread)
    #[arg(short, long, value_name = "N", value_parser = count)]
    pub connections: Option<usize>,
    /// The worker threads.
    #[command(flatten)]
    pub threads: Threads,
    /// Most bytes per call
    #[arg(long = "buffer", value_name = "BYTES", default_value = "128KiB", value_parser = size)]
    pub buffer_bytes: usize,
    /// Options of the sockets.
    #[command(flatten)]
    pub socket: SocketOptions,
    /// Largest segment (TCP_MAXSEG)
    #[arg(long = "mss", value_name = "BYTES", value_parser = small_size)]
    pub mss_bytes: Option<u32>,
    /// Let the receiver check every byte; the first difference is reported with its offset, exit status 1
    #[arg(long)]
    pub verify: bool,
    /// Ends after this long. **Unit** ns.
    #[arg(skip)]
    pub duration_ns: Option<u64>,
}

impl Common {
    /// Connections over all threads.
    pub fn connections(&self) -> usize {
        self.connections.unwrap_or(self.threads.count)
    }
}

/// What a stream is asked for: the options of `rxpath load tcp stream`.
#[derive(Clone, Debug, Args)]
pub struct StreamOptions {
    /// What is common to all clients.
    #[command(flatten)]
    pub common: Common,
    /// Which direction the bytes go
    #[arg(long, value_enum, default_value = "send")]
    pub direction: StreamDirection,
    /// How the sending side hands bytes to its kernel
    #[arg(long, value_enum, default_value = "copy")]
    pub send: SendMethod,
    /// How this side takes bytes from the kernel (the server has its own --receive)
    #[arg(long, value_enum, default_value = "read")]
    pub receive: ReceiveMethod,
    /// Payload bits per second over all connections (10Gbit, 500M), by an absolute schedule of whole buffers
    #[arg(long = "bitrate", value_name = "RATE", value_parser = number::<BitRate>)]
    pub bitrate_bps: Option<u64>,
    /// Pace each connection in the kernel, on both sides (SO_MAX_PACING_RATE, bits per second: 2.5Gbit)
    #[arg(long = "pacing-rate", value_name = "RATE", value_parser = number::<BitRate>)]
    pub pacing_bps: Option<u64>,
    /// Send small segments at once (TCP_NODELAY), on both sides
    #[arg(long)]
    pub nodelay: bool,
    /// Bytes in the send buffer that were not sent yet, at most (TCP_NOTSENT_LOWAT)
    #[arg(long = "notsent-lowat", value_name = "BYTES", value_parser = small_size)]
    pub notsent_lowat_bytes: Option<u32>,
}

/// What transactions are asked for: the options of `rxpath load tcp rr`.
#[derive(Clone, Debug, Args)]
pub struct TransactionOptions {
    /// What is common to all clients.
    #[command(flatten)]
    pub common: Common,
    /// Bytes of a request
    #[arg(long = "request", value_name = "BYTES", default_value = "1", value_parser = message_size)]
    pub request_bytes: u32,
    /// Bytes of a response
    #[arg(long = "response", value_name = "BYTES", default_value = "1", value_parser = message_size)]
    pub response_bytes: u32,
    /// Transactions per second over all connections (50k, 1.2M), by an absolute schedule; response times count from it
    #[arg(long = "rate", value_name = "RATE", value_parser = number::<Rate>)]
    pub rate_tps: Option<u64>,
    /// Which side closes a connection of one transaction.
    #[arg(skip)]
    pub close_by: CloseBy,
}

/// What is in force for every client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommonSettings {
    /// The server.
    pub to: SocketAddr,
    /// Version of the server's program.
    pub server_program: String,
    /// Its threads.
    pub server_threads_count: usize,
    /// Threads.
    #[serde(flatten)]
    pub threads: Threads,
    /// Connections over all threads.
    pub connections_count: usize,
    /// Whether payloads are checked by their receiver.
    pub verify: bool,
    /// Of the first connection.
    pub socket: SocketSettings,
    /// Segment size of the control connection (`tcpi_snd_mss`).
    pub mss_bytes: Option<u32>,
    /// `--duration`.
    pub duration_s: Option<f64>,
}

/// `settings` of `load tcp stream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamSettings {
    /// What is common to all clients.
    #[serde(flatten)]
    pub common: CommonSettings,
    /// Which direction it goes.
    pub direction: StreamDirection,
    /// How the sender hands bytes over, on either side.
    pub send: SendMethod,
    /// How this side takes bytes, where it receives.
    pub receive: Option<ReceiveMethod>,
    /// Buffer of a call.
    pub buffer_bytes: usize,
    /// `--bitrate`.
    pub target_bps: Option<u64>,
    /// The loop of a thread.
    pub call: String,
}

/// `settings` of `load tcp rr` and `load tcp crr`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransactionSettings {
    /// What is common to all clients.
    #[serde(flatten)]
    pub common: CommonSettings,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// `--rate`.
    pub target_tps: Option<u64>,
    /// How the schedule is waited for.
    pub pacing: String,
    /// Which side closes the connection of a single transaction (crr).
    pub close: Option<CloseBy>,
    /// The loop of a thread.
    pub call: String,
}
