//! Requested and effective settings of a server.

use std::net::SocketAddr;

use clap::Args;
use rxpath_core::{Bytes, Fact, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::address;
pub use crate::http::Engine;
use crate::pool::Threads;
use crate::tcp::socket::BufferOptions;
pub use crate::udp::serve::options::{BusyPoll, Sockets};
use crate::values::{milliseconds, nanoseconds, number, size};

/// When epoll reports a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum Trigger {
    /// Once for new data (`EPOLLET`): epoll does not check the connection again after each read.
    #[default]
    Edge,
    /// As long as there is data.
    Level,
}

/// What is asked for: the options of `rxpath serve http`.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Address to listen on: IP:PORT, [v6]:PORT, [v6%IF]:PORT or HOST:PORT; port 0 lets the kernel choose
    #[allow(rustdoc::broken_intra_doc_links)] // `[v6]` is no link.
    #[arg(value_parser = address)]
    pub addr: SocketAddr,
    /// The worker threads.
    #[command(flatten)]
    pub threads: Threads,
    /// How the threads do their I/O (default: uring where the kernel allows it; epoll with --trigger, --epoll-timeout or
    /// busy polling)
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Most events per wait
    #[arg(long, value_name = "N", default_value = "1000")]
    pub events: usize,
    /// When epoll reports a connection (default: edge)
    #[arg(long, value_enum)]
    pub trigger: Option<Trigger>,
    /// How threads share listeners
    #[arg(long, value_enum, default_value = "shared")]
    pub sockets: Sockets,
    /// Longest wait in milliseconds (or with a unit: 10ms); 0 = busy polling: the threads never sleep (default: 1000)
    #[arg(long = "epoll-timeout", value_name = "MS", value_parser = milliseconds)]
    pub timeout_ms: Option<u16>,
    /// Busy polling of the sockets and of the epoll sets.
    #[command(flatten)]
    pub busy_poll: Option<BusyPoll>,
    /// Buffers of the connections.
    #[command(flatten)]
    pub buffers: BufferOptions,
    /// Simulated CPU work per request in nanoseconds (or with a unit: 2us)
    #[arg(long = "work", value_name = "NS", value_parser = nanoseconds, default_value = "0")]
    #[arg(hide_default_value = true)]
    pub work_ns: u64,
    /// Body of the reply; the default gives a reply of 151 bytes in total
    #[arg(long = "body", value_name = "BYTES", default_value = "70", value_parser = number::<Bytes>)]
    pub body_bytes: u64,
    /// Longest request head; a longer one is answered with 431
    #[arg(long = "max-request", value_name = "BYTES", default_value = "16KiB", value_parser = size)]
    pub max_request_bytes: usize,
    /// Longest request body; a longer one is answered with 413
    #[arg(long = "max-body", value_name = "BYTES", default_value = "1GiB", value_parser = number::<Bytes>)]
    pub max_body_bytes: u64,
    /// Most connections at a time (default: as many as there are file descriptors, up to a million)
    #[arg(long, value_name = "N")]
    pub max_connections: Option<u64>,
    /// Close a connection after this long without a request, or if a request stays incomplete; 0s = never
    #[arg(long = "idle-timeout", value_name = "TIME", default_value = "60s", value_parser = number::<Nanos>)]
    pub idle_timeout_ns: u64,
    /// Connections that can wait to be accepted (net.core.somaxconn caps it)
    #[arg(long, value_name = "N", default_value = "4096")]
    pub backlog: u32,
}

impl ServeOptions {
    /// How the threads do their I/O: what is asked for, or can do what is asked for, or is the best of this host.
    pub fn engine(&self) -> Engine {
        let is_about_epoll =
            self.trigger.is_some() || self.timeout_ms.is_some() || self.busy_poll.is_some();
        let engine = || if is_about_epoll { Engine::Epoll } else { Engine::of_host() };
        self.engine.unwrap_or_else(engine)
    }

    /// The longest wait.
    pub fn timeout_ms(&self) -> u16 {
        self.timeout_ms.unwrap_or(1000)
    }
}

/// Busy polling as it is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyPollSettings {
    /// On the sockets: `SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL`, `SO_BUSY_POLL_BUDGET`, inherited by connections.
    pub socket: BusyPoll,
    /// On the objects that threads wait on: `EPIOCSPARAMS` of each epoll set, read back, or `IORING_REGISTER_NAPI`.
    pub waits: Fact<BusyPoll>,
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeSettings {
    /// Bound address.
    pub addr: SocketAddr,
    /// Threads.
    #[serde(flatten)]
    pub threads: Threads,
    /// Epoll or io_uring.
    pub engine: Engine,
    /// Most events of one wait.
    pub events: usize,
    /// Edge or level; `None` for io_uring.
    pub trigger: Option<Trigger>,
    /// How threads share listeners.
    pub sockets: Sockets,
    /// Longest wait; 0 = the threads never sleep.
    pub timeout_ms: u16,
    /// Busy polling.
    pub busy_poll: Option<BusyPollSettings>,
    /// Requested `sk_rcvbuf`.
    pub rcvbuf_asked_bytes: Option<u64>,
    /// `sk_rcvbuf` of the listeners, the initial value of connections.
    pub rcvbuf_bytes: u64,
    /// Requested `sk_sndbuf`.
    pub sndbuf_asked_bytes: Option<u64>,
    /// `sk_sndbuf` of the listeners.
    pub sndbuf_bytes: u64,
    /// Simulated work per request.
    pub work_ns: u64,
    /// Bytes of the reply's body.
    pub body_bytes: u64,
    /// TCP payload of a whole reply to GET over a connection that stays open.
    pub reply_bytes: u64,
    /// Longest head of a request.
    pub max_request_bytes: usize,
    /// Longest body of a request.
    pub max_body_bytes: u64,
    /// Most connections at a time.
    pub max_connections_count: u64,
    /// `RLIMIT_NOFILE`, raised to the hard limit.
    pub descriptors_limit_count: u64,
    /// A connection is closed after this long without a request; 0 = never.
    pub idle_timeout_ns: u64,
    /// Requested backlog (net.core.somaxconn caps it).
    pub backlog: u32,
}
