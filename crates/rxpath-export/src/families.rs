//! The metrics: one row each, and their values.

use std::collections::BTreeMap;

use prometheus::core::Collector;
use prometheus::{CounterVec, GaugeVec, Opts, Registry, TextEncoder};
use rxpath_record::watch::{PortName, VictimName};

use crate::failures::Failures;
use crate::histogram::{Histograms, PACKETS, SECONDS};
use crate::top::{Top, Turn};

/// Whether a metric can fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It never falls while the process lives.
    Counter,
    /// It is what it is now.
    Gauge,
    /// Counts by bucket, none of which falls.
    Histogram,
}

/// A metric that is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportedMetric {
    /// Its name; ends with its unit, and with `_total` for a counter.
    pub name: &'static str,
    /// Whether it can fall.
    pub kind: MetricKind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it is, and where it comes from.
    pub what: &'static str,
}

macro_rules! metrics {
    ($($name:ident = $kind:ident $text:literal $labels:expr, $what:literal;)*) => {
        $(pub(crate) const $name: &str = $text;)*
        /// Every metric of the exporter.
        pub const METRICS: &[ExportedMetric] =
            &[$(ExportedMetric {
                name: $text,
                kind: MetricKind::$kind,
                labels: &$labels,
                what: $what,
            }),*];
    };
}

#[rustfmt::skip]
metrics! {
    BUILD = Gauge "rxpath_build_info" ["version", "revision"], "1; the version of this program, and the hash of its sources that rxpath --version shows";
    WINDOWS = Counter "rxpath_window_seconds_total" [], "time that the other counters are about";
    COUNTED = Gauge "rxpath_counted_ratio" ["probe"], "share of the last window that these probes counted; their values are scaled to the whole window";
    OBSERVED = Counter "rxpath_observed_seconds_total" ["probe"], "time in which these probes counted, window by window; a sample that stands for a later window too counts once";
    PROBE_UP = Gauge "rxpath_probe_up" [], "1 while the BPF probes run, 0 with counters alone";
    NOT_LOADED = Gauge "rxpath_probe_not_loaded" ["what", "needs"], "1 for what is not measured because a probe did not load at the start; it is not tried again. needs = restart (memory was short, the kernel was busy, or another exporter measures), privilege, kernel (its version or configuration, a container, or this build)";
    NOT_READ = Gauge "rxpath_not_read" ["what"], "1 for each thing that could not be read in the last window; its series are missing or do not grow";
    AGENT_CPU = Counter "rxpath_agent_cpu_seconds_total" ["part"], "CPU time of this program: user = its threads, bpf = its BPF programs, bpf_entry = the entries of these, an estimate";
    BUDGET = Gauge "rxpath_agent_budget_ratio" [], "CPU time that this program may take with its BPF programs, in CPUs: 0.01 is a hundredth of one CPU";
    COST = Gauge "rxpath_agent_cost_ratio" [], "CPU time that it took in the last five minutes, in CPUs";
    SHED = Gauge "rxpath_agent_shed" ["what"], "1 for what it leaves out now to keep the budget";
    DEEP_LOOKS = Counter "rxpath_agent_deep_looks_total" ["result"], "losses above the thresholds of the rules that got a deep look (made), or none: the loss was over before the budget had room (budget), the lists of sockets cost too much or the look failed (failed). A deep look is a diagnosis of three seconds that samples sockets and threads more closely than a window does";
    AGENT_MEMORY = Gauge "rxpath_agent_memory_bytes" ["kind"], "memory of this program: rss, and the maps of its BPF programs (bpf_maps), those of deep looks as large as at the end of the last one";
    STARTED = Gauge "rxpath_agent_start_time_seconds" [], "Unix time when this program began to count; all counters were 0 then";
    COLLECT_ERRORS = Counter "rxpath_collect_errors_total" ["source"], "pages that could not be written (textfile), connections that ended without an answer and requests that are not HTTP (http); windows in which a reader failed that had worked before: counters (files in /proc/net, energy), devices, sockets, queues, tasks, probes";
    DISCARDED = Counter "rxpath_windows_discarded_total" ["why"], "windows that do not count, or not whole: late = more than three times as long as planned, cpu = a CPU went offline in it";
    LIMITED_SERIES = Counter "rxpath_series_limited_total" ["family"], "times that a program, victim, device, reason or finding was due for a series of its own and found no place";
    AGENT_LOST = Counter "rxpath_agent_lost_total" ["probe"], "records that found no room in the maps of a probe: slices, polls and flows (account), polls (polls), packets (drops, stages)";
    PASSED = Counter "rxpath_stage_passed_total" ["stage", "unit"], "what passed a stage: packets, or datagrams read. irq, gro and backlog are those of all network namespaces, which the kernel counts by CPU; the others of this one";
    LOST = Counter "rxpath_lost_packets_total" ["stage", "place"], "packets lost in this network namespace, at the place backlog in all network namespaces, each at one place of the ledger; each place lies in one stage. Places that this host can count are there from the start. rxpath explain PLACE says more";
    STAGE_CPU = Counter "rxpath_stage_cpu_seconds_total" ["stage"], "CPU time spent in a stage, all CPUs together";
    DROPPED = Counter "rxpath_dropped_packets_total" ["reason", "protocol", "netns"], "packets dropped, by the kernel's reason (skb:kfree_skb) or by the counter of the place; netns is host for this network namespace";
    SOFTIRQ_CPU = Counter "rxpath_softirq_cpu_seconds_total" ["vector"], "CPU time in network softirqs, all CPUs together, whatever they interrupt: vector = net_rx (with the polls of NAPI threads), net_tx (net_tx_action)";
    BUSIEST = Gauge "rxpath_softirq_busiest_cpu_ratio" [], "share of the last window that the CPU with the most NET_RX time spent in NET_RX and the polls of NAPI threads";
    BUSIEST_CPU = Gauge "rxpath_softirq_busiest_cpu" [], "the number of that CPU";
    SATURATED = Gauge "rxpath_softirq_saturated_cpus" [], "CPUs that spent more than 90 % of the last window in NET_RX and the polls of NAPI threads";
    SQUEEZED = Counter "rxpath_softirq_squeezed_total" [], "NET_RX runs that ended with work left (softnet_stat time_squeeze)";
    STOLEN = Counter "rxpath_task_cpu_stolen_seconds_total" ["task", "by"], "CPU time taken from a program while it was on a CPU, by network (softirqs), by irq_entry (entry and exit of all interrupts, estimated) or by other (interrupts between entry and exit, other softirqs, the hypervisor)";
    VICTIM_STOLEN = Counter "rxpath_cpu_stolen_seconds_total" ["victim_kind", "victim", "by"], "the same CPU time by the unit, pod, container, user or control group that it was taken from; by = hardirq (interrupts between their tracepoints), irq_entry (their entry and exit, estimated), network (softirqs), softirq (other softirqs), hypervisor";
    IRQ_ENTRY = Gauge "rxpath_irq_entry_estimated_seconds" ["source"], "entry and exit of one interrupt, on which by=irq_entry rests: an estimate, the mean over all interrupts of the last sample, each at the rate of its CPU. source = packets or interrupts (measured when this program started, with packets, or with interrupts that do nothing, which is wrong by 20 % or more), given (--irq-entry)";
    DEVICE_STOLEN = Counter "rxpath_device_cpu_stolen_seconds_total" ["device"], "of the part that network softirqs took: by the device that was polled; other has also the time between polls";
    FLOW_STOLEN = Counter "rxpath_flow_cpu_stolen_seconds_total" ["protocol", "port"], "the same part, divided by the packets that sockets got: by protocol and local port, ephemeral for ports in net.ipv4.ip_local_port_range, also where a service listens there; other has what reached no socket. An estimate";
    DEFERRED = Counter "rxpath_cpu_deferred_seconds_total" ["kind"], "CPU time of networking in threads of its own, taken from nobody: ksoftirqd, napi (NAPI threads)";
    POLLS = Histogram "rxpath_poll_packets" ["device"], "packets of a poll, of the polls that were counted; a full poll of 64 is in the bucket above 63";
    LATENCY_P50 = Gauge "rxpath_stage_latency_p50_seconds" ["stage"], "median latency between two stages in the last window, upper end of a power-of-two bucket";
    LATENCY_P99 = Gauge "rxpath_stage_latency_p99_seconds" ["stage"], "99th percentile of the same";
    LATENCY = Histogram "rxpath_stage_latency_seconds" ["stage"], "latency between two stages, of the packets that were measured";
    LATENCIES = Counter "rxpath_stage_latencies_total" ["stage"], "latencies measured";
    LIMITED = Gauge "rxpath_path_limited" ["stage"], "1 for the stage that limited reception in the last window, by the rules of rxpath diagnose";
    LIMITED_S = Counter "rxpath_path_limited_seconds_total" ["stage"], "time in which this stage was the verdict";
    LIMITED_SURE_S = Counter "rxpath_path_limited_confident_seconds_total" ["stage"], "of that time: with fair or strong confidence";
    CONFIDENCE = Gauge "rxpath_path_verdict_confidence" [], "confidence of that verdict: 1 weak, 2 fair, 3 strong";
    VERDICT_AT = Gauge "rxpath_path_verdict_timestamp_seconds" [], "Unix time of that verdict: the end of its window";
    FINDINGS = Gauge "rxpath_check_findings" ["severity"], "findings of the last check of settings";
    FINDING = Gauge "rxpath_check_finding_info" ["rule", "severity", "object"], "1 for each finding; rxpath explain RULE says more";
    UNJUDGED = Gauge "rxpath_check_unjudged" ["why"], "rules that the last check could not judge: their source is not-there, not-told by kernel or driver, unreadable, or needs privilege";
    TUNED = Gauge "rxpath_tune_settings" ["state"], "changes by rxpath tune that are not undone, by what rxpath tune verify says of them: holds, as-left (as the kernel made it), drifted, ...; unread counts journals too";
    CHECKED_AT = Gauge "rxpath_check_timestamp_seconds" [], "Unix time of the last check";
    FINGERPRINT = Gauge "rxpath_config_fingerprint" [], "the first 48 bits of the fingerprint of this host's settings: hosts with the same number are set alike";
}

/// Series that a page may have.
pub const MOST_SERIES: usize = 600;
/// Programs and as many victims that have series of their own, unless told otherwise.
pub const TOP: usize = 16;
/// With more of them a page would have more than [`MOST_SERIES`].
pub const MOST_TOP: usize = 22;
/// A program more has three series, a victim more five. So many drop reasons and so many findings lose theirs for these.
const GIVEN_UP: usize = 4;
/// Reasons of drops with a series of their own.
const REASONS: usize = 48;
/// Findings with a series of their own; their number by severity has all.
pub(crate) const FINDINGS_MOST: usize = 40;
/// Devices with a series of their own.
const DEVICES: usize = 8;

/// Ports with a series of their own.
const PORTS: usize = 16;

/// The values of all metrics.
#[derive(Debug)]
pub struct Families {
    registry: Registry,
    counters: BTreeMap<&'static str, CounterVec>,
    gauges: BTreeMap<&'static str, GaugeVec>,
    pub(crate) histograms: BTreeMap<&'static str, Histograms>,
    pub(crate) reasons: Top<[String; 3]>,
    pub(crate) tasks: Top<String>,
    pub(crate) victims: Top<VictimName>,
    pub(crate) devices: Top<String>,
    pub(crate) polled: Top<String>,
    pub(crate) ports: Top<PortName>,
    /// Findings with a series of their own.
    pub(crate) findings_most: usize,
    pub(crate) lost_before: BTreeMap<&'static str, u64>,
    pub(crate) own_cpu_before_s: f64,
    /// Memory of the maps of the probes of windows.
    pub(crate) frame_map_bytes: u64,
    pub(crate) http_errors_before: u64,
    pub(crate) failures: Failures,
    /// In the last window a CPU was offline.
    pub(crate) lacked_cpu: bool,
    /// Inode of the network namespace that is `host`.
    pub(crate) netns: u32,
}

impl Families {
    /// All metrics, of this build of the program and this network namespace. The build is `VERSION-HASH`.
    ///
    /// # Errors
    /// When two metrics have one name, which a test rules out.
    pub fn new(build: &str, netns: u32) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let (mut counters, mut gauges) = (BTreeMap::new(), BTreeMap::new());
        let mut histograms = BTreeMap::new();
        for metric in METRICS {
            let opts = Opts::new(metric.name, metric.what);
            let collector: Box<dyn Collector> = match metric.kind {
                MetricKind::Counter => {
                    let made = CounterVec::new(opts, metric.labels)?;
                    counters.insert(metric.name, made.clone());
                    Box::new(made)
                }
                MetricKind::Histogram => {
                    let label = metric.labels.first().copied().unwrap_or_default();
                    let scale = if metric.name == POLLS { PACKETS } else { SECONDS };
                    let made = Histograms::new((metric.name, metric.what), label, scale)?;
                    histograms.insert(metric.name, made.clone());
                    Box::new(made)
                }
                MetricKind::Gauge => {
                    let made = GaugeVec::new(opts, metric.labels)?;
                    gauges.insert(metric.name, made.clone());
                    Box::new(made)
                }
            };
            registry.register(collector)?;
        }
        let families = Self {
            registry,
            counters,
            gauges,
            histograms,
            reasons: Top::new(REASONS),
            tasks: Top::new(TOP),
            victims: Top::new(TOP),
            devices: Top::new(DEVICES),
            polled: Top::new(DEVICES),
            ports: Top::new(PORTS),
            findings_most: FINDINGS_MOST,
            lost_before: BTreeMap::new(),
            own_cpu_before_s: 0.0,
            frame_map_bytes: 0,
            http_errors_before: 0,
            failures: Failures::default(),
            lacked_cpu: false,
            netns,
        };
        let (version, revision) = build.rsplit_once('-').unwrap_or((build, ""));
        families.set(BUILD, &[version, revision], 1.0);
        Ok(families)
    }

    /// Gives series of their own to so many programs and as many victims, [`MOST_TOP`] at most, before the first window.
    #[must_use]
    pub fn with_top(mut self, top: usize) -> Self {
        let top = top.min(MOST_TOP);
        let given_up = GIVEN_UP * top.saturating_sub(TOP);
        (self.tasks, self.victims) = (Top::new(top), Top::new(top));
        self.reasons = Top::new(REASONS - given_up);
        self.findings_most = FINDINGS_MOST - given_up;
        self
    }

    /// Adds to a counter. What is no number, or would make it fall, adds nothing; the series is there all the same.
    pub(crate) fn add(&self, name: &'static str, labels: &[&str], amount: f64) {
        let series =
            self.counters.get(name).map(|family| family.get_metric_with_label_values(labels));
        if let Some(Ok(series)) = series {
            series.inc_by(if amount.is_finite() { amount.max(0.0) } else { 0.0 });
        }
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, name: &'static str, labels: &[&str], value: f64) {
        let series =
            self.gauges.get(name).map(|family| family.get_metric_with_label_values(labels));
        if let Some(Ok(series)) = series {
            series.set(value);
        }
    }

    /// Forgets all series of a gauge.
    pub(crate) fn clear(&self, name: &'static str) {
        if let Some(family) = self.gauges.get(name) {
            family.reset();
        }
    }

    /// Removes a series of a counter, whose time goes to another one from now on.
    pub(crate) fn remove(&self, name: &'static str, labels: &[&str]) {
        if let Some(family) = self.counters.get(name) {
            // It was there: nothing else removes series.
            let _ = family.remove_label_values(labels);
        }
    }

    /// A window of the keys that have series of their own, each with these labels. The caller adds what the others had.
    pub(crate) fn own_series<K, const N: usize>(
        &self,
        name: &'static str,
        turn: &Turn<K>,
        labels: impl Fn(&K) -> [String; N],
    ) {
        self.add(LIMITED_SERIES, &[name], turn.refused.into());
        for key in &turn.removed {
            self.remove(name, &labels(key).each_ref().map(String::as_str));
        }
        let admitted = turn.admitted.iter().map(|key| (key, 0.0));
        let own = turn.own.iter().map(|(key, amount)| (key, *amount));
        for (key, amount) in admitted.chain(own) {
            self.add(name, &labels(key).each_ref().map(String::as_str), amount);
        }
    }

    /// The page, in Prometheus' text format 0.0.4.
    ///
    /// # Errors
    /// When a metric cannot be written, which its types rule out.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_kind_and_unit() {
        for metric in METRICS {
            let is_total = metric.name.ends_with("_total");
            assert_eq!(is_total, metric.kind == MetricKind::Counter, "{}", metric.name);
            assert!(metric.name.starts_with("rxpath_") && !metric.what.is_empty());
        }
        Families::new("1", 1).unwrap();
    }

    /// `softnet_stat` and the polls have no namespace.
    #[test]
    fn what_is_counted_by_cpu_is_said_to_be_of_all_namespaces() {
        for name in [PASSED, LOST] {
            let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
            let says = metric.what.contains("all network namespaces");
            assert!(says && metric.what.contains("backlog"), "{}", metric.what);
        }
    }

    #[test]
    fn a_build_is_its_version_and_its_revision() {
        for (build, labels) in [
            ("0.1.0-b5e1", "revision=\"b5e1\",version=\"0.1.0\""),
            ("1.0.0-rc.1-b5e1", "revision=\"b5e1\",version=\"1.0.0-rc.1\""),
            ("1", "revision=\"\",version=\"1\""),
        ] {
            let text = Families::new(build, 1).unwrap().text().unwrap();
            let line = format!("rxpath_build_info{{{labels}}} 1");
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }

    #[test]
    fn a_counter_does_not_fall() {
        let families = Families::new("1", 1).unwrap();
        for amount in [2.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            families.add(WINDOWS, &[], amount);
        }
        assert!(families.text().unwrap().contains("\nrxpath_window_seconds_total 2\n"));
    }
}
