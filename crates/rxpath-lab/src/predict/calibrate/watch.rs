//! Measurements during the trials of a calibration: the stolen-time meter, or tracepoints.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_bpf::Probe;
use rxpath_bpf::cost::CostMeter;
use rxpath_bpf::filter::Filter;
use rxpath_bpf::polls::{Passes, Polls};
use rxpath_core::IntoMap;
use rxpath_model::calibration::passes::Sums;
use rxpath_record::manifest::Trial;

use crate::meter::{Beside, Meter, MeterReading};
use crate::plan::RunPlan;
use crate::run::progress::Progress;
use crate::scenario::spec::{Resolved, Variant};

/// Prefix of the variants that tracepoints watch.
const TRACED: &str = "passes-";
/// Prefix of the variants in which a thread polls.
const NAPI: &str = "napi-";

/// Passes the progress on, and starts the measurements that a variant needs in its window.
pub struct CalibrationObserver<'a> {
    progress: &'a mut dyn Progress,
    /// CPU of the softirq, by variant.
    cpus: BTreeMap<String, u32>,
    /// The CPU that was measured.
    pub cpu: Option<u32>,
    variant: String,
    trial: u32,
    meter: Option<Meter>,
    tracer: Option<Tracer>,
    /// Readings of the meter, by trial.
    pub(super) readings: BTreeMap<u32, MeterReading>,
    /// Sums over passes, by trial.
    pub(super) passes: BTreeMap<u32, Traced>,
    /// Why there are no tracepoints.
    pub(super) no_tracing: Option<String>,
}

/// Tracepoint measurements of one CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traced {
    pub sums: Sums,
    /// Of one run of a program, if the kernel reports it.
    pub program_ns: Option<f64>,
}

struct Tracer {
    polls: Polls,
    cost: CostMeter,
    cpu: u32,
}

impl<'a> CalibrationObserver<'a> {
    /// For the trials of this scenario; without `tracing` the meter alone measures.
    pub fn new(resolved: &Resolved, tracing: bool, progress: &'a mut dyn Progress) -> Self {
        let cpu = |variant: &Variant| {
            let cpu = variant.lab.rps_cpus.0.first().copied().or(variant.lab.napi_cpu)?;
            Some((variant.name.clone(), cpu))
        };
        let cpus: BTreeMap<String, u32> = resolved.variants.iter().filter_map(cpu).into_map();
        Self {
            progress,
            cpu: cpus.values().next().copied(),
            cpus,
            variant: String::new(),
            trial: 0,
            meter: None,
            tracer: None,
            readings: BTreeMap::new(),
            passes: BTreeMap::new(),
            no_tracing: (!tracing).then(|| "switched off (--no-bpf)".into()),
        }
    }

    /// Starts the measurements for this variant's window.
    fn start(&mut self) {
        let Some(cpu) = self.cpus.get(&self.variant).copied() else { return };
        if !self.variant.starts_with(TRACED) {
            let napi = self.variant.starts_with(NAPI);
            let beside = if napi { Beside::Thread } else { Beside::Softirq };
            self.meter = Meter::start(cpu, beside).ok();
            return;
        }
        if self.no_tracing.is_some() {
            return;
        }
        match Tracer::start(cpu) {
            Ok(tracer) => self.tracer = Some(tracer),
            Err(why) => self.no_tracing = Some(why),
        }
    }

    /// If a measurement could not run, its trial has no reading, and the fit reports what is missing.
    fn stop(&mut self) {
        let reading = self.meter.take().and_then(|meter| meter.finish().ok().flatten());
        self.readings.extend(reading.map(|reading| (self.trial, reading)));
        if let Some(tracer) = self.tracer.take() {
            match tracer.finish() {
                Ok(traced) => {
                    self.passes.insert(self.trial, traced);
                }
                Err(why) => self.no_tracing = Some(why),
            }
        }
    }
}

impl Tracer {
    fn start(cpu: u32) -> Result<Self, String> {
        let filter = Filter { cpus: vec![cpu], ..Filter::default() };
        let polls = Polls::start(&filter, false).map_err(|error| error.to_string())?;
        // Timing the programs makes them slower; this overhead is in the time of the passes and is subtracted.
        let cost = polls.loaded().meter();
        Ok(Self { polls, cost, cpu })
    }

    fn finish(self) -> Result<Traced, String> {
        let read = self.polls.read().map_err(|error| error.to_string())?;
        let cost = self.cost.stop();
        let program_ns = (cost.runs_count > 0).then_some(cost.ns_per_run);
        let row = read.cpus.iter().find(|row| row.cpu == self.cpu);
        let row = row.ok_or_else(|| format!("CPU {} was not seen", self.cpu))?;
        Ok(Traced { sums: sums(&row.passes), program_ns })
    }
}

fn sums(passes: &Passes) -> Sums {
    Sums {
        n: passes.n as f64,
        w: passes.w as f64,
        ww: passes.ww as f64,
        t: passes.t as f64,
        wt: passes.wt as f64,
        // The kernel side drops four bits of each time: 7.5 on average and 77.5 squared. They are added back here.
        tt: passes.tt_256 as f64 * 256.0 + 15.0 * passes.t as f64 - 77.5 * passes.n as f64,
    }
}

impl Progress for CalibrationObserver<'_> {
    fn planned(&mut self, plan: &RunPlan, directory: &Path) {
        self.progress.planned(plan, directory);
    }

    fn trial_started(&mut self, trial: u32, block: u32, variant: &str) {
        (self.trial, self.variant) = (trial, variant.to_owned());
        self.progress.trial_started(trial, block, variant);
    }

    fn phase(&mut self, phase: &str) {
        self.stop();
        if phase == "measure" {
            self.start();
        }
        self.progress.phase(phase);
    }

    fn trial_ended(&mut self, trial: &Trial) {
        self.stop();
        self.progress.trial_ended(trial);
    }

    fn found(&mut self, what: &str) {
        self.progress.found(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_that_the_kernels_half_drops_are_given_back_on_average() {
        let times = (0..100_000_u64).map(|i| 1000 + i * 37 % 5000);
        let (mut passes, mut exact) = (Passes::default(), 0.0);
        for t in times {
            passes.n += 1;
            passes.t += t;
            passes.tt_256 += (t >> 4) * (t >> 4);
            exact += (t * t) as f64;
        }
        let got = sums(&passes).tt;
        assert!((got / exact - 1.0).abs() < 1e-4, "{got} {exact}");
    }
}
