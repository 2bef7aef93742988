//! Does the diagnosis recognise what was made on purpose?
//!
//! Each case makes one limit of the receive path for real, with parameters drawn at random, and knows which stage it
//! made. All draws are the variants of one scenario, run once each in random order; the diagnosis sees their evidence
//! and nothing of this. The table compares what was made with what was said.

mod cases;
mod result;
mod rule_cost;

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use rand::SeedableRng;
use rxpath_core::Nanos;
use rxpath_host::Root;
use rxpath_record::manifest::{Grade, Manifest, Trial};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, Stage};
use rxpath_stats::proportion;
use schemars::JsonSchema;
use serde::Serialize;

use crate::scenario::spec::Resolved;
use crate::scenario::{HostShape, ScenarioError, parse, resolve};
use crate::testbed::filters::MOST_CONNECTIONS;

use cases::Draw;
pub use cases::{CASES, Case, Needs};
pub use result::{NotMade, SelftestResult};
pub use rule_cost::RuleCost;

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
pub struct SelftestOptions<'a> {
    /// Ids of the cases; empty = all.
    pub cases: &'a [String],
    /// Draws of each.
    pub draws: u32,
    /// Where the parameters come from.
    pub seed: u64,
    /// How long each is measured; 700 ms unless something else is asked for.
    pub hold: Option<Nanos>,
    /// What this host lacks, with the reason.
    pub lacks: &'a [(Needs, String)],
    /// What datagrams and firewall rules cost here; needed where one of the cases is [timed](Case::is_timed).
    pub rule_cost: Option<RuleCost>,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SelftestRow {
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
    /// 95 % interval of the share of right verdicts.
    pub recognised_interval: [f64; 2],
    /// What was said, and how often.
    pub said: BTreeMap<Stage, u32>,
    /// Names of the variants whose verdict was another.
    pub missed: Vec<String>,
}

/// The scenario of all draws, for a host of this shape.
///
/// # Errors
/// Without the cost of a rule for a case that needs it, or if a case is written wrongly: each is parsed in a test.
pub fn scenario(ask: &SelftestOptions<'_>, shape: &HostShape) -> Result<Resolved, ScenarioError> {
    let mut text = head(ask);
    for case in chosen(ask).0 {
        let mut random = ChaCha8Rng::seed_from_u64(ask.seed);
        random.set_stream(stream(case.id));
        for draw in 1..=ask.draws {
            let (what, settings) = variant(case, &mut random, ask.rule_cost.as_ref())?;
            let (id, settings) = (case.id, settings.join("\n"));
            text +=
                &format!("[[variant]]\nname = \"{id}-{draw}\"\nwhat = \"{what}\"\n{settings}\n");
        }
    }
    let file = parse(&text, "diagnose --selftest", "diagnose-selftest")?;
    let sets: Vec<String> = ask.hold.iter().map(|hold| format!("trials.measure={hold}")).collect();
    resolve(&file, &sets, shape)
}

/// The random stream of a case: its draws change neither with the others that are asked for nor with its place among all.
fn stream(id: &str) -> u64 {
    id.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(257).wrapping_add(byte.into()))
}

/// What stands before the variants, with what was measured on this host.
fn head(ask: &SelftestOptions<'_>) -> String {
    let mut text = HEAD.to_owned();
    if let Some(cost) = &ask.rule_cost {
        text = text.replacen("on purpose?", &format!("on purpose? Here {cost}."), 1);
    }
    text + &format!("seed = {}\n", ask.seed)
}

/// What one draw of a case is, and its settings.
fn variant(
    case: &Case,
    random: &mut ChaCha8Rng,
    cost: Option<&RuleCost>,
) -> Result<(String, Vec<String>), ScenarioError> {
    let (what, templates) = (case.what.to_owned(), case.templates());
    let (datagram_ns, mut settings) = match case.draw() {
        Draw::Lines => return Ok((what, cases::drawn(random, &templates))),
        Draw::Plain(draw) => {
            return Ok((what, [draw(random), cases::drawn(random, &templates)].concat()));
        }
        Draw::Busy(share) => cases::busy(random, share, &templates),
        Draw::Timed(draw) => draw(random),
    };
    let cost = cost.ok_or_else(|| ScenarioError::Malformed {
        place: format!("case {}", case.id),
        wrong: "the cost of a firewall rule was not measured".into(),
        right: "it is measured before a timed case is drawn".into(),
    })?;
    settings.push(cases::in_the_way(cost.rules_for(datagram_ns)));
    Ok((format!("{what}; {:.1} us each", datagram_ns / 1e3), settings))
}

/// The cases that are asked for and can be made here; and those that can't, with the reason.
pub fn chosen<'a>(
    ask: &SelftestOptions<'a>,
) -> (Vec<&'static Case>, Vec<(&'static Case, &'a str)>) {
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

/// How often a confidence was right.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sureness {
    /// What the verdicts said of themselves.
    pub confidence: Confidence,
    /// Trials with such a verdict.
    pub trials_count: u32,
    /// Those whose verdict was right.
    pub right_count: u32,
    /// 95 % interval of the share of right verdicts.
    pub right_interval: [f64; 2],
}

/// How often strong, fair and weak verdicts were right, over the rows of a [`table`].
pub fn sureness(manifest: &Manifest, rows: &[SelftestRow]) -> Vec<Sureness> {
    let missed = |name: &String| rows.iter().any(|row| row.missed.contains(name));
    [Confidence::Strong, Confidence::Fair, Confidence::Weak]
        .into_iter()
        .map(|confidence| {
            let said = judged(manifest).filter(|(_, verdict)| verdict.confidence == confidence);
            let right: Vec<bool> = said.map(|(trial, _)| !missed(&trial.variant)).collect();
            let right_count = right.iter().filter(|right| **right).count() as u32;
            let trials_count = right.len() as u32;
            let right_interval = proportion::interval(right_count.into(), trials_count.into());
            Sureness { confidence, trials_count, right_count, right_interval }
        })
        .filter(|row| row.trials_count > 0)
        .collect()
}

/// Trials with a verdict. Those that noise made worthless say nothing about the diagnosis.
fn judged(manifest: &Manifest) -> impl Iterator<Item = (&Trial, &DiagnosisVerdict)> {
    let counts = |trial: &&Trial| trial.void.is_none() && trial.grade != Grade::D;
    manifest.trials.iter().filter(counts).filter_map(|t| Some((t, t.verdict.as_ref()?)))
}

/// What was made against what was said.
pub fn table(manifest: &Manifest) -> Vec<SelftestRow> {
    let rows = CASES.iter().map(|case| {
        let mut row = SelftestRow {
            case: case.id,
            what: case.what,
            expected: case.expected.clone(),
            ..SelftestRow::default()
        };
        let of_case = |name: &str| {
            name.strip_prefix(case.id).is_some_and(|rest| {
                rest.strip_prefix('-').is_some_and(|draw| draw.parse::<u32>().is_ok())
            })
        };
        for (trial, verdict) in judged(manifest).filter(|(trial, _)| of_case(&trial.variant)) {
            row.made_count += 1;
            *row.said.entry(verdict.stage).or_default() += 1;
            if case.expected.contains(&verdict.stage) {
                row.recognised_count += 1;
            } else {
                row.missed.push(trial.variant.clone());
            }
        }
        row.recognised_interval =
            proportion::interval(row.recognised_count.into(), row.made_count.into());
        row
    });
    rows.filter(|row| manifest.variants.iter().any(|v| v.name.starts_with(row.case))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::spec::Variant;

    const COST: Option<RuleCost> =
        Some(RuleCost { datagram_ns: 1_000.0, first_rule_ns: 15.0, later_rule_ns: 20.0 });

    const ASK: SelftestOptions<'static> =
        SelftestOptions { cases: &[], draws: 1, seed: 7, hold: None, lacks: &[], rule_cost: COST };

    #[test]
    fn every_case_is_a_scenario_and_the_same_seed_draws_the_same() {
        for seed in 0..20 {
            let ask = SelftestOptions { draws: 3, seed, ..ASK };
            let made = scenario(&ask, &HostShape::flat(4)).unwrap();
            assert_eq!(made.variants.len(), 3 * CASES.len());
            assert_eq!(made, scenario(&ask, &HostShape::flat(4)).unwrap());
        }
    }

    #[test]
    fn a_limit_is_held_for_as_long_as_is_asked_for() {
        let of = |hold| {
            let ask = SelftestOptions { hold, ..ASK };
            scenario(&ask, &HostShape::flat(4)).unwrap()
        };
        assert_eq!(of(None).trials.measure, Nanos::from_millis(700));
        assert_eq!(of(Some(Nanos::from_secs(20))).trials.measure, Nanos::from_secs(20));
    }

    #[test]
    fn a_case_draws_the_same_alone_as_among_others() {
        let shape = HostShape::flat(4);
        let all = scenario(&SelftestOptions { draws: 2, ..ASK }, &shape).unwrap();
        let one = SelftestOptions { cases: &["checksum".into()], draws: 2, ..ASK };
        let alone = scenario(&one, &shape).unwrap();
        assert_eq!(alone.variants.len(), 2);
        for variant in &alone.variants {
            assert!(all.variants.contains(variant));
        }
    }

    #[test]
    fn a_seed_draws_the_same_times_on_each_host_and_as_many_rules_as_make_them() {
        let shape = HostShape::flat(4);
        let of = |rule_ns: f64| {
            let cost =
                RuleCost { datagram_ns: 1_000.0, first_rule_ns: rule_ns, later_rule_ns: rule_ns };
            let ask = SelftestOptions { draws: 5, rule_cost: Some(cost), ..ASK };
            scenario(&ask, &shape).unwrap().variants
        };
        let (fast, slow) = (of(10.0), of(40.0));
        let mut timed = 0;
        for (mut fast, mut slow) in fast.into_iter().zip(slow) {
            let case = CASES.iter().find(|case| fast.name.starts_with(case.id)).unwrap();
            if case.is_timed() {
                timed += 1;
                let count = |variant: &mut Variant| {
                    variant.settings.remove("lab.nft_rx");
                    let rules = variant.lab.nft_rx.take().unwrap();
                    rules.matches("udp dport").count() as f64
                };
                let ratio = count(&mut fast) / count(&mut slow);
                assert!((ratio - 4.0).abs() < 0.2, "{}: {ratio}", fast.name);
            }
            assert!(fast == slow, "{}: other than its rules", fast.name);
        }
        assert_eq!(timed, 5 * CASES.iter().filter(|case| case.is_timed()).count());
    }

    #[test]
    fn a_timed_case_without_the_cost_of_a_rule_is_refused() {
        let named = |case: &str| {
            let cases = [case.to_owned()];
            let ask = SelftestOptions { cases: &cases, rule_cost: None, ..ASK };
            scenario(&ask, &HostShape::flat(4))
        };
        assert!(named("filter").is_ok());
        let error = named("victim").unwrap_err().to_string();
        assert!(error.contains("case victim: the cost of a firewall rule"), "{error}");
    }

    #[test]
    fn streams_are_unique_and_what_a_host_lacks_is_not_made() {
        let mut streams: Vec<u64> = CASES.iter().map(|case| stream(case.id)).collect();
        streams.sort_unstable();
        streams.dedup();
        assert_eq!(streams.len(), CASES.len());
        assert_eq!(stream("nothing"), 31_820_004_838_738_423, "another draws other parameters");
        let lacks = [(Needs::Probes, "no BPF".to_owned())];
        let (made, not_made) =
            chosen(&SelftestOptions { seed: 1, lacks: &lacks, rule_cost: None, ..ASK });
        assert!(made.iter().all(|case| case.needs != Needs::Probes));
        assert!(!not_made.is_empty() && not_made.iter().all(|(_, why)| *why == "no BPF"));
        assert_eq!(made.len() + not_made.len(), CASES.len());
    }
}
