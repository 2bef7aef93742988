//! A stage and its outliers, and how the rows of the program are read.

use rxpath_core::Log2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bytes::Fields;

/// Of each latency: sixteen in a power of two, `STEP_BITS` and `BUCKETS` of the program.
const BUCKETS: usize = 592;
const STEP_BITS: u32 = 4;

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
}

/// One stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Which.
    pub stage: StageName,
    /// Latencies measured.
    pub latencies_count: u64,
    /// Packets that became ready while packets were traced, but whose receive time is unknown. For `receive-to-socket`
    /// only.
    #[serde(default)]
    pub untimed_count: u64,
    /// Followed packets that were still unread when this was read: no latency includes them. For `socket-to-read` only.
    #[serde(default)]
    pub unread_count: u64,
    /// How long the oldest of these has waited.
    #[serde(default)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
}

/// `struct cpu_row`.
pub(super) fn add_row(stages: &mut [Stage; 2], sums: &mut [u64; 2], value: &[u8]) {
    let mut f = Fields::of(value);
    let [_received, untimed] = f.array::<2>();
    stages[0].untimed_count += untimed;
    let (counts, totals, longest) = (f.array::<2>(), f.array::<2>(), f.array::<2>());
    for (at, stage) in stages.iter_mut().enumerate() {
        stage.latencies_count += counts[at];
        sums[at] += totals[at];
        stage.max_ns = stage.max_ns.max(longest[at]);
        stage.latency_ns.add(&Log2::with_steps(&f.array::<BUCKETS>(), STEP_BITS));
    }
}

/// `struct cpu_row`: samples that did not fit.
pub(super) fn lost(value: &[u8]) -> u64 {
    let mut f = Fields::of(value);
    f.skip(9536);
    f.u64()
}

/// `struct sample_key` and `struct sample`.
pub(super) fn outlier(key: &[u8], value: &[u8]) -> (usize, Outlier) {
    let mut k = Fields::of(key);
    let (stage, _bucket, protocol, port) = (k.u32(), k.u32(), k.u32(), k.u32());
    let mut f = Fields::of(value);
    let (t_ns, latency_ns, cpu, pid) = (f.u64(), f.u64(), f.u32(), f.u32());
    let (ifindex, netns, comm) = (f.u32(), f.u32(), f.text(16));
    let task = format!("{comm} ({pid})");
    (
        stage as usize,
        Outlier { t_ns, latency_ns, cpu, protocol, port: port as u16, ifindex, netns, task },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_cpus_are_added() {
        let numbers: Vec<u8> = (1..=1193u64).flat_map(u64::to_ne_bytes).collect();
        let mut stages = [Stage::default(), Stage::default()];
        let mut sums = [0; 2];
        add_row(&mut stages, &mut sums, &numbers);
        add_row(&mut stages, &mut sums, &numbers);
        assert_eq!((stages[0].latencies_count, stages[1].latencies_count), (6, 8));
        assert_eq!((sums, stages[1].max_ns), ([10, 12], 8));
        assert_eq!(stages[0].latency_ns.count(), 2 * (9..601).sum::<u64>());
        assert_eq!((stages[0].untimed_count, lost(&numbers)), (4, 1193));
    }
}
