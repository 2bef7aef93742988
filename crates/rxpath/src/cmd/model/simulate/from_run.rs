//! A measured run as the base of a simulation: its load, its set-up, and the host's calibrated costs.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_lab::predict;
use rxpath_model::calibration::Calibration;
use rxpath_model::sim::Values;
use rxpath_record::manifest::Trial;
use rxpath_record::run::RunReader;

use super::super::again;
use crate::exit::Failure;

/// The parameters of a variant of the run in `directory`.
pub(in crate::cmd::model) fn values(
    directory: &Path,
    wanted: Option<&str>,
    calibration: &Calibration,
) -> Result<Values, Failure> {
    let reader = RunReader::open(directory).map_err(Failure::usage_of)?;
    let manifest = reader.manifest;
    let shown = directory.display();
    let scenario = again::scenario(&manifest)?;
    let mut reasons = Vec::new();
    for variant in &scenario.variants {
        if wanted.is_some_and(|wanted| wanted != variant.name) {
            continue;
        }
        let trials: Vec<&Trial> = predict::valid(&manifest, &variant.name).collect();
        match predict::values(variant, &trials, calibration, &BTreeMap::new()) {
            Ok(mut values) => {
                values
                    .put("name", format!("{}/{}", manifest.scenario, variant.name))
                    .map_err(Failure::usage_of)?;
                return Ok(values);
            }
            Err(why) => reasons.push(format!("{}: {why}", variant.name)),
        }
    }
    if let (Some(wanted), true) = (wanted, reasons.is_empty()) {
        let names: Vec<&str> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
        return Err(Failure::usage(format!("{shown}: there is no variant `{wanted}`"))
            .hint(format!("one of {}", names.join(", "))));
    }
    Err(Failure::usage(format!("{shown}: no variant can be simulated: {}", reasons.join("; "))))
}
