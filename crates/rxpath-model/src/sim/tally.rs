//! State that a simulation counts while it runs: counters, histograms, marks of the measured window, samples.

use rxpath_stats::{Buckets, Histogram};

use super::cpu::CpuSplit;
use super::figures::Figures;
use super::parameters::Parameters;
use super::thread::ThreadTime;

/// The counters.
#[derive(Debug)]
pub(super) struct Tally {
    pub offered: u64,
    pub delivered: u64,
    pub lost: u64,
    /// Those that are given as they are; the others are added at the end.
    pub figures: Figures,
    /// Polls by the packets that they took.
    pub batches: Vec<u64>,
    /// From the NIC to the end of its packet in the poll.
    pub ring_times: Buckets,
    /// In the RPS backlog.
    pub backlog_times: Buckets,
    /// From the socket's queue until the reader is done with it.
    pub socket_times: Buckets,
    /// From the NIC until the reader is done with it.
    pub total_times: Buckets,
    pub marks: Vec<Mark>,
    pub samples: Samples,
    /// Costs with the reader's share in them.
    pub reader_packet_ns: u64,
    pub call_ns: u64,
    pub sleep_ns: u64,
}

/// Everything at one end of the measured window.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    pub at: u64,
    pub offered: u64,
    pub delivered: u64,
    /// Dropped in front of ring, backlog and socket.
    pub drops: [u64; 3],
    /// Since the start.
    pub cpus: Vec<CpuSplit>,
    pub threads: Vec<ThreadTime>,
}

/// Time series, one row each time.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub t: Vec<u64>,
    pub offered: Vec<u64>,
    pub delivered: Vec<u64>,
    pub ring: Vec<u64>,
    pub backlog: Vec<u64>,
    pub unread: Vec<u64>,
    /// Of each socket.
    pub rmem: Vec<Vec<u64>>,
    pub drops: Vec<Vec<u64>>,
    /// Time of each reader on a CPU.
    pub running: Vec<Vec<u64>>,
}

/// The longest batch with its own bucket.
const LONGEST_BATCH: usize = 1024;

impl Tally {
    pub(super) fn new(p: &Parameters) -> Self {
        let stretched = |ns: u64| (ns as f64 / p.share).round() as u64;
        let rows = |n: usize| vec![Vec::new(); n];
        Self {
            offered: 0,
            delivered: 0,
            lost: 0,
            figures: Figures::default(),
            batches: vec![0; LONGEST_BATCH + 1],
            ring_times: times(p),
            backlog_times: times(p),
            socket_times: times(p),
            total_times: times(p),
            marks: Vec::with_capacity(2),
            samples: Samples {
                rmem: rows(p.sockets),
                drops: rows(p.sockets),
                running: rows(p.readers),
                ..Samples::default()
            },
            reader_packet_ns: stretched(p.reader_packet_ns),
            call_ns: stretched(p.call_ns),
            sleep_ns: stretched(p.sleep_ns),
        }
    }

    #[inline]
    pub(super) fn polled(&mut self, packets: u64) {
        self.figures.polls_total += 1;
        self.batches[(packets as usize).min(LONGEST_BATCH)] += 1;
    }
}

/// Counts of times up to a minute, or longer where a simulation's stalls need it.
fn times(p: &Parameters) -> Buckets {
    let longest = (p.duration + p.drain).clamp(60_000_000_000, 10_000_000_000_000);
    Buckets::of(Histogram::up_to(longest).unwrap_or_else(|_| Histogram::of_times()))
}
