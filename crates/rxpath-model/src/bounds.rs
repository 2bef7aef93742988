//! Fluid bounds: capacities, drops, buffers and times of each stage of the path.
//!
//! Every answer is one sentence with its numbers, formula and assumptions. A bound is given when its parameters are
//! known; for the others the missing parameters are named.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_core::number::{self, span as seconds};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Number, Value};

pub mod parameters;

mod calibrated;
mod coalescing;
mod livelock;
mod passes;
mod ring;
mod rss;
mod socket;
mod stall;
mod tcp;
mod total;

pub use parameters::Parameters;

use crate::sim::ParameterError;

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bound {
    /// The answer in words.
    pub sentence: String,
    /// Where the numbers come from.
    pub formula: String,
    /// When they hold.
    pub assumes: String,
    /// The numbers; each key ends in its unit.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}

/// A bound that was not computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingBound {
    /// Its name.
    pub bound: String,
    /// The parameters without which it says nothing.
    pub needs: Vec<String>,
}

/// All answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FluidBounds {
    /// By name, in the order of the path.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "BTreeMap<String, Bound>")]
    pub bounds: Vec<(&'static str, Bound)>,
    /// What more parameters would answer.
    pub not_computed: Vec<MissingBound>,
}

fn by_name<S: Serializer>(all: &[(&'static str, Bound)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(all.iter().map(|(name, bound)| (name, bound)))
}

impl FluidBounds {
    /// A number of a bound, where both are there.
    pub fn value(&self, bound: &str, key: &str) -> Option<&Value> {
        self.bounds.iter().find(|(name, _)| *name == bound)?.1.values.get(key)
    }

    /// The bounds that were not computed, each with what it needs.
    pub fn missing(&self) -> String {
        let each =
            self.not_computed.iter().map(|it| format!("{} ({})", it.bound, it.needs.join(", ")));
        each.collect::<Vec<_>>().join("; ")
    }

    /// What is estimated, and where a fluid model is wrong.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let is_estimated =
            self.value("socket_capacity", "truesize_estimated").and_then(Value::as_bool);
        if is_estimated == Some(true) {
            warnings.push(
                Warning::new("truesize-estimated", "the kernel memory per datagram is an estimate")
                    .because("it depends on the driver and on GRO")
                    .cure("measure it with rxpath serve udp and set it with --truesize"),
            );
        }
        let load = self.value("socket", "load_ratio").and_then(Value::as_f64);
        if load.is_some_and(|load| (0.8..1.0).contains(&load)) {
            warnings.push(
                Warning::new(
                    "fluid-near-knee",
                    "the fluid model underestimates queues at loads from 0.8 to 1",
                )
                .cure("use the result for random arrivals, or measure"),
            );
        }
        warnings
    }
}

/// One way to bound: its name, the parameters that must be there, and the arithmetic.
type Law = (&'static str, &'static [&'static str], fn(&Parameters) -> Option<Bound>);

/// In the order of the path.
const LAWS: &[Law] = &[
    ("coalescing", &["arrival_rate", "rx_usecs", "packet_ns"], coalescing::compute),
    ("ring_capacity", &["packet_ns", "arrival_rate"], ring::capacity),
    ("ring_size", &["arrival_rate", "starvation"], ring::size),
    ("ring_burst", &["arrival_rate", "burst", "packet_ns"], ring::burst),
    ("softirq_passes", &["napis"], passes::compute),
    ("rps_backlog", &["arrival_rate", "backlog_packet_ns"], ring::backlog),
    ("rss", &["flows", "queues"], rss::compute),
    ("socket_capacity", &["truesize or size"], socket::capacity),
    ("socket", &["arrival_rate", "service_ns", "truesize or size"], socket::compute),
    ("stall", &["arrival_rate", "stall", "truesize or size"], stall::compute),
    ("livelock", &["arrival_rate", "packet_ns", "service_ns"], livelock::compute),
    ("total", &["arrival_rate", "service_ns"], total::compute),
    ("tcp_window", &["window", "rtt"], tcp::compute),
];

/// Computes every bound for which the parameters suffice.
pub fn bounds(parameters: &Parameters) -> Result<FluidBounds, ParameterError> {
    parameters.check()?;
    let mut out = FluidBounds { bounds: Vec::new(), not_computed: Vec::new() };
    for (name, needs, compute) in LAWS {
        // One of several may do: `truesize or size`.
        let lacks = |name: &&&str| !name.split(" or ").any(|one| parameters.has(one));
        let needs: Vec<String> = needs.iter().filter(lacks).map(ToString::to_string).collect();
        match compute(parameters) {
            Some(bound) if needs.is_empty() => out.bounds.push((*name, bound)),
            _ => out.not_computed.push(MissingBound { bound: (*name).into(), needs }),
        }
    }
    Ok(out)
}

impl Bound {
    /// One whose sentence is still to be said.
    fn new(formula: &str, assumes: &str) -> Self {
        let (formula, assumes) = (formula.into(), assumes.into());
        Self { sentence: String::new(), formula, assumes, values: Map::new() }
    }

    /// Adds a number; one without a finite value is left out, and the sentence says why.
    fn with(mut self, key: &str, value: f64) -> Self {
        if let Some(number) = Number::from_f64(value) {
            self.values.insert(key.into(), number.into());
        }
        self
    }

    /// Adds a count or a flag.
    fn value(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.values.insert(key.into(), value.into());
        self
    }
}

/// A fraction in percent, as sentences say it.
fn percent(fraction: f64) -> String {
    let is_small = fraction > 0.0 && fraction < 0.001;
    if is_small { "less than 0.1 %".into() } else { number::percent(fraction, 1) }
}

/// Up to a whole number, unless it is one but for the rounding of its factors.
fn whole_up(value: f64) -> f64 {
    (value * (1.0 - 1e-12)).ceil()
}

#[cfg(test)]
mod tests;
