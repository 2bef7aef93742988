//! Requested and effective settings of a server.

use std::net::SocketAddr;

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::http::Engine;
use crate::pool::Threads;
pub use crate::udp::serve::options::{BusyPoll, Sockets};

/// Body size that makes a reply 151 bytes of TCP payload in total.
pub const DEFAULT_BODY_BYTES: u64 = 70;

/// When epoll reports a connection.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Once for new data (`EPOLLET`): epoll does not check the connection again after each read.
    #[default]
    Edge,
    /// As long as there is data.
    Level,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Address to listen on.
    pub addr: SocketAddr,
    /// The worker threads.
    pub threads: Threads,
    /// Epoll or io_uring.
    pub engine: Engine,
    /// Most events of one wait.
    pub events: usize,
    /// Edge or level.
    pub trigger: Trigger,
    /// One listener for all threads, or one each.
    pub sockets: Sockets,
    /// Longest wait; 0 = never sleep.
    pub timeout_ms: u16,
    /// Busy polling of the sockets and of the epoll sets.
    pub busy_poll: Option<BusyPoll>,
    /// `sk_rcvbuf` of the connections; `None` = the kernel's own tuning.
    pub rcvbuf: Option<u64>,
    /// `sk_sndbuf` of the connections; `None` = the kernel's own tuning.
    pub sndbuf: Option<u64>,
    /// Simulated work per request. **Unit** ns.
    pub work_ns: u64,
    /// Bytes of the reply's body.
    pub body_bytes: u64,
    /// Longest head of a request.
    pub max_request_bytes: usize,
    /// Longest body of a request.
    pub max_body_bytes: u64,
    /// Most connections; `None` = as many as there are descriptors.
    pub max_connections: Option<u64>,
    /// A connection is closed after this long without a request; 0 = never.
    pub idle_timeout_ns: u64,
    /// Backlog of the listeners.
    pub backlog: u32,
}

impl ServeOptions {
    /// One thread, edge-triggered epoll, the default reply.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            threads: Threads::default(),
            engine: Engine::Epoll,
            events: 1000,
            trigger: Trigger::Edge,
            sockets: Sockets::Shared,
            timeout_ms: 1000,
            busy_poll: None,
            rcvbuf: None,
            sndbuf: None,
            work_ns: 0,
            body_bytes: DEFAULT_BODY_BYTES,
            max_request_bytes: 16 * 1024,
            max_body_bytes: 1 << 30,
            max_connections: None,
            idle_timeout_ns: 60_000_000_000,
            backlog: 4096,
        }
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
