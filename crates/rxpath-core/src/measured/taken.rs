//! Who took a task's time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Polls of one NAPI in a task's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TakenBy {
    /// Device; `backlog` for the per-CPU backlog (RPS, loopback, devices without NAPI).
    pub dev: String,
    /// Device index in its namespace; 0 for the backlog.
    pub ifindex: u32,
    /// Inode of its network namespace; 0 for the backlog.
    pub netns: u32,
    /// NAPI instance; 0 for the backlog.
    pub napi_id: u32,
    /// Receive queue that it serves, for devices of this network namespace where the kernel reports it (6.8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Time of the polls, without the hard interrupts in them.
    pub net_s: f64,
    /// Polls.
    pub polls_count: u64,
    /// Packets.
    pub packets: u64,
}
