//! The calibration of this host: where it is, and whether it is of this host.

use std::io::ErrorKind;

use rxpath_lab::predict::calibrate::this_host;
use rxpath_model::calibration::Calibration;
use rxpath_record::run::CALIBRATION;

use crate::cmd::lab_args::BASE;
use crate::cmd::prelude::*;

/// File name of a calibration, next to the run directories.
const FILE: &str = "calibration.json";

/// Default place of a calibration.
pub fn default_path() -> PathBuf {
    Path::new(BASE).join(FILE)
}

/// A calibration of this host. A calibration of another host or kernel is rejected unless `foreign` allows it; then it
/// comes with a warning.
pub fn load(path: &Path, foreign: bool) -> Result<(Calibration, Vec<Warning>), Failure> {
    let name = || path.display().to_string();
    let read = std::fs::read_to_string(path);
    let is_missing = read.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let hint = is_missing.then_some("calibrate this host first: rxpath model calibrate");
    let text = read.or_usage(name).map_err(|failure| failure.maybe_hint(hint))?;
    let calibration = Calibration::from_json(&text).or_usage(name)?;
    let Some(difference) = calibration.differs_from(&this_host()) else {
        return Ok((calibration, Vec::new()));
    };
    let text = format!("{}: this calibration is of another host: {difference}", path.display());
    if foreign {
        return Ok((calibration, vec![Warning::new("foreign-calibration", text)]));
    }
    Err(Failure::usage(text).hint(
        "calibrate this host (rxpath model calibrate), or use --foreign to accept the calibration",
    ))
}

/// The calibration for questions about a run: the named one, else the run's own, else this host's.
///
/// A run's own calibration is of the host on which it ran, not necessarily of this host.
pub fn load_for(
    run: &Path,
    named: Option<&Path>,
    foreign: bool,
) -> Result<(Calibration, Vec<Warning>), Failure> {
    let own = run.join(CALIBRATION);
    match named {
        Some(path) => load(path, foreign),
        None if own.is_file() => load(&own, true).map(|(calibration, _)| (calibration, Vec::new())),
        None => load(&default_path(), foreign),
    }
}
