//! Does the diagnosis recognise what was made on purpose?
//!
//! Each case makes one limit of the receive path for real, with parameters drawn at random, and knows which stage it
//! made. All draws are the variants of one scenario, run once each in random order; the diagnosis sees their evidence
//! and nothing of this. The table holds what was made against what was said.

mod cases;

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rxpath_host::Root;
use rxpath_record::manifest::{Grade, Manifest};
use rxpath_record::verdict::Stage;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bed::filters::MOST_CONNECTIONS;
use crate::scenario::spec::Resolved;
use crate::scenario::{HostShape, ScenarioError, parse, resolve};

pub use cases::{CASES, Case, Needs};

/// Entries of the connection table at most; absent without connection tracking in the kernel.
const CONNTRACK_MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// Measured on two CPUs: two readers of one socket wait for its locks 0.3 % of the time.
const FEW_CPUS: &str =
    "three readers and a sender need four CPUs; on two, readers hardly meet at a lock";

/// What comes before the variants: short trials, each once. Nothing samples the queues and no CPU halts: on few CPUs the
/// sampler, and in a virtual machine the hypervisor, would be a limit that nobody made.
const HEAD: &str = r#"question = "Does the diagnosis recognise each limit that was made on purpose?"
[lab]
awake = true
[serve]
cpu = "@receiver"
rcvbuf = "32MiB"
[load]
cpu = "@sender"
[observe]
sample_interval = "0ms"
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
    /// What this host lacks, with the reason.
    pub lacks: &'a [(Needs, String)],
}

/// What this host lacks of what cases need.
pub fn lacking(root: &Root, cpus: usize) -> Vec<(Needs, String)> {
    let probes = rxpath_bpf::can_run(root).require("measure CPU time and lock waits").err();
    let most = root.number::<u64>(CONNTRACK_MAX);
    let table = match most {
        Ok(most) if most <= MOST_CONNECTIONS => None,
        Ok(most) => Some(format!("the connection table holds {most} entries: too many to fill")),
        Err(error) => Some(error.to_string()),
    };
    let probes = probes.map(|error| error.to_string());
    let few = (cpus < 4).then(|| FEW_CPUS.to_owned()).or_else(|| probes.clone());
    let lacks = [(Needs::Probes, probes), (Needs::FourCpus, few), (Needs::Conntrack, table)];
    lacks.into_iter().filter_map(|(needs, why)| Some((needs, why?))).collect()
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
    for case in chosen(ask).0 {
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

/// The cases that are asked for and can be made here; and those that can't, with the reason.
pub fn chosen<'a>(ask: &Ask<'a>) -> (Vec<&'static Case>, Vec<(&'static Case, &'a str)>) {
    let named = |case: &&Case| ask.cases.is_empty() || ask.cases.iter().any(|id| id == case.id);
    let (mut made, mut not_made) = (Vec::new(), Vec::new());
    for case in CASES.iter().filter(named) {
        match ask.lacks.iter().find(|(needs, _)| *needs == case.needs) {
            None => made.push(case),
            Some((_, why)) => not_made.push((case, why.as_str())),
        }
    }
    (made, not_made)
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
            let ask = Ask { cases: &[], draws: 3, seed, lacks: &[] };
            let made = scenario(&ask, &HostShape::flat(4)).unwrap();
            assert_eq!(made.variants.len(), 3 * CASES.len());
            assert_eq!(made, scenario(&ask, &HostShape::flat(4)).unwrap());
        }
    }

    #[test]
    fn a_case_draws_the_same_alone_as_among_others() {
        let shape = HostShape::flat(4);
        let all = scenario(&Ask { cases: &[], draws: 2, seed: 7, lacks: &[] }, &shape).unwrap();
        let one = Ask { cases: &["checksum".into()], draws: 2, seed: 7, lacks: &[] };
        let alone = scenario(&one, &shape).unwrap();
        assert_eq!(alone.variants.len(), 2);
        for variant in &alone.variants {
            assert!(all.variants.contains(variant));
        }
    }

    #[test]
    fn ids_are_unique_and_what_a_host_lacks_is_not_made() {
        let mut ids: Vec<&str> = CASES.iter().map(|case| case.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CASES.len());
        let lacks = [(Needs::Probes, "no BPF".to_owned())];
        let (made, not_made) = chosen(&Ask { cases: &[], draws: 1, seed: 1, lacks: &lacks });
        assert!(made.iter().all(|case| case.needs != Needs::Probes));
        assert!(!not_made.is_empty() && not_made.iter().all(|(_, why)| *why == "no BPF"));
        assert_eq!(made.len() + not_made.len(), CASES.len());
    }
}
