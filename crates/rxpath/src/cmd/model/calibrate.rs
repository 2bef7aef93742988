//! `rxpath model calibrate`: what the steps of the receive path cost on this host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use rxpath_core::{Envelope, Warning};
use rxpath_host::{Root, environment};
use rxpath_lab::meter::{Meter, Reading};
use rxpath_lab::plan::Plan;
use rxpath_lab::run::progress::Progress;
use rxpath_lab::scenario::spec::{Resolved, Variant};
use rxpath_model::calibration::fit::TooNoisy;
use rxpath_model::calibration::{Calibration, CalibrationError, Host};
use rxpath_record::manifest::Trial;
use serde::Serialize;

use crate::cmd::run::{BASE, conduct, ending, resolved};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::output::bars::Bars;
use crate::output::format::FormatArgs;

mod gather;

/// The scenario that is measured.
const SCENARIO: &str = "model-calibration";
/// File name of a calibration beside the run directories.
const FILE: &str = "calibration.json";

/// `rxpath model calibrate`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Takes some 20 s in the two-namespace lab, as root, on a quiet machine; too noisy a machine is refused \
                        with the reason (exit 4). docs/calibrate.md tells how each parameter is found."
)]
pub struct CalibrateCommand {
    /// File to write
    #[arg(long, value_name = "FILE", default_value_os_t = default_path())]
    out: PathBuf,
    /// Directory in which the run directory of the measurements is made
    #[arg(long, value_name = "DIR", default_value = BASE)]
    runs: PathBuf,
    /// Payload of the datagrams
    #[arg(long, value_name = "BYTES", default_value = "32")]
    size: rxpath_core::Bytes,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Serialize)]
struct Settings {
    out: PathBuf,
    run: PathBuf,
}

impl CalibrateCommand {
    /// Measures, fits, writes.
    pub fn run(self) -> Outcome {
        let sets = [format!("load.size={}", self.size.0)];
        let resolved = resolved(SCENARIO, &sets)?;
        let mut watch = Watch::new(&resolved);
        let ended = conduct(&resolved, &self.runs, false, &mut watch)?;
        let exit = ending(&ended)?;
        if exit != Exit::Done {
            return Ok(exit);
        }
        let measured = gather::Measured {
            trials: &ended.manifest.trials,
            readings: &watch.readings,
            size_bytes: self.size.0,
            cpu: watch.cpu.unwrap_or(0),
        };
        let calibration =
            gather::calibration(&measured, this_host(), &Timestamp::now().to_string()).map_err(
                |TooNoisy(why)| {
                    Failure::new(Exit::Inconclusive, anyhow::anyhow!("no calibration: {why}"))
                        .hint("stop other load and calibrate again; nothing was written")
                },
            )?;
        write(&self.out, &calibration)?;
        let warnings: Vec<Warning> = calibration
            .caveats
            .iter()
            .map(|caveat| Warning::new("calibration", caveat.clone()))
            .collect();
        if self.format.is_json() {
            let settings = Settings { out: self.out, run: ended.directory.clone() };
            output::json(&Envelope::new("model-calibrate", settings, calibration, warnings))?;
        } else {
            output::text(&table(&calibration))?;
            output::line(&format!("calibration: {}", self.out.display()))?;
            warnings.iter().for_each(output::warning);
        }
        Ok(Exit::Done)
    }
}

/// Where a calibration is kept unless told otherwise.
pub fn default_path() -> PathBuf {
    Path::new(BASE).join(FILE)
}

/// A calibration of this host. One of another host or kernel is refused unless `foreign` says that it may be used;
/// then it comes with a warning.
pub fn load(path: &Path, foreign: bool) -> Result<(Calibration, Vec<Warning>), Failure> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(name).map_err(Failure::usage_of)?;
    let read: Result<Calibration, CalibrationError> = Calibration::from_json(&text);
    let calibration = read.with_context(name).map_err(Failure::usage_of)?;
    let Some(difference) = calibration.differs_from(&this_host()) else {
        return Ok((calibration, Vec::new()));
    };
    let text = format!("{}: this calibration is of another host: {difference}", path.display());
    if foreign {
        return Ok((calibration, vec![Warning::new("foreign-calibration", text)]));
    }
    Err(Failure::usage(text)
        .hint("calibrate here (rxpath model calibrate), or use it all the same with --foreign"))
}

/// What of this host decides its costs.
pub fn this_host() -> Host {
    let facts = environment::collect(&Root::host());
    let text = |name: &str| {
        let value = facts.get(name).and_then(|fact| fact.value());
        value.and_then(|value| value.as_str()).map(str::to_owned)
    };
    let count =
        facts.get("cpu.count").and_then(|fact| fact.value()).and_then(serde_json::Value::as_u64);
    Host {
        kernel: text("kernel.release").unwrap_or_default(),
        cpu_model: text("cpu.model").unwrap_or_default(),
        cpus_count: count.unwrap_or(0) as u32,
        hypervisor: text("virtualization.hypervisor"),
    }
}

fn write(path: &Path, calibration: &Calibration) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(calibration)? + "\n";
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, text))
        .with_context(|| format!("{}: cannot write", path.display()))
        .map_err(Failure::usage_of)
}

fn table(calibration: &Calibration) -> String {
    let mut text = String::from(
        "parameter                 value        95 % interval  unit         found by\n",
    );
    for (name, estimate) in &calibration.parameters {
        let [low, high] = estimate.interval;
        text += &format!(
            "{name:<20} {:>10.1} {:>20}  {:<12} {}\n",
            estimate.value,
            format!("{low:.1} to {high:.1}"),
            estimate.unit,
            estimate.how
        );
    }
    text
}

/// Draws the progress, and runs the meter in the windows of the variants that need it.
struct Watch {
    bars: Bars,
    /// CPU of the softirq, by variant.
    cpus: BTreeMap<String, u32>,
    cpu: Option<u32>,
    variant: String,
    trial: u32,
    meter: Option<Meter>,
    /// By trial.
    readings: BTreeMap<u32, Reading>,
}

impl Watch {
    fn new(resolved: &Resolved) -> Self {
        let cpu = |variant: &Variant| {
            let cpu = variant.lab.rps_cpus.0.first().copied().or(variant.lab.napi_cpu)?;
            Some((variant.name.clone(), cpu))
        };
        let cpus: BTreeMap<String, u32> = resolved.variants.iter().filter_map(cpu).collect();
        Self {
            bars: Bars::new(),
            cpu: cpus.values().next().copied(),
            cpus,
            variant: String::new(),
            trial: 0,
            meter: None,
            readings: BTreeMap::new(),
        }
    }

    /// A meter that could not run leaves its trial without a reading, and the fit says what is missing.
    fn stop(&mut self) {
        let reading = self.meter.take().and_then(|meter| meter.finish().ok().flatten());
        if let Some(reading) = reading {
            self.readings.insert(self.trial, reading);
        }
    }
}

impl Progress for Watch {
    fn planned(&mut self, plan: &Plan, directory: &Path) {
        self.bars.planned(plan, directory);
    }

    fn trial_started(&mut self, trial: u32, block: u32, variant: &str) {
        (self.trial, self.variant) = (trial, variant.to_owned());
        self.bars.trial_started(trial, block, variant);
    }

    fn phase(&mut self, phase: &str) {
        self.stop();
        if phase == "measure"
            && let Some(cpu) = self.cpus.get(&self.variant)
        {
            self.meter = Meter::start(*cpu).ok();
        }
        self.bars.phase(phase);
    }

    fn trial_ended(&mut self, trial: &Trial) {
        self.stop();
        self.bars.trial_ended(trial);
    }

    fn found(&mut self, what: &str) {
        self.bars.found(what);
    }
}
