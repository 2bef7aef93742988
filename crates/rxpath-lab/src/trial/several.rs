//! The programs of several hosts of a side as one: started together, stopped together, their results added.
//!
//! A sender of datagrams has one program for all receivers. Over TCP it has one for each, and these are one in the same way.

/// The results of several programs as one, by what is done with a field: the sum, which is none where one has none, the sum of
/// each name, whether any says so, all that is listed. Fields that are made in another way stand behind.
macro_rules! as_one {
    ($of:ident of $parts:ident {
        sum: $($sum:ident)*;
        $(by_name: $($named:ident)*;)?
        $(any: $($any:ident)*;)?
        $(lists: $($list:ident)*;)?
    } { $($others:tt)* }) => {
        $of {
            duration_s: $parts.iter().map(|it| it.duration_s).fold(0.0, f64::max),
            cpu_user_s: $parts.iter().map(|it| it.cpu_user_s).sum(),
            cpu_system_s: $parts.iter().map(|it| it.cpu_system_s).sum(),
            threads: $parts.iter().flat_map(|it| it.threads.clone()).collect(),
            $($sum: $parts.iter().map(|it| it.$sum).sum(),)*
            $($($named: super::added($parts.iter().map(|it| &it.$named)),)*)?
            $($($any: $parts.iter().any(|it| it.$any),)*)?
            $($($list: $parts.iter().flat_map(|it| it.$list.clone()).collect(),)*)?
            $($others)*
        }
    };
}

mod http;
pub(super) mod lines;
mod shares;
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

pub use self::shares::{for_receiver, share};
use super::line::Line;
use super::peer::{Began, Peer};
use super::result::WorkloadResult;
use super::side::SideMeasurements;
use crate::error::LabError;

/// The programs of several hosts, set up alike, or those of one host.
pub struct Several {
    pub(super) programs: Vec<(String, Box<dyn Peer>)>,
    /// Whether each is several itself, whose names stand before what they say.
    pub(super) are_several: bool,
}

impl Several {
    /// Does this with each, and names the host of the first that fails.
    fn each<T>(
        &mut self,
        mut work: impl FnMut(&mut (dyn Peer + 'static)) -> Result<T, LabError>,
    ) -> Result<Vec<T>, LabError> {
        let named = |host: &String, error: LabError| match error {
            error @ (LabError::Died { .. } | LabError::Silent { .. }) => {
                LabError::on_host(host, error.to_string())
            }
            other => other,
        };
        self.programs
            .iter_mut()
            .map(|(host, program)| work(program.as_mut()).map_err(|error| named(host, error)))
            .collect()
    }
}

impl Peer for Several {
    fn wait_ready(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), LabError> {
        self.each(|program| program.wait_ready(limit, stop)).map(drop)
    }

    fn start(&mut self, at_ns: u64, until_ns: Option<u64>) -> Result<(), LabError> {
        self.each(|program| program.start(at_ns, until_ns)).map(drop)
    }

    fn check_alive(&mut self, phase: &'static str) -> Result<(), LabError> {
        self.each(|program| program.check_alive(phase)).map(drop)
    }

    fn begin_stop(&mut self) -> Result<(), LabError> {
        self.each(Peer::begin_stop).map(drop)
    }

    /// With the settings of the first.
    fn stop(&mut self, limit: Duration, stop: &AtomicBool) -> Result<SideMeasurements, LabError> {
        self.begin_stop()?;
        let each = self.each(|program| program.stop(limit, stop))?;
        let all: Vec<&SideMeasurements> = each.iter().collect();
        let times = Times::of(&all);
        let left = self.left(together(&all, &times));
        let settings = each.first().map(|first| first.settings.clone()).unwrap_or_default();
        let hosts = self.programs.iter().map(|(host, _)| host.clone());
        let (histograms, parts) = (times.encoded(), hosts.zip(each).collect());
        Ok(SideMeasurements { settings, histograms, parts, ..left })
    }

    fn close(self: Box<Self>) -> Result<Vec<Warning>, LabError> {
        let Self { programs, are_several, .. } = *self;
        let mut warnings = Vec::new();
        for (host, program) in programs {
            let named = |warning: Warning| {
                let text = format!("{host}: {}", warning.text);
                if are_several { warning } else { Warning { text, ..warning } }
            };
            warnings.extend(program.close()?.into_iter().map(named));
        }
        Ok(warnings)
    }

    fn threads(&self) -> Vec<Vec<(u32, Vec<i32>)>> {
        self.programs.iter().map(|(_, program)| program.threads().concat()).collect()
    }

    fn began(&self) -> Vec<Vec<Began>> {
        self.programs.iter().map(|(_, program)| program.began().concat()).collect()
    }

    /// Those of the first: ids of several hosts do not go together.
    fn ids(&self) -> (u32, &[i32]) {
        self.programs.first().map_or((0, &[]), |(_, program)| program.ids())
    }

    fn intervals(&self) -> Vec<Line> {
        let each: Vec<Vec<Line>> =
            self.programs.iter().map(|(_, program)| program.intervals()).collect();
        lines::together(&each)
    }
}

/// The result of programs that have ended, as that of one.
pub(super) fn result_of(parts: &[&SideMeasurements]) -> WorkloadResult {
    together(parts, &Times::of(parts))
}

/// The times of all programs by name.
struct Times(BTreeMap<String, Histogram>);

impl Times {
    /// One that cannot be read is missing, and a warning of its part says so.
    fn of(parts: &[&SideMeasurements]) -> Self {
        let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
        for (name, hdr_v2_base64) in parts.iter().flat_map(|part| &part.histograms) {
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
fn together(parts: &[&SideMeasurements], times: &Times) -> WorkloadResult {
    macro_rules! joined {
        ($variant:ident, $join:path $(, $times:ident)?) => {{
            let parts = parts.iter().filter_map(|part| match &part.result {
                WorkloadResult::$variant(part) => Some(part),
                _ => None,
            });
            WorkloadResult::$variant($join(&parts.collect::<Vec<_>>() $(, $times)?))
        }};
    }
    match parts.first().map(|first| &first.result) {
        Some(WorkloadResult::UdpLoad(_)) => joined!(UdpLoad, udp::load),
        Some(WorkloadResult::UdpServe(_)) => joined!(UdpServe, udp::serve, times),
        Some(WorkloadResult::Stream(_)) => joined!(Stream, tcp::stream),
        Some(WorkloadResult::Transactions(_)) => joined!(Transactions, tcp::transactions, times),
        Some(WorkloadResult::TcpServe(_)) => joined!(TcpServe, tcp::serve),
        Some(WorkloadResult::HttpLoad(_)) => joined!(HttpLoad, http::load, times),
        Some(WorkloadResult::HttpServe(_)) => joined!(HttpServe, http::serve, times),
        Some(WorkloadResult::None | WorkloadResult::External(_)) | None => WorkloadResult::None,
    }
}

/// The limit that the first program names which did not keep its schedule; else that of the first.
fn limit<'a>(mut all: impl Iterator<Item = &'a Limit> + Clone) -> Limit {
    let first = all.clone().next();
    all.find(|limit| limit.who != Who::Schedule).or(first).cloned().unwrap_or_default()
}

/// The limit that the first receiver names which was one; else that of the first.
fn busiest<'a>(mut all: impl Iterator<Item = &'a Limit> + Clone) -> Limit {
    let first = all.clone().next();
    let is_one = |limit: &&Limit| matches!(limit.who, Who::Receiver | Who::Server);
    all.find(is_one).or(first).cloned().unwrap_or_default()
}

/// Counts by name, added.
fn added<'a>(all: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (name, count) in all.flatten() {
        *sum.entry(name.clone()).or_insert(0) += count;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_program_that_fell_behind_is_the_limit_of_all() {
        let named = |who| Limit { who, evidence: String::new() };
        let all = [named(Who::Schedule), named(Who::Sender), named(Who::Path)];
        assert_eq!(limit(all.iter()).who, Who::Sender);
        assert_eq!(limit(all[..1].iter()).who, Who::Schedule);
    }

    #[test]
    fn times_of_several_are_those_of_one_histogram() {
        let part = |ns: u64| {
            let mut times = Histogram::of_times();
            times.record_n(ns, 50);
            let histograms = vec![("service_time".to_owned(), hlog::encoded(&times).unwrap())];
            SideMeasurements { histograms, ..SideMeasurements::default() }
        };
        let times = Times::of(&[&part(1_000), &part(9_000_000)]);
        let all = times.quantiles("service_time").unwrap();
        assert_eq!(all.samples_count, 100);
        assert!(all.p50 < 2.0 && all.p90 > 8_000.0, "{all:?}");
    }
}
