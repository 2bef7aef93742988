//! A measured run as the base of a simulation: its load, its set-up, and the host's calibrated costs.

use rxpath_lab::predict::from_run::{self, NoBase};
use rxpath_lab::scenario::spec::Resolved;
use rxpath_model::sim::Values;
use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunReader;

use super::calibration::load_for;
use crate::cmd::prelude::*;
use crate::cmd::scenario::resolved;

/// The scenario of a run, as it was resolved for that run.
pub(super) fn scenario(manifest: &Manifest) -> Result<Resolved, Failure> {
    from_run::scenario(manifest, &resolved)
}

/// The parameters of a variant of the run in `directory`, with the costs of the calibration `named`, else of the run's own,
/// else of this host's.
pub fn values(
    directory: &Path,
    wanted: Option<&str>,
    (named, foreign): (Option<&Path>, bool),
) -> Result<(Values, Vec<Warning>), Failure> {
    let (calibration, warnings) = load_for(directory, named, foreign)?;
    let manifest = RunReader::open(directory).map_err(Failure::usage_of)?.manifest;
    let scenario = scenario(&manifest)?;
    let failed = |NoBase { what, hint }: NoBase| {
        Failure::usage(format!("{}: {what}", directory.display())).maybe_hint(hint)
    };
    let values = from_run::values(&manifest, &scenario, wanted, &calibration).map_err(failed)?;
    Ok((values, warnings))
}
