//! The results of a simulation: figures, and the ledger, evidence and time series in the form of a real run.

use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::Ledger;
use rxpath_record::samples::TrialSamples;
use rxpath_stats::{Buckets, Histogram};
use schemars::JsonSchema;
use serde::Serialize;

use super::stage::{Fifo, Gauge};
use super::world::World;

pub use super::cpu::CpuSplit;

mod evidence;
mod ledger;
mod samples;

/// A simulation that has ended.
#[derive(Clone, Debug)]
pub struct SimulationOutcome {
    /// The figures.
    pub figures: Figures,
    /// Where every packet went, by the counters a kernel would have.
    pub ledger: Ledger,
    /// The counters of the ledger.
    pub moved: rxpath_record::counters::Moved,
    /// What a diagnosis is given.
    pub evidence: WindowEvidence,
    /// Queues over time.
    pub samples: TrialSamples,
    /// Rates over time, as a run's events tell them.
    pub events: Vec<rxpath_record::event::RunEvent>,
    /// Start and end of the measured window.
    pub window_ns: [i64; 2],
    /// Times of the stages by name.
    pub histograms: Vec<(&'static str, Histogram)>,
}

/// One stage over the whole simulation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StageFigures {
    /// `ring`, `backlog`, `socket`.
    pub stage: &'static str,
    /// Packets dropped in front of it.
    pub dropped_packets: u64,
    /// Of them, in the measured window.
    pub window_dropped_packets: u64,
    /// Packets that left it.
    pub left_packets: u64,
    /// Most packets in one of its queues.
    pub most_packets: u64,
    /// Mean number of packets in all of its queues.
    pub mean_packets: f64,
    /// Mean time in it.
    pub mean_ns: f64,
}

/// Quantiles of a time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyQuantiles {
    /// From where to where.
    pub span: &'static str,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90 of 100 are below.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// The figures of a simulation. Rates are of the measured window, counts of the whole.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Offered in the window.
    pub offered_pps: f64,
    /// Delivered in the window.
    pub delivered_pps: f64,
    /// Lost of offered, over the whole.
    pub loss_ratio: f64,
    /// Stages in the order of the path.
    pub stages: Vec<StageFigures>,
    /// Packets that readers were working on at the end.
    pub in_hand_packets: u64,
    /// Interrupts of the NIC.
    pub interrupts_total: u64,
    /// Interrupts between CPUs.
    pub ipis_total: u64,
    /// Softirq passes.
    pub passes_total: u64,
    /// NAPI polls.
    pub polls_total: u64,
    /// Packets per poll.
    pub batch_mean_packets: f64,
    /// Polls by the packets that they took: `[packets, polls]`, empty sizes left out; 1024 stands for more, too.
    pub batches: Vec<[u64; 2]>,
    /// `time_squeeze` of softnet_stat.
    pub time_squeeze_total: u64,
    /// Softirqs that ended with ksoftirqd woken.
    pub ksoftirqd_wakeups_total: u64,
    /// Times that a reader slept.
    pub sleeps_total: u64,
    /// Softirq time spent on packets that were dropped later.
    pub wasted_ns: u64,
    /// Segments sent again (`tcp`).
    pub resent_packets: u64,
    /// CPU time of the window.
    pub cpus: Vec<CpuSplit>,
    /// Times.
    pub times: Vec<LatencyQuantiles>,
    /// Length of the measured window.
    pub window_ns: u64,
    /// Until the last packet was read or given up.
    pub simulated_ns: u64,
}

impl World<'_> {
    pub(super) fn outcome(mut self) -> SimulationOutcome {
        let resent = self.source.stream().map_or(0, |stream| stream.resent);
        let mut figures = self.figures(resent);
        let (ledger, moved) = self.ledger();
        let evidence = self.evidence(&ledger);
        let window_ns =
            [0, 1].map(|end| self.tally.marks.get(end).map_or(0, |mark| mark.at as i64));
        let (samples, events) = (self.trial_samples(), self.events());
        let tally = self.tally;
        let times = [tally.ring_times, tally.backlog_times, tally.socket_times, tally.total_times];
        let times = SPANS.into_iter().zip(times.map(Buckets::into_histogram));
        let mut histograms = Vec::new();
        for ((name, span), times) in times.filter(|(_, times)| times.count() > 0) {
            figures.times.push(quantiles(span, &times));
            histograms.push((name, times));
        }
        SimulationOutcome {
            figures,
            ledger,
            moved,
            evidence,
            samples,
            events,
            window_ns,
            histograms,
        }
    }

    fn figures(&self, resent: u64) -> Figures {
        let tally = &self.tally;
        let (from, to) = self.window();
        let seconds = (to.at - from.at) as f64 / 1e9;
        let rate = |before: u64, after: u64| (after - before) as f64 / seconds;
        let batches = tally.batches.iter().enumerate().filter(|(_, polls)| **polls > 0);
        let packets: u64 = tally.batches.iter().zip(0..).map(|(polls, n)| polls * n).sum();
        Figures {
            offered_pps: rate(from.offered, to.offered),
            delivered_pps: rate(from.delivered, to.delivered),
            loss_ratio: tally.lost as f64 / tally.offered.max(1) as f64,
            stages: self.stages(),
            in_hand_packets: self.in_hand(),
            interrupts_total: tally.irqs,
            ipis_total: tally.ipis,
            passes_total: tally.passes,
            polls_total: tally.polls,
            batch_mean_packets: packets as f64 / tally.polls.max(1) as f64,
            batches: batches.map(|(size, polls)| [size as u64, *polls]).collect(),
            time_squeeze_total: tally.squeezes,
            ksoftirqd_wakeups_total: tally.handed_over,
            sleeps_total: self.threads.iter().map(|thread| thread.sleeps).sum(),
            wasted_ns: tally.wasted_ns,
            resent_packets: resent,
            cpus: from.cpus.iter().zip(&to.cpus).map(|(from, to)| to.since(from)).collect(),
            times: Vec::new(),
            window_ns: to.at - from.at,
            simulated_ns: self.now,
        }
    }

    /// Both ends of the measured window; a simulation always reaches its duration.
    fn window(&self) -> (super::tally::Mark, super::tally::Mark) {
        let mut marks = self.tally.marks.iter().cloned();
        (marks.next().unwrap_or_default(), marks.next().unwrap_or_default())
    }

    fn stages(&self) -> Vec<StageFigures> {
        let now = self.now;
        let (from, to) = self.window();
        let drops = self.drops();
        let stage = |stage, at: usize, queues: &[&Fifo]| {
            let left: u64 = queues.iter().map(|queue| queue.left).sum();
            let spent: u128 = queues.iter().map(|queue| queue.spent_ns).sum();
            let gauges = || queues.iter().map(|queue| &queue.gauge);
            StageFigures {
                stage,
                dropped_packets: drops[at],
                window_dropped_packets: to.drops[at].saturating_sub(from.drops[at]),
                left_packets: left,
                most_packets: gauges().map(|gauge| gauge.most).max().unwrap_or(0),
                mean_packets: gauges().map(|gauge: &Gauge| gauge.mean(now)).sum(),
                mean_ns: spent as f64 / left.max(1) as f64,
            }
        };
        let rings: Vec<&Fifo> = self.queues.iter().map(|queue| &queue.ring).collect();
        let sockets: Vec<&Fifo> = self.sockets.iter().map(|socket| &socket.queue).collect();
        let mut all = vec![stage("ring", 0, &rings)];
        if !self.p.rps_cpus.is_empty() {
            let backlogs: Vec<&Fifo> = self.cpus.iter().map(|cpu| &cpu.backlog).collect();
            all.push(stage("backlog", 1, &backlogs));
        }
        all.push(stage("socket", 2, &sockets));
        all
    }
}

/// Names of the times' histograms, and from where to where they go.
const SPANS: [(&str, &str); 4] = [
    ("ring", "from the NIC to the end of its packet in the poll"),
    ("backlog", "from the RPS backlog to the end of its packet in the poll"),
    ("socket", "from the socket's queue until the reader has finished"),
    ("total", "from the NIC until the reader has finished"),
];

fn quantiles(span: &'static str, times: &Histogram) -> LatencyQuantiles {
    LatencyQuantiles {
        span,
        mean_ns: times.mean_ns(),
        p50_ns: times.quantile_ns(0.5),
        p90_ns: times.quantile_ns(0.9),
        p99_ns: times.quantile_ns(0.99),
        p999_ns: times.quantile_ns(0.999),
        max_ns: times.max_ns(),
    }
}
