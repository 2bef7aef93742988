//! The programs of several hosts of a side as one: started together, stopped together, their results added.
//!
//! A rate of the scenario is that of all senders together, each of which has its share. Everything else holds for each.

mod http;
pub(super) mod lines;
mod tcp;
mod udp;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxpath_core::Warning;
use rxpath_load::limit::{Limit, Who};
use rxpath_load::quantiles::Quantiles;
use rxpath_record::run::hlog;
use rxpath_stats::Histogram;
use serde_json::Value;

use super::line::Line;
use super::peer::Peer;
use super::program::Program;
use super::result::WorkloadResult;
use super::runner::{SideMeasurements, side};
use crate::error::LabError;
use crate::scenario::spec::{LoadOptions, Own};

/// The options of one of several senders.
pub fn share(own: &Own<LoadOptions>, index: usize, count: usize) -> Own<LoadOptions> {
    let part = |total: u64| {
        let (index, count) = (index as u64, count as u64);
        (total / count + u64::from(index < total % count)).max(1)
    };
    let mut own = own.clone();
    own.options.rate = own.options.rate.map(part);
    own.options.bitrate = own.options.bitrate.map(part);
    own
}

/// The programs of several hosts.
pub struct Several {
    programs: Vec<(String, Program)>,
    results: Vec<WorkloadResult>,
    histograms: Vec<(String, String)>,
}

impl Several {
    /// Of each host its program, each set up alike.
    pub fn new(programs: Vec<(String, Program)>) -> Self {
        Self { programs, results: Vec::new(), histograms: Vec::new() }
    }

    /// Does this with each, and names the host of the first that fails.
    fn each<T>(
        &mut self,
        mut work: impl FnMut(&mut Program) -> Result<T, LabError>,
    ) -> Result<Vec<T>, LabError> {
        let named = |host: &String, error: LabError| match error {
            error @ (LabError::Died { .. } | LabError::Silent { .. }) => {
                LabError::OnHost { host: host.clone(), text: error.to_string() }
            }
            other => other,
        };
        self.programs
            .iter_mut()
            .map(|(host, program)| work(program).map_err(|error| named(host, error)))
            .collect()
    }
}

impl Peer for Several {
    fn wait_ready(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), LabError> {
        self.each(|program| Program::wait_ready(program, limit, stop)).map(drop)
    }

    fn start(&mut self, at_ns: u64) -> Result<(), LabError> {
        self.each(|program| Program::start(program, at_ns)).map(drop)
    }

    fn check_alive(&mut self, phase: &'static str) -> Result<(), LabError> {
        self.each(|program| Program::check_alive(program, phase)).map(drop)
    }

    fn begin_stop(&mut self) -> Result<(), LabError> {
        self.each(Peer::begin_stop).map(drop)
    }

    fn stop(&mut self, limit: Duration, stop: &AtomicBool) -> Result<WorkloadResult, LabError> {
        self.begin_stop()?;
        self.results = self.each(|program| Peer::stop(program, limit, stop))?;
        let times = Times::of(self.programs.iter().flat_map(|(_, program)| &program.histograms));
        self.histograms = times.encoded();
        Ok(together(&self.results, &times))
    }

    fn close(self: Box<Self>) -> Result<Vec<Warning>, LabError> {
        let mut warnings = Vec::new();
        for (host, program) in self.programs {
            let said = Box::new(program).close()?.into_iter();
            warnings.extend(
                said.map(|warning| Warning {
                    text: format!("{host}: {}", warning.text),
                    ..warning
                }),
            );
        }
        Ok(warnings)
    }

    fn threads(&self) -> Vec<(u32, Vec<i32>)> {
        self.programs.iter().map(|(_, program)| (program.pid, program.tids.clone())).collect()
    }

    fn parts(&mut self) -> Vec<(String, SideMeasurements)> {
        let results = std::mem::take(&mut self.results).into_iter();
        let parts = self.programs.iter().zip(results);
        parts
            .map(|((host, program), result)| (host.clone(), side(program, result, Vec::new())))
            .collect()
    }

    /// Those of the first: ids of several hosts do not go together.
    fn ids(&self) -> (u32, &[i32]) {
        self.programs.first().map_or((0, &[]), |(_, program)| (program.pid, &program.tids))
    }

    fn intervals(&self) -> Vec<Line> {
        let each: Vec<Vec<Line>> =
            self.programs.iter().map(|(_, program)| program.intervals()).collect();
        lines::together(&each)
    }

    /// Those of the first.
    fn settings(&self) -> &Value {
        self.programs.first().map_or(&Value::Null, |(_, program)| &program.settings)
    }

    fn histograms(&self) -> &[(String, String)] {
        &self.histograms
    }
}

/// The times of all programs by name.
struct Times(BTreeMap<String, Histogram>);

impl Times {
    /// From name and HdrHistogram V2 in base64; one that cannot be read is missing, and a warning of its part says so.
    fn of<'a>(told: impl Iterator<Item = &'a (String, String)>) -> Self {
        let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
        for (name, hdr_v2_base64) in told {
            if let Ok(part) = hlog::decoded(hdr_v2_base64) {
                // Equal bounds always fit.
                let _ = all.entry(name.clone()).or_insert_with(Histogram::of_times).merge(&part);
            }
        }
        Self(all)
    }

    fn quantiles(&self, name: &str) -> Option<Quantiles> {
        self.0.get(name).and_then(Quantiles::of)
    }

    fn encoded(&self) -> Vec<(String, String)> {
        let one =
            |(name, times): (&String, &Histogram)| Some((name.clone(), hlog::encoded(times)?));
        self.0.iter().filter_map(one).collect()
    }
}

/// The results of programs of one protocol as the result of one.
fn together(results: &[WorkloadResult], times: &Times) -> WorkloadResult {
    macro_rules! parts {
        ($variant:ident) => {
            results
                .iter()
                .filter_map(|result| match result {
                    WorkloadResult::$variant(part) => Some(part),
                    _ => None,
                })
                .collect::<Vec<_>>()
        };
    }
    match results.first() {
        Some(WorkloadResult::UdpLoad(_)) => WorkloadResult::UdpLoad(udp::load(&parts!(UdpLoad))),
        Some(WorkloadResult::UdpServe(_)) => {
            WorkloadResult::UdpServe(udp::serve(&parts!(UdpServe), times))
        }
        Some(WorkloadResult::Stream(_)) => WorkloadResult::Stream(tcp::stream(&parts!(Stream))),
        Some(WorkloadResult::Transactions(_)) => {
            WorkloadResult::Transactions(tcp::transactions(&parts!(Transactions), times))
        }
        Some(WorkloadResult::HttpLoad(_)) => {
            WorkloadResult::HttpLoad(http::load(&parts!(HttpLoad), times))
        }
        _ => WorkloadResult::None,
    }
}

/// The limit that the first program names which did not keep its schedule; else that of the first.
fn limit<'a>(mut all: impl Iterator<Item = &'a Limit> + Clone) -> Limit {
    let first = all.clone().next();
    all.find(|limit| limit.who != Who::Schedule).or(first).cloned().unwrap_or_default()
}

/// Counts by name, added.
fn added<'a>(all: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (name, count) in all.flatten() {
        *sum.entry(name.clone()).or_insert(0) += count;
    }
    sum
}

/// The sum, where each part has a value.
fn whole<T: std::iter::Sum>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
    all.by_ref().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    #[test]
    fn a_rate_is_shared_without_a_rest() {
        let rates = |load: &str| -> Vec<Option<u64>> {
            let file = parse(&format!("question = \"q\"\n[load]\n{load}"), "t", "t").unwrap();
            let resolved = resolve(&file, &[], &HostShape::flat(2)).unwrap();
            let own = resolved.variants[0].load.own().unwrap();
            (0..3).map(|index| share(own, index, 3).options.rate).collect()
        };
        assert_eq!(rates("rate = 10"), [Some(4), Some(3), Some(3)]);
        assert_eq!(rates(""), [None; 3]);
    }

    #[test]
    fn one_program_that_fell_behind_is_the_limit_of_all() {
        let named = |who| Limit { who, evidence: String::new() };
        let all = [named(Who::Schedule), named(Who::Sender), named(Who::Path)];
        assert_eq!(limit(all.iter()).who, Who::Sender);
        assert_eq!(limit(all[..1].iter()).who, Who::Schedule);
    }

    #[test]
    fn times_of_several_are_those_of_one_histogram() {
        let told = |ns: u64| {
            let mut times = Histogram::of_times();
            times.record_n(ns, 50);
            ("service_time".to_owned(), hlog::encoded(&times).unwrap())
        };
        let times = Times::of([told(1_000), told(9_000_000)].iter());
        let all = times.quantiles("service_time").unwrap();
        assert_eq!(all.samples_count, 100);
        assert!(all.p50 < 2.0 && all.p90 > 8_000.0, "{all:?}");
    }
}
