//! `rxpath model validate`: predictions of the simulator held against measurements, and against two naive baselines.

use std::path::PathBuf;

use rxpath_core::{Envelope, Warning};
use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunReader;
use schemars::JsonSchema;
use serde::Serialize;

use super::calibrate::{default_path, load};
use crate::cmd::run::{BASE, conduct, ending, resolved};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::output::bars::Bars;
use crate::output::format::FormatArgs;

mod compare;
mod fit;
mod text;

pub use compare::Validated;

/// The scenarios, in the order of running.
const SCENARIOS: [&str; 5] = [
    "model-socket-overload",
    "model-stalling-reader",
    "model-ring",
    "model-livelock",
    "model-knee",
];

/// `rxpath model validate`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each scenario's variants named calibrate-* fit the model, the others test it. Needs a calibration of this \
                        host (rxpath model calibrate), root, and a quiet machine.\n\
                        Exit: 0 all goals reached, 1 a goal missed, 4 too noisy to tell."
)]
pub struct ValidateCommand {
    /// Scenarios [default: all five model-* scenarios]
    scenarios: Vec<String>,
    /// Trials of each variant
    #[arg(long, value_name = "N", default_value_t = 5)]
    trials: u32,
    /// Hold the model against a run that is there already, instead of running; repeatable, one scenario each
    #[arg(long, value_name = "RUN", conflicts_with = "scenarios")]
    run: Vec<PathBuf>,
    /// The calibration
    #[arg(long, value_name = "FILE", default_value_os_t = default_path())]
    calibration: PathBuf,
    /// Use a calibration of another host or kernel
    #[arg(long)]
    foreign: bool,
    /// Directory in which run directories are made
    #[arg(long, value_name = "DIR", default_value = BASE)]
    out: PathBuf,
    /// Count trials that other load on the machine disturbed; their grade says so
    #[arg(long)]
    keep_noisy: bool,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Serialize)]
struct Settings {
    calibration: PathBuf,
    trials: u32,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Validation {
    /// One entry per scenario.
    scenarios: Vec<Validated>,
    /// Whether every goal of every scenario was reached.
    reached: bool,
}

impl ValidateCommand {
    /// Runs, predicts, compares.
    pub fn run(self) -> Outcome {
        let (calibration, mut warnings) = load(&self.calibration, self.foreign)?;
        let mut scenarios = Vec::new();
        let manifests = self.manifests()?;
        for (name, run, manifest) in &manifests {
            let scenario = resolved(name, &self.sets())?;
            scenarios.push(compare::validated(&scenario, run, manifest, &calibration));
            warnings.extend(disturbed(name, manifest));
        }
        let reached =
            scenarios.iter().all(|scenario| scenario.goals.iter().all(|goal| goal.reached));
        let result = Validation { scenarios, reached };
        if self.format.is_json() {
            let settings = Settings { calibration: self.calibration, trials: self.trials };
            output::json(&Envelope::new("model-validate", settings, &result, warnings))?;
        } else {
            for scenario in &result.scenarios {
                output::text(&text::table(scenario))?;
            }
            warnings.iter().for_each(output::warning);
        }
        Ok(if reached { Exit::Done } else { Exit::Negative })
    }

    fn sets(&self) -> Vec<String> {
        vec![format!("trials.blocks={}", self.trials), format!("trials.max_blocks={}", self.trials)]
    }

    /// Scenario, run directory and manifest of each run, made now or before.
    fn manifests(&self) -> Result<Vec<(String, PathBuf, Manifest)>, Failure> {
        if !self.run.is_empty() {
            let read = |path: &PathBuf| {
                let reader = RunReader::open(path).map_err(|e| Failure::new(Exit::Usage, e))?;
                Ok((reader.manifest.scenario.clone(), path.clone(), reader.manifest))
            };
            return self.run.iter().map(read).collect();
        }
        let all = || SCENARIOS.iter().map(|name| (*name).to_owned()).collect();
        let names = if self.scenarios.is_empty() { all() } else { self.scenarios.clone() };
        let mut made = Vec::new();
        for name in names {
            let scenario = resolved(&name, &self.sets())?;
            let ended = conduct(&scenario, &self.out, self.keep_noisy, &mut Bars::new())?;
            match ending(&ended)? {
                Exit::Done => {}
                other => {
                    let text = format!("{name}: nothing was held against the model");
                    return Err(Failure::new(other, anyhow::anyhow!(text)));
                }
            }
            made.push((name, ended.directory.clone(), ended.manifest.clone()));
        }
        Ok(made)
    }
}

/// What noise took out of the comparison.
fn disturbed(name: &str, manifest: &Manifest) -> Option<Warning> {
    let void = manifest.trials.iter().filter(|trial| trial.void.is_some()).count();
    (void > 0).then(|| {
        let text = format!(
            "{name}: {void} of {} trials were disturbed and left out",
            manifest.trials.len()
        );
        Warning::new("void-trials", text)
    })
}
