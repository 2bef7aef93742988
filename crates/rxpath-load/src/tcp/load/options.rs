//! Requested and effective settings of the TCP clients.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pool::Threads;
use crate::tcp::preamble::SendMethod;
use crate::tcp::serve::options::ReceiveMethod;
use crate::tcp::socket::{SocketOptions, SocketSettings};

/// Which direction a stream goes.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CloseBy {
    /// The server: the client's ports are free again at once.
    #[default]
    Server,
    /// The client: each of its ports stays in TIME_WAIT for a minute.
    Client,
    /// The client, by a reset: no TIME_WAIT at all.
    Reset,
}

/// What all clients are asked for.
#[derive(Clone, Debug)]
pub struct Common {
    /// The server.
    pub addr: SocketAddr,
    /// The worker threads.
    pub threads: Threads,
    /// Connections over all threads.
    pub connections: usize,
    /// Buffer of a call.
    pub buffer_bytes: usize,
    /// Payloads are checked by their receiver.
    pub verify: bool,
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Ends after this long. **Unit** ns.
    pub duration_ns: Option<u64>,
}

impl Common {
    /// One thread, one connection, default everything.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            threads: Threads::default(),
            connections: 1,
            buffer_bytes: 128 << 10,
            verify: false,
            socket: SocketOptions::default(),
            duration_ns: None,
        }
    }
}

/// What a stream is asked for.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// What is common to all clients.
    pub common: Common,
    /// Which direction it goes.
    pub direction: StreamDirection,
    /// How the sender hands bytes over, on either side.
    pub send: SendMethod,
    /// How this side takes bytes.
    pub receive: ReceiveMethod,
    /// Payload per second over all connections, by an absolute schedule. **Unit** bits.
    pub bitrate_bps: Option<u64>,
}

impl StreamOptions {
    /// One connection to the server, as fast as possible.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            common: Common::new(addr),
            direction: StreamDirection::Send,
            send: SendMethod::Copy,
            receive: ReceiveMethod::Read,
            bitrate_bps: None,
        }
    }
}

/// What transactions are asked for.
#[derive(Clone, Debug)]
pub struct TransactionOptions {
    /// What is common to all clients.
    pub common: Common,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// Transactions per second over all connections, by an absolute schedule.
    pub rate_tps: Option<u64>,
    /// Which side closes a connection of one transaction.
    pub close_by: CloseBy,
}

impl TransactionOptions {
    /// One connection, one byte in each direction, as fast as responses arrive.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            common: Common::new(addr),
            request_bytes: 1,
            response_bytes: 1,
            rate_tps: None,
            close_by: CloseBy::Server,
        }
    }
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
