//! Polls of a NAPI.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Log2;

/// One NAPI instance on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NapiPolls {
    /// Device; `backlog` for the per-CPU backlog (RPS, loopback, devices without NAPI).
    pub dev: String,
    /// Device index in its namespace; 0 for the backlog.
    pub ifindex: u32,
    /// Inode of its network namespace; 0 for the backlog.
    pub netns: u32,
    /// NAPI id; 0 for the backlog.
    pub napi_id: u32,
    /// Receive queue that it serves; none where the kernel does not report it: before 6.8, in another network
    /// namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// CPU on which it was polled.
    pub cpu: u32,
    /// Polls.
    pub polls_count: u64,
    /// Packets.
    pub packets: u64,
    /// Polls that used up their budget.
    pub exhausted_count: u64,
    /// Time of the polls in softirqs, hard interrupts in them included. Polls in threads and busy polls have no time.
    pub poll_ns: u64,
    /// Packets of a poll.
    pub packets_per_poll: Log2,
}
