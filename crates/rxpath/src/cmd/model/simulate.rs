//! `rxpath model simulate`: the receive path packet by packet, from parameters.

use nix::time::{ClockId, clock_gettime};
use rxpath_core::ItemCount;
use rxpath_host::command_line;
use rxpath_lab::predict::{directory, simulation};
use rxpath_model::sim::outcome::Figures;
use rxpath_model::sim::{self, Parameters, SimulationOutcome, Values};
use rxpath_record::ledger::Ledger;
use rxpath_record::verdict::DiagnosisVerdict;

use super::calibration::load;
use super::from_run;
use crate::cmd::lab_error::failure;
use crate::cmd::prelude::*;

mod text;

/// `rxpath model simulate`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "docs/reference/simulator.md lists every parameter with its unit, range and default; docs/explanation/model.md lists what is not modelled."
)]
pub struct SimulateCommand {
    /// A parameter file (TOML) or a bundled set
    #[arg(required_unless_present_any = ["list", "from"])]
    what: Option<String>,
    /// Take costs from a calibration file, or costs and load from a run directory; use it with `--set` for a "what if"
    #[arg(long, value_name = "RUN|FILE", conflicts_with = "list")]
    from: Option<PathBuf>,
    /// With `--from RUN`: the variant [default: the first that can be predicted]
    #[arg(long, value_name = "NAME", requires = "from")]
    variant: Option<String>,
    /// With `--from RUN`: the calibration of that run's host [default: the run's own, else this host's]
    #[arg(long, value_name = "FILE", requires = "from")]
    calibration: Option<PathBuf>,
    /// Use a calibration of another host or kernel
    #[arg(long, requires = "from")]
    foreign: bool,
    /// Set a parameter, for example `nic.ring=1024` or `arrivals.rate=200k`; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Seed of all random numbers (same as `--set seed=N`)
    #[arg(long, value_name = "N")]
    seed: Option<ItemCount>,
    /// How long packets arrive (same as `--set duration=TIME`)
    #[arg(short, long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Also save the result as a run directory in DIR, for `rxpath report`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// List the bundled sets
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Simulated {
    #[serde(flatten)]
    figures: Figures,
    /// The result without the `--set` changes, if costs or load come from elsewhere (`--from`).
    before: Option<Figures>,
    /// Where every packet went.
    ledger: Ledger,
    /// The stage that limits.
    verdict: DiagnosisVerdict,
    /// The run directory, if one was requested.
    run: Option<String>,
}

impl SimulateCommand {
    /// Runs it.
    pub fn run(self) -> Outcome {
        if self.list {
            return list();
        }
        let mut warnings = Vec::new();
        let base = self.base(&mut warnings)?;
        let changed = self.changed(base.clone())?;
        let parameters = Parameters::new(&changed).map_err(Failure::usage_of)?;
        // A calibration alone has no load: then there is nothing to compare with.
        let before = match Parameters::new(&base) {
            Ok(base) if self.from.is_some() && !self.sets.is_empty() => {
                Some(simulate(&base)?.figures)
            }
            _ => None,
        };
        let begun = cpu_time()?;
        let simulation = simulate(&parameters)?;
        crate::note!(
            "{}",
            text::speed(simulation.ledger.offered_packets, cpu_time()?.saturating_sub(begun))
        );
        let verdict = rxpath_diagnose::diagnose(&simulation.evidence);
        warnings.extend(simulation::warnings(&parameters, &simulation));
        let run = match &self.out {
            Some(base) => {
                let from = (base.as_path(), command_line::words(), env!("CARGO_PKG_VERSION"));
                let run = directory::write(from, &parameters, &simulation, &warnings);
                Some(run.map_err(|error| failure(error.into()))?.display().to_string())
            }
            None => None,
        };
        let settings = parameters.values.to_json();
        let SimulationOutcome { figures, ledger, .. } = simulation;
        let result = Simulated { figures, before, ledger, verdict, run };
        let answer = Envelope::new("model-simulate", settings, result, warnings);
        output::answer(self.format.is_json(), &answer, |it| text::result(&parameters, it))?;
        Ok(Exit::Done)
    }

    /// The parameters before `--set`.
    fn base(&self, warnings: &mut Vec<Warning>) -> Result<Values, Failure> {
        let mut values = match &self.what {
            Some(what) => read(what)?,
            None => Values::default(),
        };
        let Some(from) = &self.from else { return Ok(values) };
        if from.is_dir() {
            let calibration = (self.calibration.as_deref(), self.foreign);
            let (values, more) = from_run::values(from, self.variant.as_deref(), calibration)?;
            warnings.extend(more);
            return Ok(values);
        }
        if self.calibration.is_some() {
            return Err(Failure::usage(
                "--calibration needs --from RUN; --from FILE already names a calibration",
            ));
        }
        let (calibration, told) = load(from, self.foreign)?;
        warnings.extend(told);
        calibration.apply(&mut values).map_err(Failure::usage_of)?;
        Ok(values)
    }

    fn changed(&self, mut values: Values) -> Result<Values, Failure> {
        let given = [
            self.seed.map(|ItemCount(seed)| format!("seed={seed}")),
            self.duration.map(|Nanos(ns)| format!("duration={ns}")),
        ];
        for set in self.sets.iter().cloned().chain(given.into_iter().flatten()) {
            values.set(&set).map_err(Failure::usage_of)?;
        }
        Ok(values)
    }
}

/// CPU time of this process.
fn cpu_time() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from)
}

fn list() -> Outcome {
    for (name, text) in sim::bundled::ALL {
        let question = Parameters::from_toml(text).map(|p| p.question).unwrap_or_default();
        output::line(&format!("{name:<20} {question}"))?;
    }
    Ok(Exit::Done)
}

/// The parameters of a bundled set or a file.
pub fn read(what: &str) -> Result<Values, Failure> {
    let text = match sim::bundled::find(what) {
        Some(text) => text.to_owned(),
        None if !what.contains(['/', '.']) && !Path::new(what).exists() => {
            let names: Vec<&str> = sim::bundled::ALL.iter().map(|(name, _)| *name).collect();
            return Err(Failure::usage(format!("there is no bundled set and no file `{what}`"))
                .hint(format!("bundled: {}", names.join(", "))));
        }
        None => std::fs::read_to_string(what).or_usage(|| what.to_owned())?,
    };
    Values::from_toml(&text).or_usage(|| what.to_owned())
}

fn simulate(parameters: &Parameters) -> Result<SimulationOutcome, Failure> {
    simulation::simulate(parameters).map_err(Failure::usage_of)
}
