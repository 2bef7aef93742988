//! What a run says of its trials as a whole.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_record::comparison::{Comparison, JudgedBy, MeasuredEffect, NoiseFloor, Outcome};
use rxpath_record::manifest::{Manifest, Metric, Status, Trial, VariantSummary};
use serde_json::json;

use crate::story::Kind;
use crate::trial::verdict_of;

fn metric(trials: &[&Trial], name: &str) -> Metric {
    let values: Vec<f64> = trials.iter().filter_map(|t| t.metrics.get(name).copied()).collect();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let at =
        |n: usize| sorted.get(n.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN);
    let interval = (sorted.len() >= 5).then(|| [at(1), at(sorted.len() - 2)]);
    Metric { median: at(sorted.len() / 2), min: at(0), max: at(sorted.len()), interval, values }
}

pub fn manifest(id: &str, scenario: &str, kinds: &[Kind], trials: Vec<Trial>) -> Manifest {
    let variants: Vec<VariantSummary> = kinds
        .iter()
        .map(|kind| {
            let mine: Vec<&Trial> =
                trials.iter().filter(|t| t.variant == kind.name && t.void.is_none()).collect();
            let names =
                ["delivered_pps", "offered_pps", "loss_ratio", "receiver_cpu_ns_per_packet"];
            VariantSummary {
                name: kind.name.into(),
                what: kind.what.into(),
                settings: [(kind.setting.0.to_owned(), json!(kind.setting.1))].into(),
                trials_count: mine.len() as u32,
                metrics: names
                    .iter()
                    .filter(|_| !mine.is_empty())
                    .map(|n| ((*n).to_owned(), metric(&mine, n)))
                    .collect(),
                verdict: Some(verdict_of(kind)),
                ..VariantSummary::default()
            }
        })
        .collect();
    let both = |pair: &&[VariantSummary]| pair.iter().all(|v| v.trials_count > 0);
    let pairs = variants.windows(2).filter(both);
    let comparisons = pairs.map(|pair| compare(&pair[0], &pair[1])).collect();
    let words = ["rxpath", "run", scenario, "--set", "serve.size=32", "--trials", "6"];
    Manifest {
        schema: "rxpath/run/1.0".into(),
        run_id: id.into(),
        status: Status::Complete,
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        version: "0.1.0".into(),
        scenario: scenario.into(),
        question: "How many datagrams a second can one process receive, and what does each step of tuning add?".into(),
        expected: (kinds.len() > 1).then(|| "each step delivers more than the one before".into()),
        resolved: json!({"name": scenario, "load": {"size": 32, "threads": 1}, "serve": {"batch": 1}, "trials": {"seed": 4711}}),
        seed: 4711,
        started: "2026-11-21T00:12:07Z".into(),
        ended: Some("2026-11-21T00:13:31Z".into()),
        epoch_offset_ns: 1_795_219_115_000_000_000,
        noise_floor: (kinds.len() > 1).then(|| NoiseFloor {
            metric: "delivered_pps".into(),
            variant: kinds[0].name.into(),
            ratio: Some(1.0274),
            difference: None,
            trial_noise_ratio: None,
        }),
        capacity: None,
        predictions: Vec::new(),
        hosts: BTreeMap::new(),
        headline: headline(&variants),
        warnings: vec![Warning::new("two-cpus", "this host has 2 CPUs: placements on a third were left out")
            .because("the scenario asks for up to 4")
            .cure("run it on a host with more CPUs")],
        files: BTreeMap::new(),
        main_metric: "delivered_pps".into(),
        variants,
        trials,
        comparisons,
    }
}

fn headline(variants: &[VariantSummary]) -> String {
    let rate = |v: &VariantSummary| v.metrics.get("delivered_pps").map_or(f64::NAN, |m| m.median);
    match variants {
        [only] => format!(
            "{}: {:.3} million datagrams a second delivered; CPU 0 is full.",
            only.name,
            rate(only) / 1e6
        ),
        [first, .., last] => format!(
            "From {:.0} thousand to {:.2} million datagrams a second delivered to one process, {:.1} times as many. The \
             reader was the limit at first; at the end it is CPU 0, which sends and runs the receive softirq.",
            rate(first) / 1e3,
            rate(last) / 1e6,
            rate(last) / rate(first)
        ),
        [] => String::new(),
    }
}

fn compare(base: &VariantSummary, variant: &VariantSummary) -> Comparison {
    let of = |v: &VariantSummary| v.metrics["delivered_pps"].clone();
    let (base_rate, rate) = (of(base), of(variant));
    let ratio = rate.median / base_rate.median;
    let enough = rate.interval.is_some() && base_rate.interval.is_some();
    Comparison {
        metric: "delivered_pps".into(),
        base: base.name.clone(),
        variant: variant.name.clone(),
        effect: MeasuredEffect {
            ratio: Some(ratio),
            interval: enough.then_some([ratio * 0.972, ratio * 1.031]),
            range: Some([ratio * 0.94, ratio * 1.07]),
            difference: None,
            judged_by: JudgedBy::Ratio,
            outcome: if enough { Outcome::Better } else { Outcome::Inconclusive },
            inconclusive_because: None,
            same_within: None,
            control: None,
        },
        pairs_count: variant.trials_count.min(base.trials_count),
        expected: Some("up".into()),
        expectation: None,
        published: None,
    }
}
