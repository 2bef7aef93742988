//! `rxpath run`: an experiment, in the two-namespace lab by default.

use std::path::{Path, PathBuf};

use clap::Args;
use rxpath_core::{Envelope, Warning};
use rxpath_host::topology;
use rxpath_host::{Root, thread};
use rxpath_lab::LabError;
use rxpath_lab::plan::plan;
use rxpath_lab::run::progress::Progress;
use rxpath_lab::run::{Finished, Model, Options, Predict, run};
use rxpath_lab::scenario::offers::Offers;
use rxpath_lab::scenario::power::Power;
use rxpath_lab::scenario::spec::Resolved;
use rxpath_lab::scenario::{HostShape, ScenarioError, load, resolve};
use rxpath_record::run::RunError;

use crate::cmd::model::calibrate::{default_path, load as load_calibration};
use crate::cmd::model::predict;
use crate::cmd::report::write_report;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::bars::Bars;
use crate::output::experiment;
use crate::output::format::FormatArgs;
use crate::output::{self, json};

/// Where run directories are made unless told otherwise.
pub const BASE: &str = "rxpath-runs";

/// Options of `rxpath run`.
#[derive(Debug, Args)]
pub struct RunCommand {
    /// A bundled experiment (see `rxpath list`) or a scenario file
    scenario: String,
    /// Set a key of the scenario, for example `load.rate=100k` or `variant.gso.load.gso=32`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Blocks of trials: each variant runs once per block (the same as `--set trials.blocks=N`)
    #[arg(long, value_name = "N")]
    trials: Option<u32>,
    /// Directory in which the run directory is made
    #[arg(long, value_name = "DIR", default_value = BASE)]
    out: PathBuf,
    /// Print what would be done, in which order and for how long, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Count trials that other load on the machine disturbed; their grade says so
    #[arg(long)]
    keep_noisy: bool,
    /// Watch by BPF, too: `drops` (the kernel's reasons beside the ledger), `steal` (CPU time that networking takes, by
    /// task), `trace` (softirqs, packets per poll, latency of stages); the same as `--set observe.WHAT=true`
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    observe: Vec<Watched>,
    #[command(flatten)]
    format: FormatArgs,
}

/// What can be watched beside the counters.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Watched {
    Drops,
    Steal,
    Trace,
}

impl Watched {
    /// Its key in the section `observe`.
    fn key(self) -> &'static str {
        match self {
            Self::Drops => "drops",
            Self::Steal => "steal",
            Self::Trace => "trace",
        }
    }
}

impl RunCommand {
    /// Plans, runs, reports.
    pub fn run(self) -> Outcome {
        let mut sets = self.sets.clone();
        sets.extend(self.trials.map(|blocks| format!("trials.blocks={blocks}")));
        sets.extend(self.observe.iter().map(|what| format!("observe.{}=true", what.key())));
        let resolved = resolved(&self.scenario, &sets)?;
        if self.dry_run {
            return self.show_plan(&resolved);
        }
        for warning in &resolved.warnings {
            output::warning(warning);
        }
        let ways = Ways { keep_noisy: self.keep_noisy, ..Ways::default() };
        let finished = conduct(&resolved, &self.out, ways, &mut Bars::new())?;
        let report = write_report(&finished.directory)?;
        if self.format.is_json() {
            let settings = serde_json::json!({
                "scenario": resolved.name, "run": finished.directory, "report": report,
            });
            let warnings = finished.manifest.warnings.clone();
            json(&Envelope::new("run-result", settings, &finished.manifest, warnings))?;
        } else {
            output::text(&experiment::summary(&finished.manifest))?;
            output::line(&format!("report: {}", report.display()))?;
        }
        ending(&finished)
    }

    fn show_plan(&self, resolved: &Resolved) -> Outcome {
        let plan = plan(resolved);
        if self.format.is_json() {
            json(&Envelope::new("run-plan", resolved, &plan, resolved.warnings.clone()))?;
        } else {
            output::text(&plan.to_text(resolved))?;
        }
        Ok(Exit::Done)
    }
}

/// The scenario of that name or file, with `sets`, for this host.
pub fn resolved(scenario: &str, sets: &[String]) -> Result<Resolved, Failure> {
    let usage = |error: ScenarioError| Failure::new(Exit::Usage, error);
    let file = load(scenario).map_err(usage)?;
    let root = Root::host();
    let shape = HostShape::of(&topology::read(&root)?, &thread::allowed_cpus()?);
    let shape = shape.with_power(Power::read(&root)).with_offers(Offers::read(&root));
    resolve(&file, sets, &shape).map_err(usage)
}

/// What a person chose for the whole run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// Count trials that noise would void.
    pub keep_noisy: bool,
    /// Measure CPU time and lock waits by tracepoints, for the diagnosis.
    pub witness: bool,
}

/// Runs it, with SIGINT and SIGTERM ending it in order.
pub fn conduct(
    resolved: &Resolved,
    base: &Path,
    ways: Ways,
    progress: &mut dyn Progress,
) -> Result<Ended, Failure> {
    let interrupt = Interrupt::catch()?;
    let exe = std::env::current_exe()?;
    let predictor = predictor();
    let options = Options {
        base,
        exe: &exe,
        command: std::env::args().collect(),
        version: env!("CARGO_PKG_VERSION"),
        keep_noisy: ways.keep_noisy,
        witness: ways.witness,
        stop: interrupt.stop(),
        model: predictor
            .as_ref()
            .map(|known| Model { predict: &*known.predict, calibration: &known.calibration }),
    };
    let finished = run(resolved, &options, progress).map_err(|error| match interrupt.caught() {
        Some(signal) if matches!(error, LabError::Interrupted) => {
            Failure::new(Exit::Signal(signal), error)
        }
        _ => failure(error),
    })?;
    Ok(Ended { finished, signal: interrupt.caught(), keep_noisy: ways.keep_noisy })
}

/// What predicts the variants of a run.
struct Predictor {
    predict: Box<Predict<'static>>,
    calibration: serde_json::Value,
}

/// This host's calibration, when there is one that is this host's.
fn predictor() -> Option<Predictor> {
    let path = default_path();
    if !path.exists() {
        return None;
    }
    match load_calibration(&path, false) {
        Ok((calibration, _)) => Some(Predictor {
            calibration: serde_json::to_value(&calibration).ok()?,
            predict: Box::new(move |resolved, manifest| {
                predict::all(resolved, manifest, &calibration)
            }),
        }),
        Err(failure) => {
            let text = format!("no predictions: {}", failure.line());
            output::warning(&Warning::new("no-predictions", text));
            None
        }
    }
}

/// A run that has ended and the signal that ended it, if one did.
pub struct Ended {
    finished: Finished,
    signal: Option<i32>,
    keep_noisy: bool,
}

impl std::ops::Deref for Ended {
    type Target = Finished;

    fn deref(&self) -> &Finished {
        &self.finished
    }
}

/// The exit status of an error of the lab.
fn status(error: &LabError) -> Exit {
    match error {
        LabError::CannotRun { .. } | LabError::Host(_) | LabError::Start { .. } => Exit::Cannot,
        LabError::Record(RunError::ReadOnly { .. } | RunError::Exists { .. }) => Exit::Usage,
        // Our own workloads refuse what they can't set up with the statuses of the command line.
        LabError::Died { phase: "set-up", code: Some(2), .. } => Exit::Usage,
        LabError::Died { phase: "set-up", code: Some(3), .. } => Exit::Cannot,
        _ => Exit::Partial,
    }
}

/// An error that no run directory tells about, with its way out.
pub fn failure(error: LabError) -> Failure {
    let hint = match &error {
        LabError::CannotRun { hint, .. } => Some(hint.clone()),
        _ => None,
    };
    let failure = Failure::new(status(&error), error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Says why a run ended early and turns its end into an exit status.
pub fn ending(ended: &Ended) -> Outcome {
    let directory = ended.directory.display();
    if let (Some(signal), None | Some(LabError::Interrupted)) = (ended.signal, &ended.error) {
        let what = match ended.error {
            Some(_) => "the run is kept up to here in",
            None => "the run was at its end and is whole in",
        };
        crate::note!("rxpath: interrupted; {what} {directory}");
        return Ok(Exit::Signal(signal));
    }
    if let Some(error) = &ended.error {
        let kept = format!("what was measured before is kept in {directory}");
        let hint = match error {
            LabError::CannotRun { hint, .. } => format!("{hint}; {kept}"),
            _ => kept,
        };
        return Err(Failure::new(status(error), anyhow::anyhow!("{error}")).hint(hint));
    }
    if ended.too_noisy() && !ended.keep_noisy {
        crate::note!(
            "rxpath: too noisy to conclude: other load disturbed every trial of a variant"
        );
        crate::note!("hint: stop the other load, or count such trials with --keep-noisy");
        return Ok(Exit::Inconclusive);
    }
    Ok(Exit::Done)
}
