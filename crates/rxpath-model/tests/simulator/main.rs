//! The simulator held against the closed forms, against conservation laws, and against the published figures.
//!
//! Random runs are repeated with several seeds; the tolerance is five standard errors of their mean, so it follows from
//! the sample and not from taste. Deterministic ones must be equal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/formula.rs"]
mod formula;
mod formulas;
mod invariants;
mod published;

use rxpath_model::sim::outcome::{Figures, SimulationOutcome, StageFigures};
use rxpath_model::sim::{Parameters, Values, simulate};

fn parameters(sets: &[String]) -> Parameters {
    let mut values = Values::default();
    for set in sets {
        values.set(set).unwrap_or_else(|error| panic!("{set}: {error}"));
    }
    Parameters::new(&values).unwrap_or_else(|error| panic!("{sets:?}: {error}"))
}

fn run(sets: &[&str]) -> SimulationOutcome {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    simulate(&parameters(&sets), None).unwrap()
}

fn stage<'a>(figures: &'a Figures, name: &str) -> &'a StageFigures {
    figures.stages.iter().find(|stage| stage.stage == name).unwrap()
}
