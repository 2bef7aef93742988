//! `manifest.json`: the request, the run, the results, and the checksums of the data files.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rxpath_core::ntp::NtpState;
use rxpath_core::number::si;
use rxpath_core::{Nanos, PathSide, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::Capacity;
pub use crate::comparison::{Comparison, NoiseFloor, Outcome};
use crate::counters::Moved;
use crate::evidence::WindowEvidence;
pub use crate::grade::Grade;
use crate::hosts::{ClockDrift, ControlPath, HostTrial, PairPackets, PairRate, PathOffset};
use crate::ledger::Ledger;
use crate::prediction::Prediction;
use crate::stolen::StolenCpuTime;
use crate::traced::Traced;
use crate::verdict::{Agreement, DiagnosisVerdict};

/// The whole manifest. Written at the start with `status: running`, replaced (by rename) after each trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// `rxpath/run/1.0`.
    pub schema: String,
    /// Directory name of the run.
    pub run_id: String,
    /// How far the run got.
    pub status: Status,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Version of rxpath.
    pub version: String,
    /// Scenario name.
    pub scenario: String,
    /// The question the scenario answers.
    pub question: String,
    /// The outcome expected before the run, as text.
    pub expected: Option<String>,
    /// The scenario with every default and `--set` filled in.
    pub resolved: serde_json::Value,
    /// Seed of the order and of the bootstrap.
    pub seed: u64,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC; `None` while running or when killed.
    pub ended: Option<String>,
    /// Unix time minus `CLOCK_MONOTONIC`.
    pub epoch_offset_ns: i64,
    /// The main metric of the scenario.
    #[serde(default = "delivered_pps")]
    pub main_metric: String,
    /// The variants in the scenario's order.
    pub variants: Vec<VariantSummary>,
    /// Every trial in the order of running, void ones too.
    pub trials: Vec<Trial>,
    /// Pairwise differences that the scenario asks about.
    pub comparisons: Vec<Comparison>,
    /// The A/A difference: the difference between two equal variants.
    pub noise_floor: Option<NoiseFloor>,
    /// The highest rate that holds, if it was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// The model's prediction for each variant, if there was a calibration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// The real hosts between which it ran, by their aliases; none if it ran on one machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostPart>,
    /// Headline of the run, one or two sentences.
    pub headline: String,
    /// What to know before trusting it.
    pub warnings: Vec<Warning>,
    /// Data files, relative to the run directory, with their SHA-256. `report.html` is not listed.
    pub files: BTreeMap<String, String>,
}

/// A real host's part in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostPart {
    /// What it does.
    pub side: PathSide,
    /// Its device towards the other host.
    pub device: String,
    /// The device's driver, or the kind of a virtual device; empty if neither is known.
    pub driver: String,
    /// **Unit** bytes.
    pub mtu_bytes: u32,
    /// Online CPUs.
    pub cpus_count: u32,
    /// How far its `CLOCK_MONOTONIC` was ahead of the coordinator's when the run began. **Unit** ns.
    pub clock_ahead_ns: i64,
    /// How far the comparison of its clock with the coordinator's may be wrong, when the run began.
    pub clock_error_ns: u64,
    /// When it was compared, of the coordinator's clock; `None` in runs of versions that did not keep it. **Unit** ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_at_ns: Option<u64>,
    /// The shortest round trip over the control connection.
    pub round_trip_ns: u64,
    /// Whether the experiment had a network namespace of its own there: only then are the counters its own.
    pub has_own_namespace: bool,
    /// Speed of the device; `None` if the driver does not report it. **Unit** Mb/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_mbps: Option<u32>,
    /// Hops that packets to the other side may take: with 1 no router lies between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops_at_most: Option<u8>,
    /// What its kernel said of the discipline of its clock, when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp: Option<NtpState>,
    /// Hosts with the same number have one clock; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
    /// How much faster its clock ran than the coordinator's, if the run came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<ClockDrift>,
    /// By which device ssh came; `None` without ssh, if the experiment had a network namespace of its own, and if it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_path: Option<ControlPath>,
    /// Of a sender: how far its clock was ahead of each receiver's when the run ended, by the alias of the receiver. None for
    /// loads of TCP, where both have one clock, and where the path shows nothing: the warning `no-path-clock` says why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub path_clocks: BTreeMap<String, PathOffset>,
    /// Of a sender: the receivers that it sent to, if the inventory chose them. None where each sender sent to each receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends_to: Vec<String>,
}

impl HostPart {
    /// A host on this side, of which nothing else is known.
    pub fn of(side: PathSide) -> Self {
        Self { side, ..Self::default() }
    }

    /// Whether this sender sent to a receiver.
    pub fn is_paired_with(&self, receiver: &str) -> bool {
        self.sends_to.is_empty() || self.sends_to.iter().any(|to| to == receiver)
    }

    /// What it does and how well its clock is known: `sends by eth0 (igb, 1Gb/s), MTU 1500, 8 CPUs; control round
    /// trip 38us, clock known to +-18us`.
    pub fn text(&self) -> String {
        let does = if self.side == PathSide::Tx { "sends" } else { "receives" };
        let speed = self.speed();
        let card = [self.driver.as_str(), speed.as_str()];
        let card: Vec<&str> = card.into_iter().filter(|it| !it.is_empty()).collect();
        let card = match card.as_slice() {
            [] => String::new(),
            known => format!(" ({})", known.join(", ")),
        };
        let shared =
            if self.has_own_namespace { "" } else { "; its counters hold other traffic too" };
        let over = |control: &ControlPath| format!("{},", control.text());
        let control = self.control_path.as_ref().map_or_else(|| "control".to_owned(), over);
        format!(
            "{does} by {}{card}, MTU {}, {} CPUs; {control} round trip {}, clock known to +-{}{shared}",
            self.device,
            self.mtu_bytes,
            self.cpus_count,
            Nanos(self.round_trip_ns),
            Nanos(self.clock_error_ns)
        )
    }

    /// Speed of its device: `25Gb/s`; empty if the driver does not report it.
    pub fn speed(&self) -> String {
        let words = |mbps| format!("{}b/s", si(f64::from(mbps) * 1e6));
        self.device_mbps.map_or_else(String::new, words)
    }
}

/// The main metric of runs that were written before there was another.
fn delivered_pps() -> String {
    "delivered_pps".into()
}

impl Manifest {
    /// Trials of a variant that its figures are made of, in the order of running: those that are not void, and not of
    /// the A/A block, which holds one variant only and runs first. Where nothing else was run, the A/A trials count.
    pub fn counted<'a>(&'a self, variant: &str) -> Vec<&'a Trial> {
        let valid = |trial: &&Trial| trial.variant == variant && trial.void.is_none();
        let (first, later): (Vec<&Trial>, Vec<&Trial>) =
            self.trials.iter().filter(valid).partition(|trial| trial.block == 0);
        if later.is_empty() { first } else { later }
    }

    /// A/A trials that the medians of a variant have and its sums ([`Self::counted`]) do not: in runs of earlier versions.
    pub fn aa_in_medians(&self, variant: &str) -> usize {
        let valid = |trial: &&Trial| trial.variant == variant && trial.void.is_none();
        let all = self.trials.iter().filter(valid).count();
        let in_medians = self.summary(variant).map_or(0, |it| it.trials_count as usize);
        if in_medians == all { all - self.counted(variant).len() } else { 0 }
    }

    /// How many of so many trials the medians of its variants are made of, in words behind their number: ` (10 of them in
    /// medians)`; empty where all are, and where a manifest was salvaged without its variants. Ledgers close over all trials.
    pub fn in_medians(&self, trials: usize) -> String {
        let counted: usize = self.variants.iter().map(|it| it.trials_count as usize).sum();
        if self.variants.is_empty() || counted >= trials {
            return String::new();
        }
        format!(" ({counted} of them in medians)")
    }

    /// The variant of this name.
    pub fn summary(&self, variant: &str) -> Option<&VariantSummary> {
        self.variants.iter().find(|summary| summary.name == variant)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not ended, or killed.
    #[default]
    Running,
    /// All that was planned.
    Complete,
    /// Stopped by a signal; the results so far are valid.
    Interrupted,
    /// Stopped by an error; the results so far are valid.
    Failed,
}

/// One variant over all its valid trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSummary {
    /// Name.
    pub name: String,
    /// What it changes, in one line.
    pub what: String,
    /// The settings in which it differs from the scenario's base.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Why this host cannot run it; then it has no trials.
    pub not_available: Option<String>,
    /// Valid trials.
    pub trials_count: u32,
    /// Metrics by name: `delivered_pps`, `offered_pps`, `loss_ratio`, `receiver_cpu_ns_per_packet`.
    pub metrics: BTreeMap<String, Metric>,
    /// The diagnosis that most of its trials have.
    pub verdict: Option<DiagnosisVerdict>,
    /// Quantiles of the times of its trials together, where its load times requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled_quantiles: Vec<PooledQuantile>,
    /// How many trials have it; runs of older versions have none: there the median trial spoke for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

impl VariantSummary {
    /// The median of this metric over its trials, where they have it.
    pub fn median(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).map(|metric| metric.median)
    }
}

/// A quantile of the times of all counted trials of a variant together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PooledQuantile {
    /// The timed quantity: `response_time`, or `service_time` of a load without a schedule.
    pub name: String,
    /// Which: 0.99.
    pub quantile: f64,
    /// Its value.
    pub value_us: f64,
    /// Its 95 % interval by the hierarchical bootstrap over trials and slices of 100 ms; `None` under five trials.
    pub interval_us: Option<[f64; 2]>,
    /// Times in the windows of these trials.
    pub samples_count: u64,
    /// Trials.
    pub trials_count: u32,
}

/// One metric of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Median over trials.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// 95 % interval of the median; `None` under five trials.
    pub interval: Option<[f64; 2]>,
    /// One value per valid trial, in the order of running.
    pub values: Vec<f64>,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Index in the order of running, from 0. Text and reports count from 1.
    pub trial: u32,
    /// Block, from 0.
    pub block: u32,
    /// Variant name.
    pub variant: String,
    /// Why it does not count, if it does not.
    pub void: Option<String>,
    /// `open` while the sender's socket never blocked, `closed` otherwise.
    pub loop_kind: LoopKind,
    /// Noise grade A to D.
    pub grade: Grade,
    /// The basis of the grade, as text with numbers.
    pub noise: Vec<String>,
    /// Start and end of the measured window.
    pub window_ns: [i64; 2],
    /// Where every datagram went.
    pub ledger: Ledger,
    /// All counters that changed over the whole trial.
    pub moved: Moved,
    /// The input of the diagnosis; of several receivers, that of the one that limits the trial.
    pub evidence: WindowEvidence,
    /// What it said.
    pub verdict: Option<DiagnosisVerdict>,
    /// Metrics of the window by name.
    pub metrics: BTreeMap<String, f64>,
    /// The result objects of the workloads, as they printed them: `serve`, `load`, or an external command's.
    pub workloads: BTreeMap<String, serde_json::Value>,
    /// CPU of each flow's receive softirq, if it can be determined: with RPS and unconnected senders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_cpus: Vec<FlowCpu>,
    /// The CPU time that networking took in the window, if observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<StolenCpuTime>,
    /// The receive side in the window, if traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<Traced>,
    /// What each host did alone, between real hosts; by alias.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostTrial>,
    /// What each sender sent to each receiver, if there are several of either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairPackets>,
    /// The same over TCP and HTTP: what each sender got done with each receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pair_rates: Vec<PairRate>,
    /// Warnings of the workloads and of the trial.
    pub warnings: Vec<Warning>,
}

impl Trial {
    /// Its number for people, who count from 1.
    pub fn number(&self) -> u64 {
        u64::from(self.trial) + 1
    }

    /// Datagrams per second of the window that all hosts together offered and delivered. The evidence may be that of one of
    /// several receivers.
    pub fn rates_pps(&self) -> [f64; 2] {
        let own = [
            ("offered_pps", self.evidence.offered_pps),
            ("delivered_pps", self.evidence.delivered_pps),
        ];
        own.map(|(name, of_evidence)| self.metrics.get(name).copied().unwrap_or(of_evidence))
    }
}

/// Where the receive softirq of one flow runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowCpu {
    /// The sender's address and port.
    pub from: SocketAddr,
    /// The receiver's.
    pub to: SocketAddr,
    /// The CPU (`SO_INCOMING_CPU` of a connected receiver); `None` when the probe did not arrive.
    pub cpu: Option<u32>,
}

/// Whether the sender's schedule was its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoopKind {
    /// Nothing that the receiver did slowed the sender.
    #[default]
    Open,
    /// The sender's socket blocked: the path set the pace.
    Closed,
}
