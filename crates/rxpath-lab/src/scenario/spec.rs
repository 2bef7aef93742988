//! The resolved form of a scenario: what the runner is handed, with nothing left to interpret.
//!
//! A scenario file is a base and overlays. Resolving merges them per variant, replaces CPU roles by CPU
//! numbers of this host and marks the variants that this host cannot run.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::{CpuList, Nanos, Warning};
use rxpath_record::comparison::Published;
use serde::{Deserialize, Serialize, Serializer};

pub use super::forms::{Parser, Qdisc, Topology, WorkloadEngine};
pub use super::on_hosts::OnHosts;
pub use super::protocol::Protocol;
pub use super::sections::{Background, Lab, LoadOptions, Observe, Options, ServeOptions, Trials};
pub use super::tune::{Sets, Tune};

/// A scenario ready to run on this host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resolved {
    /// Name: the file's, without its directory and ending.
    pub name: String,
    /// The question it answers, one sentence.
    pub question: String,
    /// What is expected and why, one or two sentences.
    pub expected: Option<String>,
    /// The variants in the file's order; sweeps are expanded.
    pub variants: Vec<Variant>,
    /// Differences to be judged at the end.
    pub compare: Vec<Compare>,
    /// What is searched instead of compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// How trials are made and when to stop.
    pub trials: Trials,
    /// What the host's shape changed: fewer CPUs than requested, roles that share a CPU.
    pub warnings: Vec<Warning>,
}

impl Resolved {
    /// The variants that can run here.
    pub fn available(&self) -> impl Iterator<Item = &Variant> {
        self.variants.iter().filter(|variant| variant.not_available.is_none())
    }

    /// Leaves a variant out, and its comparisons.
    pub fn leave_out(&mut self, name: &str, why: &str) {
        for variant in self.variants.iter_mut().filter(|it| it.name == name) {
            variant.not_available = Some(why.to_owned());
        }
        self.compare.retain(|pair| pair.base != name && pair.variant != name);
    }
}

/// One variant, complete in itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variant {
    /// Name, unique in the scenario.
    pub name: String,
    /// What it changes, one line.
    pub what: String,
    /// Dotted keys in which it differs from the base, with its values.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Why this host cannot run it.
    pub not_available: Option<String>,
    /// Where the two sides live.
    pub topology: Topology,
    /// The lab around the workloads.
    pub lab: Lab,
    /// Settings of its namespaces and devices, or of hosts, by the names of `rxpath tune`.
    #[serde(skip_serializing_if = "Tune::is_empty")]
    pub tune: Tune,
    /// Keys of the lab's link that are settings of hosts in `tune`, because available variants differ in them.
    #[serde(skip)]
    pub link_keys: BTreeSet<String>,
    /// What runs alongside them.
    pub background: Background,
    /// The load starts at a whole multiple of this of `CLOCK_MONOTONIC`; zero = anywhere.
    pub start_multiple: Nanos,
    /// What is observed in addition to the counters.
    pub observe: Observe,
    /// The receiving side.
    pub serve: Workload<ServeOptions>,
    /// The sending side.
    pub load: Workload<LoadOptions>,
    /// The CPU lists of the two sides and of the background as they were written, with roles, by their keys: hosts differ.
    #[serde(skip)]
    pub written_cpus: BTreeMap<&'static str, String>,
}

impl Variant {
    /// What the two sides speak.
    pub fn protocol(&self) -> Protocol {
        self.load.protocol()
    }

    /// The metric that it is about: what its victim got, or that of its protocol.
    pub fn main_metric(&self) -> &'static str {
        if self.background.victim.is_some() {
            "victim_got_ratio"
        } else {
            self.protocol().main_metric()
        }
    }
}

impl Observe {
    /// The observers in BPF that are on: on which hosts each runs, as root, and its key. Those of receivers need just one.
    pub fn observers(&self) -> Vec<(OnHosts, &'static str)> {
        let Self { sample_interval: _, drops, steal, irq_entry: _, trace } = *self;
        let all = [
            (drops, OnHosts::All, "observe.drops"),
            (steal, OnHosts::Receivers, "observe.steal"),
            (trace, OnHosts::Receivers, "observe.trace"),
        ];
        all.into_iter().filter(|(is_on, ..)| *is_on).map(|(_, on, key)| (on, key)).collect()
    }
}

/// One side's program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", bound(serialize = "O: Options"))]
pub enum Workload<O> {
    /// `rxpath serve` or `rxpath load`; addresses are added by the runner.
    Own(Own<O>),
    /// Any other program.
    External(External),
}

/// A workload of this program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(bound(serialize = "O: Options"))]
pub struct Own<O> {
    /// What it speaks.
    pub protocol: Protocol,
    /// Its command-line options, without ADDR, `--control`, `--interval`.
    #[serde(serialize_with = "only_set")]
    pub options: O,
    /// Port.
    pub port: u16,
    /// Nothing listens (the server is not started).
    pub absent: bool,
    /// The form of its datagrams, with UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// The sender's rate as a share of the highest rate that holds; the run searches that first and then sets the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_ratio: Option<f64>,
    /// What must hold at that rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_slo: Option<String>,
}

fn only_set<O: Options, S: Serializer>(options: &O, to: S) -> Result<S::Ok, S::Error> {
    options.set().serialize(to)
}

/// The form of a UDP workload's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// Payload bytes of a datagram (load) or expected (serve: same value).
    pub size_bytes: u32,
    /// Datagrams per send (load with GSO), else 1.
    pub segments: u32,
    /// Whether the receiver reads GRO aggregates.
    pub gro: bool,
}

/// A third-party program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct External {
    /// What it speaks.
    pub protocol: Protocol,
    /// The command, word by word; `{addr}`, `{port}`, `{duration_s}`, `{dir}` are replaced.
    pub command: Vec<String>,
    /// Files that are written into a directory of the trial (`{dir}`) before it starts, name to text; the same words
    /// are replaced in them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// CPUs it is bound to.
    pub cpus: CpuList,
    /// How its output becomes numbers.
    pub parser: Parser,
    /// Line on its output that says that it is ready; `None` = ready when its port is bound.
    pub ready: Option<String>,
    /// Port that it uses.
    pub port: u16,
}

impl<O: Options> Workload<O> {
    /// What it speaks.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Own(own) => own.protocol,
            Self::External(external) => external.protocol,
        }
    }

    /// CPUs that it is bound to; empty = not bound.
    pub fn cpus(&self) -> &CpuList {
        match self {
            Self::Own(own) => own.options.cpus(),
            Self::External(external) => &external.cpus,
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Own(own) => own.port,
            Self::External(external) => external.port,
        }
    }

    /// Our own program, when it is one.
    pub fn own(&self) -> Option<&Own<O>> {
        match self {
            Self::Own(own) => Some(own),
            Self::External(_) => None,
        }
    }

    /// The form of our own program's datagrams.
    pub fn datagrams(&self) -> Option<&Datagrams> {
        self.own().and_then(|own| own.datagrams.as_ref())
    }

    /// The third-party program, when it is one.
    pub fn external(&self) -> Option<&External> {
        match self {
            Self::Own(_) => None,
            Self::External(external) => Some(external),
        }
    }

    /// Whether it is a third-party program.
    pub fn is_external(&self) -> bool {
        self.external().is_some()
    }

    /// Whether it is our own program, and started.
    pub fn is_own_running(&self) -> bool {
        self.own().is_some_and(|own| !own.absent)
    }
}

/// A search over settings of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Search {
    /// The variant to start from; without one the first that can run.
    pub variant: Option<String>,
    /// `max METRIC` or `min METRIC`; without one the main metric.
    pub objective: Option<String>,
    /// What must not become worse.
    pub guards: Vec<String>,
    /// Time for all trials.
    pub budget: Nanos,
    /// What is tried, in the order of the file.
    pub axes: Vec<SearchAxis>,
}

/// One thing that is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchAxis {
    /// The key, or the name of keys that only work together.
    pub name: String,
    /// Each of its values as the `KEY=VALUE`s that make it.
    pub values: Vec<Vec<String>>,
}

/// A difference to be judged: a `[[compare]]` of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// Metric name; empty here if a file leaves the key out: then it is the main one of the variants' protocol.
    #[serde(default)]
    pub metric: String,
    /// Base of the ratio; a file without one has the first variant.
    #[serde(default)]
    pub base: String,
    /// The variant compared with it.
    pub variant: String,
    /// `up`, `down` or `same`.
    pub expected: Option<String>,
    /// What others have published for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

impl Compare {
    /// A comparison of which nothing is expected.
    pub fn of(metric: &str, base: &str, variant: &str) -> Self {
        let [metric, base, variant] = [metric, base, variant].map(str::to_owned);
        Self { metric, base, variant, expected: None, published: None }
    }
}
