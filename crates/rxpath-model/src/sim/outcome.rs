//! The results of a simulation: figures, and the ledger, evidence and time series in the form of a real run.

use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::Ledger;
use rxpath_record::samples::TrialSamples;
use rxpath_stats::{Buckets, Histogram};

use super::stage::{Fifo, Gauge};
use super::world::World;

pub use super::cpu::CpuSplit;
pub use super::figures::{Figures, LatencyQuantiles, StageFigures};

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
            batch_mean_packets: packets as f64 / tally.figures.polls_total.max(1) as f64,
            batches: batches.map(|(size, polls)| [size as u64, *polls]).collect(),
            resent_packets: resent,
            cpus: from.cpus.iter().zip(&to.cpus).map(|(from, to)| to.since(from)).collect(),
            window_ns: to.at - from.at,
            simulated_ns: self.now,
            ..tally.figures.clone()
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
