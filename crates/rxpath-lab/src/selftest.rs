//! Does the diagnosis recognise what was made on purpose?
//!
//! Each case makes one limit of the receive path for real, with parameters drawn at random, and knows which stage it
//! made. All draws are the variants of one scenario, run once each in random order; the diagnosis sees their evidence
//! and nothing of this. The table holds what was made against what was said.

mod cases;

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rxpath_record::manifest::{Grade, Manifest};
use rxpath_record::verdict::Stage;
use schemars::JsonSchema;
use serde::Serialize;

use crate::scenario::spec::Resolved;
use crate::scenario::{HostShape, ScenarioError, parse, resolve};

pub use cases::{CASES, Case, NOT_MADE};

/// What comes before the variants: short trials, each once.
const HEAD: &str = r#"question = "Does the diagnosis recognise each limit that was made on purpose?"
[serve]
cpu = "@receiver"
rcvbuf = "32MiB"
[load]
cpu = "@sender"
[trials]
blocks = 1
max_blocks = 1
aa = false
ramp = "200ms"
settle = "0s"
measure = "700ms"
time_limit = "240m"
"#;

/// What is to be made.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Ids of the cases; empty = all.
    pub cases: &'a [String],
    /// Draws of each.
    pub draws: u32,
    /// Where the parameters come from.
    pub seed: u64,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The case.
    pub case: &'static str,
    /// What it makes.
    pub what: &'static str,
    /// Stages that are right.
    pub expected: Vec<Stage>,
    /// Trials that were made, and that the lab's noise did not void.
    pub made_count: u32,
    /// Those whose verdict was right.
    pub recognised_count: u32,
    /// What was said, and how often.
    pub said: BTreeMap<Stage, u32>,
    /// Names of the variants whose verdict was another.
    pub missed: Vec<String>,
}

/// The scenario of all draws, for a host of this shape.
///
/// # Errors
/// Only if a case is written wrongly: each is parsed in a test.
pub fn scenario(ask: &Ask<'_>, shape: &HostShape) -> Result<Resolved, ScenarioError> {
    let mut text = HEAD.to_owned();
    text += &format!("seed = {}\n", ask.seed);
    for case in chosen(ask.cases) {
        // A stream of its own: a case's draws do not change with the others that are asked for.
        let at = CASES.iter().position(|other| other.id == case.id).unwrap_or_default();
        let mut random = ChaCha8Rng::seed_from_u64(ask.seed);
        random.set_stream(at as u64);
        for draw in 1..=ask.draws {
            let settings = (case.draw)(&mut random).join("\n");
            let (id, what) = (case.id, case.what);
            text +=
                &format!("[[variant]]\nname = \"{id}-{draw}\"\nwhat = \"{what}\"\n{settings}\n");
        }
    }
    let file = parse(&text, "diagnose --selftest", "diagnose-selftest")?;
    resolve(&file, &[], shape)
}

/// The cases with these ids; all of them when none is named.
pub fn chosen(ids: &[String]) -> Vec<&'static Case> {
    let named = |case: &&Case| ids.is_empty() || ids.iter().any(|id| id == case.id);
    CASES.iter().filter(named).collect()
}

/// What was made against what was said.
pub fn table(manifest: &Manifest) -> Vec<Row> {
    let rows = CASES.iter().map(|case| {
        let mut row = Row {
            case: case.id,
            what: case.what,
            expected: case.expected.to_vec(),
            made_count: 0,
            recognised_count: 0,
            said: BTreeMap::new(),
            missed: Vec::new(),
        };
        let of_case = |name: &str| {
            name.strip_prefix(case.id).is_some_and(|rest| {
                rest.strip_prefix('-').is_some_and(|draw| draw.parse::<u32>().is_ok())
            })
        };
        // Trials that noise made worthless say nothing about the diagnosis.
        let counts = |trial: &&rxpath_record::manifest::Trial| {
            of_case(&trial.variant) && trial.void.is_none() && trial.grade != Grade::D
        };
        for trial in manifest.trials.iter().filter(counts) {
            let Some(verdict) = &trial.verdict else { continue };
            row.made_count += 1;
            *row.said.entry(verdict.stage).or_default() += 1;
            if case.expected.contains(&verdict.stage) {
                row.recognised_count += 1;
            } else {
                row.missed.push(trial.variant.clone());
            }
        }
        row
    });
    rows.filter(|row| manifest.variants.iter().any(|v| v.name.starts_with(row.case))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_scenario_and_the_same_seed_draws_the_same() {
        for seed in 0..20 {
            let ask = Ask { cases: &[], draws: 3, seed };
            let made = scenario(&ask, &HostShape::flat(4)).unwrap();
            assert_eq!(made.variants.len(), 3 * CASES.len());
            assert_eq!(made, scenario(&ask, &HostShape::flat(4)).unwrap());
        }
    }

    #[test]
    fn a_case_draws_the_same_alone_as_among_others() {
        let shape = HostShape::flat(4);
        let all = scenario(&Ask { cases: &[], draws: 2, seed: 7 }, &shape).unwrap();
        let one = Ask { cases: &["checksum".into()], draws: 2, seed: 7 };
        let alone = scenario(&one, &shape).unwrap();
        assert_eq!(alone.variants.len(), 2);
        for variant in &alone.variants {
            assert!(all.variants.contains(variant));
        }
    }

    #[test]
    fn ids_are_unique_and_no_case_is_both_made_and_not_made() {
        let mut ids: Vec<&str> =
            CASES.iter().map(|case| case.id).chain(NOT_MADE.iter().map(|(id, _)| *id)).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
