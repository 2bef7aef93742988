//! The one or two sentences at the top of a run.

use rxpath_core::units::si;
use rxpath_record::manifest::{Comparison, Manifest, Outcome, Status};
use rxpath_stats::metric;

/// The headline: the largest decided difference and the limit of the variant it leads to.
pub fn of(manifest: &Manifest) -> String {
    let mut said = Vec::new();
    if manifest.status == Status::Interrupted {
        said.push("Interrupted; this is what was measured until then.".to_owned());
    }
    match manifest.comparisons.iter().max_by(|a, b| weight(a).total_cmp(&weight(b))) {
        Some(largest) => said.push(difference(largest, manifest)),
        None => said.extend(manifest.variants.iter().find_map(|variant| {
            let main = &manifest.main_metric;
            let rate = variant.metrics.get(main)?;
            let (unit, verb) = (metric::unit(main), metric::verb(main));
            Some(format!("{}: {} {unit} {verb}.", variant.name, si(rate.median)))
        })),
    }
    let lost: i64 =
        manifest.trials.iter().map(|trial| trial.ledger.unaccounted_packets.abs()).sum();
    let unit = manifest.trials.first().map_or("datagrams", |trial| trial.ledger.unit.word());
    let all_packets: u64 = manifest.trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    if all_packets > 0 {
        let all = if lost == 0 {
            format!("All {all_packets} {unit} of all trials are accounted for.")
        } else {
            format!("{lost} of {all_packets} {unit} are not accounted for.")
        };
        said.push(all);
    }
    said.join(" ")
}

/// Decided differences come before undecided ones, larger before smaller.
fn weight(comparison: &Comparison) -> f64 {
    let decided = if comparison.outcome == Outcome::Inconclusive { 0.0 } else { 1000.0 };
    decided + comparison.ratio.max(f64::MIN_POSITIVE).ln().abs()
}

fn difference(comparison: &Comparison, manifest: &Manifest) -> String {
    let median = |name: &str| {
        let variant = manifest.variants.iter().find(|variant| variant.name == name)?;
        Some(variant.metrics.get(&comparison.metric)?.median)
    };
    let interval = match comparison.interval {
        Some([low, high]) => format!(" (95 % interval {low:.2} to {high:.2})"),
        None => format!(
            " (range {:.2} to {:.2}, too few trials for an interval)",
            comparison.range[0], comparison.range[1]
        ),
    };
    let word = match comparison.outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Same => "the same",
        Outcome::Inconclusive => "inconclusive",
    };
    let values = match (median(&comparison.base), median(&comparison.variant)) {
        (Some(base), Some(variant)) => format!("{} to {}, ", number(base), number(variant)),
        _ => String::new(),
    };
    format!(
        "{} from `{}` to `{}`: {values}{:.2} times{interval}: {word}.",
        comparison.metric, comparison.base, comparison.variant, comparison.ratio
    )
}

fn number(value: f64) -> String {
    if value.abs() < 1.0 { format!("{value:.4}") } else { si(value) }
}
