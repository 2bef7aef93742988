//! The times of requests: kept as histograms in the run directory, and all trials of a variant together.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_record::manifest::{Manifest, PooledQuantile};
use rxpath_record::run::{RunWriter, hlog};
use rxpath_stats::tails::{Slice, together};

use crate::error::LabError;
use crate::trial::measurements::Measurements;
use crate::trial::side::{SideMeasurements, SliceOfTimes};

/// Quantiles of all trials together.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// The times of each trial's window, by trial: what was timed, and its slices.
#[derive(Default)]
pub(super) struct Times(BTreeMap<u32, (String, Vec<Slice>)>);

impl Times {
    /// Keeps the times behind the programs' quantiles: quantiles of trials can't be merged, histograms can. What cannot be
    /// read becomes a warning.
    pub(super) fn keep(
        &mut self,
        writer: &mut RunWriter,
        trial: u32,
        raw: &Measurements,
    ) -> Result<Vec<Warning>, LabError> {
        let mut warnings = Vec::new();
        let window = raw.window.between.window_ns;
        for (file, log) in logs(trial, [("load", &raw.load), ("serve", &raw.serve)], window) {
            match log {
                Ok(log) => writer.histogram(&file, |out| out.write_all(log.as_bytes()))?,
                Err(why) => {
                    let text = format!("histogram {file} cannot be read and is not kept: {why}");
                    warnings.push(Warning::new("histogram-unreadable", text));
                }
            }
        }
        self.0.extend(in_window(&raw.load.slices, window).map(|found| (trial, found)));
        Ok(warnings)
    }

    /// Gives each variant the quantiles of its counted trials together.
    pub(super) fn pool(&self, manifest: &mut Manifest) {
        let pooled: Vec<Vec<PooledQuantile>> = manifest
            .variants
            .iter()
            .map(|variant| {
                let counted = manifest.counted(&variant.name);
                let timed = counted.iter().filter_map(|trial| self.0.get(&trial.trial));
                let (names, trials): (Vec<&String>, Vec<Vec<Slice>>) =
                    timed.map(|(name, slices)| (name, slices.clone())).unzip();
                let trials_count = trials.len() as u32;
                let found = together(&trials, &QUANTILES, manifest.seed);
                let name = names.first().map(|name| (*name).clone()).unwrap_or_default();
                let us = |ns: f64| ns / 1e3;
                found
                    .into_iter()
                    .map(|tail| PooledQuantile {
                        name: name.clone(),
                        quantile: tail.quantile,
                        value_us: us(tail.value_ns),
                        interval_us: tail.interval_ns.map(|it| [us(it.low), us(it.high)]),
                        samples_count: tail.samples_count,
                        trials_count,
                    })
                    .collect()
            })
            .collect();
        for (variant, pooled) in manifest.variants.iter_mut().zip(pooled) {
            variant.pooled_quantiles = pooled;
        }
    }
}

/// Each log by its name, or why there is none: those of both sides, and where a side has several hosts, of each.
fn logs(
    trial: u32,
    sides: [(&str, &SideMeasurements); 2],
    window_ns: [u64; 2],
) -> Vec<(String, Result<String, String>)> {
    let mut all = Vec::new();
    for (side, together) in sides {
        for (of, program) in together.named(side) {
            for (name, hdr_v2_base64) in &program.histograms {
                let file = format!("trial{trial}-{of}-{name}");
                let slices: Vec<([u64; 2], &str)> = program
                    .slices
                    .iter()
                    .filter(|slice| slice.name == *name)
                    .map(|slice| (slice.span_ns, slice.hdr_v2_base64.as_str()))
                    .collect();
                let whole = vec![(window_ns, hdr_v2_base64.as_str())];
                let log = hlog::text(&file, if slices.is_empty() { whole } else { slices });
                all.push((file, log));
            }
        }
    }
    all
}

/// What was timed, and its slices that lie in the window; `None` without any.
fn in_window(slices: &[SliceOfTimes], [from, to]: [u64; 2]) -> Option<(String, Vec<Slice>)> {
    let inside = |slice: &&SliceOfTimes| from <= slice.span_ns[0] && slice.span_ns[1] <= to;
    let read = |slice: &SliceOfTimes| hlog::decoded(&slice.hdr_v2_base64).ok();
    let read = slices.iter().filter(inside).filter_map(read);
    let found: Vec<Slice> = read.map(|times| Slice::from(&times)).collect();
    let name = slices.first()?.name.clone();
    (!found.is_empty()).then_some((name, found))
}

#[cfg(test)]
mod tests {
    use rxpath_stats::Histogram;

    use super::*;

    #[test]
    fn each_of_several_hosts_has_a_log_in_addition_to_that_of_all() {
        let told = |ns: &[u64]| {
            let mut times = Histogram::of_times();
            for ns in ns {
                times.record(*ns);
            }
            vec![("one_way_delay".to_owned(), hlog::encoded(&times).unwrap())]
        };
        let of =
            |ns: &[u64]| SideMeasurements { histograms: told(ns), ..SideMeasurements::default() };
        let parts = vec![("sut".to_owned(), of(&[1_000])), ("sut2".to_owned(), of(&[9_000_000]))];
        let serve = SideMeasurements { parts, ..of(&[1_000, 9_000_000]) };
        let mut load = of(&[5]);
        load.histograms[0].1 = "HISTFAAA".into();
        let logs = logs(3, [("load", &load), ("serve", &serve)], [0, 2_000_000_000]);
        let names: Vec<&str> = logs.iter().map(|(file, _)| file.as_str()).collect();
        let wanted = ["load", "serve", "serve@sut", "serve@sut2"];
        assert_eq!(names, wanted.map(|of| format!("trial3-{of}-one_way_delay")));
        assert!(logs[0].1.is_err());
        // The largest one, in ms.
        let most = |at: usize| -> f64 {
            let line = logs[at].1.as_ref().unwrap().lines().last().unwrap();
            line.split(',').nth(3).unwrap().parse().unwrap()
        };
        assert!(most(1) > 8.9 && most(2) < 0.1 && most(3) > 8.9);
    }

    #[test]
    fn only_slices_within_the_window_count() {
        let slice = |from: u64, to: u64| {
            let mut times = Histogram::of_times();
            times.record(1_000 * from);
            let v2 = hlog::encoded(&times).unwrap();
            SliceOfTimes { name: "response_time".into(), span_ns: [from, to], hdr_v2_base64: v2 }
        };
        let slices = [slice(0, 100), slice(100, 200), slice(200, 300)];
        let (name, found) = in_window(&slices, [90, 250]).unwrap();
        assert_eq!((name.as_str(), found.len()), ("response_time", 1));
        assert_eq!(in_window(&slices, [301, 400]), None);
        assert_eq!(in_window(&[], [0, 400]), None);
    }
}
