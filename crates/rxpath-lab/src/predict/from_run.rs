//! A measured run as the base of a simulation: its scenario, its load and its set-up, with calibrated costs.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_model::calibration::Calibration;
use rxpath_model::sim::Values;
use rxpath_record::manifest::{Manifest, Trial};

use super::valid;
use crate::scenario::spec::Resolved;

/// Why a run is no base, and what there is instead.
#[derive(Debug)]
pub struct NoBase {
    /// What is wrong.
    pub what: String,
    /// What would be right, where that is known.
    pub hint: Option<String>,
}

/// The scenario of a run: a bundled one by its name, or the file named on its command line; with the run's own `--set`.
///
/// # Errors
/// Those of `resolved`, which reads the scenario of a name or file with these `--set`.
pub fn scenario<E>(
    manifest: &Manifest,
    resolved: &dyn Fn(&str, &[String]) -> Result<Resolved, E>,
) -> Result<Resolved, E> {
    let sets = sets(manifest);
    let first = resolved(&manifest.scenario, &sets);
    if first.is_ok() {
        return first;
    }
    let files = manifest
        .command
        .iter()
        .filter(|word| Path::new(word).extension().is_some_and(|extension| extension == "toml"));
    let same = |scenario: &Resolved| scenario.name == manifest.scenario;
    files.filter_map(|file| resolved(file, &sets).ok()).find(same).map_or(first, Ok)
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

/// The parameters of the variant `wanted`; without a name, of the first that can be simulated.
///
/// # Errors
/// If there is no such variant, or none can be simulated.
pub fn values(
    manifest: &Manifest,
    scenario: &Resolved,
    wanted: Option<&str>,
    calibration: &Calibration,
) -> Result<Values, NoBase> {
    let mut reasons = Vec::new();
    for variant in &scenario.variants {
        if wanted.is_some_and(|wanted| wanted != variant.name) {
            continue;
        }
        let trials: Vec<&Trial> = valid(manifest, &variant.name).collect();
        let made = super::values(variant, &trials, calibration, &BTreeMap::new());
        let name = format!("{}/{}", manifest.scenario, variant.name);
        let named = |mut values: Values| match values.put("name", name) {
            Ok(()) => Ok(values),
            Err(error) => Err(error.to_string()),
        };
        match made.and_then(named) {
            Ok(values) => return Ok(values),
            Err(why) => reasons.push(format!("{}: {why}", variant.name)),
        }
    }
    if let (Some(wanted), true) = (wanted, reasons.is_empty()) {
        let names: Vec<&str> = scenario.variants.iter().map(|it| it.name.as_str()).collect();
        let hint = Some(format!("one of {}", names.join(", ")));
        return Err(NoBase { what: format!("there is no variant `{wanted}`"), hint });
    }
    Err(NoBase { what: format!("no variant can be simulated: {}", reasons.join("; ")), hint: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, ScenarioError, load, resolve};

    #[test]
    fn the_scenario_of_a_run_is_found_by_name_else_by_file_with_its_own_sets() {
        let words = "rxpath run demo --set a=1 --set=b=2 mine.toml";
        let manifest = Manifest {
            scenario: "demo".into(),
            command: words.split(' ').map(str::to_owned).collect(),
            ..Manifest::default()
        };
        assert_eq!(sets(&manifest), ["a=1", "b=2"]);
        let of = |known: &'static str| {
            let resolved = |name: &str, _: &[String]| {
                let name = if name == known { "demo" } else { "no-such-scenario" };
                resolve(&load(name)?, &[], &HostShape::flat(2))
            };
            scenario::<ScenarioError>(&manifest, &resolved).map(|found| found.name)
        };
        assert_eq!(of("demo").unwrap(), "demo");
        assert_eq!(of("mine.toml").unwrap(), "demo");
        assert!(of("other").is_err());
    }
}
