//! A measured run as the base of a simulation: its load, its set-up, and the host's calibrated costs.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_model::calibration::Calibration;
use rxpath_model::sim::Values;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::run::RunReader;

use super::super::predict;
use crate::cmd::run::resolved;
use crate::exit::{Exit, Failure};

/// The parameters of a variant of the run in `directory`.
pub(super) fn values(
    directory: &Path,
    wanted: Option<&str>,
    calibration: &Calibration,
) -> Result<Values, Failure> {
    let reader = RunReader::open(directory).map_err(|error| Failure::new(Exit::Usage, error))?;
    let manifest = reader.manifest;
    let shown = directory.display();
    let scenario = resolved(&manifest.scenario, &sets(&manifest))?;
    let mut reasons = Vec::new();
    for variant in &scenario.variants {
        if wanted.is_some_and(|wanted| wanted != variant.name) {
            continue;
        }
        let trials: Vec<&Trial> = predict::valid(&manifest, &variant.name).collect();
        match predict::values(variant, &trials, calibration, &BTreeMap::new()) {
            Ok(mut values) => {
                values
                    .put_text("name", &format!("{}/{}", manifest.scenario, variant.name))
                    .map_err(|error| Failure::new(Exit::Usage, error))?;
                return Ok(values);
            }
            Err(why) => reasons.push(format!("{}: {why}", variant.name)),
        }
    }
    if let (Some(wanted), true) = (wanted, reasons.is_empty()) {
        let names: Vec<&str> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
        return Err(Failure::usage(format!("{shown}: no variant is called `{wanted}`"))
            .hint(format!("one of {}", names.join(", "))));
    }
    Err(Failure::usage(format!("{shown}: nothing of it can be simulated: {}", reasons.join("; "))))
}

/// The `--set` options of the run's own command line.
fn sets(manifest: &Manifest) -> Vec<String> {
    let words = manifest.command.iter();
    let next = words.clone().skip(1);
    let spaced =
        words.clone().zip(next).filter(|(word, _)| *word == "--set").map(|(_, set)| set.clone());
    let joined = words.filter_map(|word| word.strip_prefix("--set=")).map(str::to_owned);
    spaced.chain(joined).collect()
}
