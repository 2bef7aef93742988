//! The scenario of an existing run, as it was resolved for that run.

use std::path::Path;

use rxpath_lab::scenario::spec::Resolved;
use rxpath_record::manifest::Manifest;

use crate::cmd::scenario::resolved;
use crate::exit::Failure;

/// The scenario of a run: a bundled one by its name, or the file named on its command line; with the run's own `--set`.
pub(super) fn scenario(manifest: &Manifest) -> Result<Resolved, Failure> {
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
