//! Base parameters for a "what if": a measured run, a parameter file, or a bundled set.

use rxpath_lab::predict;
use rxpath_model::sim::{Parameters, Values};

use super::calibration::load_for;
use super::simulate::{from_run, read};
use crate::cmd::prelude::*;

/// The base of a change, and its results without the change.
#[derive(Debug)]
pub struct Base {
    values: Values,
}

impl Base {
    /// Reads it. A run directory gives the load, with the costs of `calibration` or of the run; a file or a bundled set
    /// gives everything.
    pub fn read(
        from: &str,
        calibration: Option<&Path>,
        foreign: bool,
    ) -> Result<(Self, Vec<Warning>), Failure> {
        if !Path::new(from).is_dir() {
            return Ok((Self { values: read(from)? }, Vec::new()));
        }
        let run = Path::new(from);
        let (calibration, warnings) = load_for(run, calibration, foreign)?;
        Ok((Self { values: from_run::values(run, None, &calibration)? }, warnings))
    }

    /// Results by metric after these `KEY=VALUE` changes, or why there are none.
    pub fn with(&self, sets: &[String]) -> Result<predict::Metrics, String> {
        let mut values = self.values.clone();
        for set in sets {
            values.set(set).map_err(|error| error.to_string())?;
        }
        Parameters::new(&values).map_err(|error| error.to_string())?;
        predict::figures(&values).map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    }
}
