//! What a trial shows about TCP: counters, listeners, and the connections of each service.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SocketOwner, ThreadUse};

/// TCP's receive path over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpUse {
    /// Segments that arrived; an aggregate of GRO counts as one. **Source** `Tcp.InSegs`.
    pub received_segments: u64,
    /// Segments that were sent, those sent again not included. **Source** `Tcp.OutSegs`.
    pub sent_segments: u64,
    /// Counters that moved, by name (`TcpExt.ListenDrops`). **Source** `/proc/net/snmp`, `/proc/net/netstat`.
    pub counters: BTreeMap<String, u64>,
    /// Listening sockets that dropped connection requests or whose queue was full in a sample.
    pub listeners: Vec<Listener>,
    /// Services that received, held or lost something: the one with most full connections first.
    pub services: Vec<TcpService>,
    /// Connections that were open at the end.
    pub connections_count: u64,
    /// Why the connections are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// The connections of one listening port; or of this host's own connections those to one address and port.
///
/// **Source** `sock_diag`: `struct tcp_info` and `SK_MEMINFO` of each connection, sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpService {
    /// Address and port: of the listener, or of the far end.
    pub address: String,
    /// Whether this host connected to it.
    pub outgoing: bool,
    /// Processes that have its connections open, where they could be seen.
    pub owners: Vec<SocketOwner>,
    /// Connections that were seen in the window.
    pub connections_count: u64,
    /// Of these: connections whose receive queue left less than half of their window free, on average over the samples.
    pub full_count: u64,
    /// The connection with the fullest receive queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fullest: Option<TcpConnection>,
    /// Bytes that arrived in order in the window (`tcpi_bytes_received`).
    pub received_bytes: u64,
    /// Segments that arrived ahead of a gap (`tcpi_rcv_ooopack`).
    pub out_of_order_segments: u64,
    /// Segments that this host sent again (`tcpi_total_retrans`).
    pub retransmitted_segments: u64,
    /// Segments dropped at its connections (`sk_drops`).
    pub drops_count: u64,
    /// Threads of its processes that ran in the window.
    pub threads: Vec<ThreadUse>,
}

/// The receive queue of one connection over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpConnection {
    /// Own address and port.
    pub local: String,
    /// The far end's.
    pub remote: String,
    /// Limit of its receive buffer (`sk_rcvbuf`).
    pub rcvbuf_bytes: u64,
    /// Mean of the bytes that waited for the program (`Recv-Q`).
    pub unread_mean_bytes: f64,
    /// Most bytes that waited for the program.
    pub unread_max_bytes: u64,
    /// Mean share of the window that unread bytes took; of the buffer where the kernel does not report the window.
    pub filled_mean_ratio: f64,
    /// Samples taken in the window.
    pub samples: u64,
    /// Bytes that the program read in the window.
    pub read_bytes: u64,
}

/// A listening TCP socket.
///
/// **Source** `sock_diag`: `idiag_rqueue` and `idiag_wqueue` (net/ipv4/tcp_diag.c `tcp_diag_get_info`), `SK_MEMINFO_DROPS`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// Local address and port.
    pub local: String,
    /// Processes that have it open, where they could be seen.
    pub owners: Vec<SocketOwner>,
    /// Connections that waited to be accepted at the end.
    pub waiting_count: u32,
    /// Most that waited to be accepted in a sample.
    #[serde(default)]
    pub waiting_max_count: u32,
    /// The backlog that `listen` was given, `somaxconn` at most: one connection more may wait.
    pub backlog_count: u32,
    /// Connection requests that it dropped in the window (`sk_drops`).
    pub drops_count: u64,
}
