//! The options for predictions of a plan's effects. Predictions are not measurements.

pub use rxpath_lab::predict::effects::expected;
use rxpath_model::sim::Values;

use crate::cmd::model::from_run;
use crate::cmd::model::simulate::read;
use crate::cmd::prelude::*;

/// Options about predictions.
#[derive(Debug, clap::Args)]
pub struct PredictArgs {
    /// Also predict each step's effect with the model, for the load of a measured run or a parameter file
    #[arg(long, value_name = "RUN|FILE")]
    predict: Option<String>,
    /// With `--predict RUN`: the calibration of that run's host [default: the run's own, else this host's]
    #[arg(long, value_name = "FILE", requires = "predict")]
    calibration: Option<PathBuf>,
    /// With `--predict RUN`: use a calibration of another host or kernel
    #[arg(long, requires = "predict")]
    foreign: bool,
}

impl PredictArgs {
    /// What the predictions are for, if they are asked for.
    pub fn asked(&self) -> Option<&str> {
        self.predict.as_deref()
    }

    /// Reads it: a run directory gives the load, with the costs of the calibration or of the run; a file or a bundled set gives
    /// everything.
    pub fn base(&self) -> Result<(Option<Values>, Vec<Warning>), Failure> {
        let Some(from) = &self.predict else { return Ok((None, Vec::new())) };
        let (run, calibration) = (Path::new(from), (self.calibration.as_deref(), self.foreign));
        let (base, warnings) = if run.is_dir() {
            from_run::values(run, None, calibration)?
        } else {
            (read(from)?, Vec::new())
        };
        Ok((Some(base), warnings))
    }
}
