//! Which side was the limit, as far as one side can know it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::usage::ThreadUsage;

/// A thread this busy has no time left.
pub const BUSY_RATIO: f64 = 0.95;

/// A thread or socket with this many times the mean is an imbalance.
const IMBALANCE_RATIO: f64 = 1.5;
/// Below this many datagrams or requests a share says nothing.
const IMBALANCE_LEAST: u64 = 1000;

/// What limited the rate, with the evidence of this side alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Who it was.
    pub who: Who,
    /// The numbers behind it, as a sentence.
    pub evidence: String,
}

/// Who limited the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// The sending threads had no CPU time left.
    Sender,
    /// The receiving threads had no CPU time left.
    Receiver,
    /// The serving threads had no CPU time left: those that answer requests or transactions.
    Server,
    /// The send buffer was full: limited by what comes after it (qdisc, device, a receive path charged to the sender).
    Path,
    /// The sender's own send buffer was too small for the path.
    SendBuffer,
    /// Loss, or a congestion window that the path's round trip used up.
    Network,
    /// The sender kept its schedule.
    Schedule,
    /// Not this side: the other side is not visible from here.
    #[default]
    NotHere,
}

impl Limit {
    /// Who it was, with the numbers behind it.
    pub(crate) fn new(who: Who, evidence: impl Into<String>) -> Self {
        Self { who, evidence: evidence.into() }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = match self.who {
            Who::Sender => "the sender was the limit",
            Who::Receiver => "the receiver was the limit",
            Who::Server => "the server was the limit",
            Who::Path => "the path after the send buffer was the limit",
            Who::SendBuffer => "the sender's buffer was the limit",
            Who::Network => "the network was the limit",
            Who::Schedule => "the schedule was the limit",
            Who::NotHere => "the limit was not on this side",
        };
        write!(f, "{who}: {}", self.evidence)
    }
}

/// Where a thread ran: `CPU 1`, `CPUs 0,1` or its id when it was never seen.
fn place(thread: &ThreadUsage) -> String {
    let cpus: Vec<String> = thread.seen_cpus.iter().map(u32::to_string).collect();
    match cpus.len() {
        0 => format!("thread {}", thread.tid),
        1 => format!("CPU {}", cpus[0]),
        _ => format!("thread {} on CPUs {}", thread.tid, cpus.join(",")),
    }
}

/// Busy share of a thread over its working time.
pub fn busy_ratio(thread: &ThreadUsage, duration_s: f64) -> f64 {
    if duration_s > 0.0 { (thread.cpu_s() / duration_s).min(1.0) } else { 0.0 }
}

/// The texts of the first four threads, and how many more there are.
pub(crate) fn first_four<T>(threads: &[T], text: impl Fn(&T) -> String) -> String {
    let mut parts: Vec<String> = threads.iter().take(4).map(text).collect();
    if threads.len() > 4 {
        parts.push(format!("{} more threads", threads.len() - 4));
    }
    parts.join(", ")
}

/// `CPU 0 100 % busy, CPU 1 37 % busy`, at most four threads.
pub fn busy_text(threads: &[impl AsRef<ThreadUsage>], duration_s: f64) -> String {
    first_four(threads, |thread| {
        let busy = 100.0 * busy_ratio(thread.as_ref(), duration_s);
        format!("{} {busy:.0} % busy", place(thread.as_ref()))
    })
}

/// The most, the least and the mean of what several threads or sockets got of `total`, where they are out of balance.
pub(crate) fn uneven(counts: &[u64], total: u64) -> Option<(u64, u64, f64)> {
    let (most, least) = (*counts.iter().max()?, *counts.iter().min()?);
    let mean = total as f64 / counts.len() as f64;
    let is_uneven = most >= IMBALANCE_LEAST && most as f64 >= mean * IMBALANCE_RATIO;
    (counts.len() > 1 && is_uneven).then_some((most, least, mean))
}

/// Whether any thread had no time left.
pub fn any_busy(threads: &[impl AsRef<ThreadUsage>], duration_s: f64) -> bool {
    threads.iter().any(|thread| busy_ratio(thread.as_ref(), duration_s) >= BUSY_RATIO)
}
