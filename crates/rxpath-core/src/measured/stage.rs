//! How long packets take from one stage to the next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Log2;

/// From where to where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageName {
    /// From netif_receive_skb to sk_data_ready, in one poll of one CPU: protocol processing. Where the driver delivers
    /// a list, processing of the packets before it in the list is included.
    #[default]
    ReceiveToSocket,
    /// From sk_data_ready to the end of the read that took the packet (for a datagram it can be one read short). Where
    /// more than 16 packets wait in a socket, a sample is followed: at least one in each quarter of the queue.
    SocketToRead,
}

impl StageName {
    /// As JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::ReceiveToSocket => "receive-to-socket",
            Self::SocketToRead => "socket-to-read",
        }
    }

    /// As tables have it.
    pub fn title(self) -> &'static str {
        match self {
            Self::ReceiveToSocket => "receive path entry to socket",
            Self::SocketToRead => "socket to its read",
        }
    }
}

/// Latencies from one stage to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StageTimes {
    /// Which.
    pub stage: StageName,
    /// Latencies measured.
    pub latencies_count: u64,
    /// Packets that became ready while packets were traced, but whose receive time is unknown. For `receive-to-socket`
    /// only.
    pub untimed_count: u64,
    /// Followed packets that were still unread when this was read: no latency includes them. For `socket-to-read` only.
    pub unread_count: u64,
    /// How long the oldest of these has waited.
    pub longest_unread_ns: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// The largest.
    pub max_ns: u64,
    /// Their histogram, in ns.
    pub latency_ns: Log2,
    /// Outliers kept: the newest of each power of two from 0.1 ms up, for each protocol and port, longest first.
    pub outliers: Vec<Outlier>,
}

/// One latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Outlier {
    /// When it ended, CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// How long it was.
    pub latency_ns: u64,
    /// CPU on which it ended.
    pub cpu: u32,
    /// Protocol of the socket.
    pub protocol: u32,
    /// Local port.
    pub port: u16,
    /// Device through which the packet came.
    pub ifindex: u32,
    /// Inode of its network namespace.
    pub netns: u32,
    /// The task: the reader, or the interrupted task where the packet has not reached the socket.
    pub task: String,
    /// Its process; 0 in runs of earlier versions.
    pub pid: i32,
}
