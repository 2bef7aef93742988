//! Values of the options and arguments that only the full program has.

use clap_complete::engine::CompletionCandidate;
use rxpath_lab::{scenario, selftest};

use super::{Entry, Values, told};
use crate::cmd::schema;

pub(super) const VALUES: &[Entry] = &[
    ("run", "scenario", Values::OrFile(scenarios)),
    ("run", "set", Values::Given(keys)),
    ("capacity", "scenario", Values::OrFile(scenarios)),
    ("capacity", "set", Values::Given(keys)),
    ("model validate", "scenarios", Values::OrFile(scenarios)),
    ("schema", "name", Values::Given(schemas)),
    ("diagnose", "case", Values::Given(cases)),
];

fn scenarios() -> Vec<CompletionCandidate> {
    let all = scenario::bundled().unwrap_or_default();
    all.into_iter().map(|file| told(file.name, &file.question)).collect()
}

fn keys() -> Vec<CompletionCandidate> {
    let key = |[key, _, meaning]: [String; 3]| told(format!("{key}="), &meaning);
    scenario::reference().into_iter().map(key).collect()
}

fn schemas() -> Vec<CompletionCandidate> {
    schema::names().into_iter().map(CompletionCandidate::new).collect()
}

fn cases() -> Vec<CompletionCandidate> {
    selftest::CASES.iter().map(|case| told(case.id, case.what)).collect()
}
