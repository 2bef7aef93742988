//! `rxpath model validate`: compares predictions of the simulator with measurements and with two naive baselines.

use rxpath_lab::predict::validate::{Validation, left_out, set_aside, validated};
use rxpath_lab::scenario::spec::Resolved;
use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunReader;

use super::calibration::{default_path, load};
use super::from_run;
use crate::cmd::lab_args::{BASE, WaitArgs};
use crate::cmd::prelude::*;
use crate::cmd::run::{Ways, conduct, ending};
use crate::cmd::scenario::{in_lab, resolved};
use crate::output::bars::Bars;

mod text;

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
                        Exit: 0 all goals reached, 1 a goal missed, 4 too noisy to decide."
)]
pub struct ValidateCommand {
    /// Scenarios [default: all five model-* scenarios]
    scenarios: Vec<String>,
    /// Trials of each variant
    #[arg(long, value_name = "N", default_value_t = 5)]
    trials: u32,
    /// Set a key of the scenarios, for example `trials.measure=3s`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "run")]
    sets: Vec<String>,
    /// Validate the model against an existing run instead of a new one; repeatable, one scenario each
    #[arg(long, value_name = "RUN", conflicts_with = "scenarios")]
    run: Vec<PathBuf>,
    /// The calibration
    #[arg(long, value_name = "FILE", default_value_os_t = default_path())]
    calibration: PathBuf,
    /// Use a calibration of another host or kernel
    #[arg(long)]
    foreign: bool,
    /// Directory in which run directories are created
    #[arg(long, value_name = "DIR", default_value = BASE)]
    out: PathBuf,
    /// Count trials that other load on the machine disturbed; their grade shows it
    #[arg(long)]
    keep_noisy: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl ValidateCommand {
    /// Runs, predicts, compares.
    pub fn run(self) -> Outcome {
        let (calibration, mut warnings) = load(&self.calibration, self.foreign)?;
        let mut scenarios = Vec::new();
        for (scenario, run, mut manifest) in self.runs()? {
            if !self.keep_noisy {
                set_aside(&mut manifest);
            }
            scenarios.push(validated(&scenario, &run, &manifest, &calibration));
            warnings.extend(left_out(&scenario, &manifest));
        }
        let result = Validation::of(scenarios);
        let reached = result.reached;
        let calibration = self.calibration.display().to_string();
        let settings = json!({ "calibration": calibration, "trials": self.trials });
        let answer = Envelope::new("model-validate", settings, result, warnings);
        let tables = |it: &Validation| it.scenarios.iter().map(text::table).collect::<String>();
        output::answer(self.format.is_json(), &answer, tables)?;
        Ok(if reached { Exit::Done } else { Exit::Negative })
    }

    fn sets(&self) -> Vec<String> {
        let trials = [
            format!("trials.blocks={}", self.trials),
            format!("trials.max_blocks={}", self.trials),
        ];
        trials.into_iter().chain(self.sets.iter().cloned()).collect()
    }

    /// Scenario, run directory and manifest of each run, new or existing.
    fn runs(&self) -> Result<Vec<(Resolved, PathBuf, Manifest)>, Failure> {
        if !self.run.is_empty() {
            let read = |path: &PathBuf| {
                let reader = RunReader::open(path).map_err(Failure::usage_of)?;
                Ok((from_run::scenario(&reader.manifest)?, path.clone(), reader.manifest))
            };
            return self.run.iter().map(read).collect();
        }
        let all = || SCENARIOS.iter().map(|name| (*name).to_owned()).collect();
        let names = if self.scenarios.is_empty() { all() } else { self.scenarios.clone() };
        let mut made = Vec::new();
        for name in names {
            in_lab(&name, "a validation")?;
            let scenario = resolved(&name, &self.sets())?;
            let ways = Ways {
                keep_noisy: self.keep_noisy,
                patience: self.wait.patience(),
                ..Ways::default()
            };
            let ended = conduct(&scenario, &self.out, ways, &mut Bars::new())?;
            let exit = ending(&ended)?;
            if exit != Exit::Done {
                let what = anyhow::anyhow!("{name}: nothing was compared with the model");
                return Err(Failure::new(exit, what));
            }
            made.push((scenario, ended.directory.clone(), ended.manifest.clone()));
        }
        Ok(made)
    }
}
