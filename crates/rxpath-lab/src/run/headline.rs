//! The one or two sentences at the top of a run.

use std::collections::BTreeSet;

use rxpath_core::SortFew;
use rxpath_core::number::grouped;
use rxpath_core::units::si;
use rxpath_record::comparison::{Comparison, Outcome};
use rxpath_record::ledger::Balances;
use rxpath_record::manifest::{Manifest, Status, Trial};
use rxpath_record::metric::{self, is_share};
use rxpath_record::verdict::Stage;

use super::disturbed;
use crate::trial::compose::SENDER_LIMIT;

/// The headline: the largest decided difference and the limit of the variant it leads to.
pub fn of(manifest: &Manifest) -> String {
    let mut said = Vec::new();
    if manifest.status == Status::Interrupted {
        said.push("Interrupted; this is what was measured until then.".to_owned());
    }
    said.extend(sender_was_the_limit(manifest).or_else(|| sender_limit(manifest)));
    let (noisy, all) = disturbed::noisy(manifest);
    if noisy > 0 {
        said.push(format!("Too noisy to conclude from: {noisy} of {all} trials are of grade D."));
    }
    let largest = manifest.comparisons.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)));
    match (largest, &manifest.capacity) {
        (Some(largest), _) => said.push(difference(largest, manifest)),
        (None, Some(found)) => {
            said.push(format!("{} {}.", found.variant, found.sentence()));
            said.extend(found.limit().map(|limit| format!("{limit}.")));
        }
        (None, None) => said.extend(manifest.variants.iter().find_map(|variant| {
            let main = &manifest.main_metric;
            let rate = variant.metrics.get(main)?;
            let (unit, verb) = (metric::unit(main), metric::verb(main));
            Some(format!("{}: {} {unit} {verb}.", variant.name, si(rate.median)))
        })),
    }
    let left = Balances::of(manifest.trials.iter().map(|trial| &trial.ledger));
    let unit = manifest.trials.first().map_or("datagrams", |trial| trial.ledger.unit.word());
    let all_packets: u64 = manifest.trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    if all_packets > 0 {
        if left.all_closed() {
            let (all, accounted) = (grouped(all_packets), left.accounted(unit));
            said.push(format!("All {all} {unit} of all trials {accounted}."));
        }
        if left.missing_packets > 0 {
            let (lost, all) = (left.unaccounted(), grouped(all_packets));
            said.push(capitalized(&format!("{lost} of {all} {unit} are not accounted for.")));
        }
        if left.excess_packets > 0 {
            let more = grouped(left.excess_packets);
            said.push(format!("{more} more {unit} arrived than were sent."));
        }
        if left.unknown > 0 {
            let (of, all) = (left.unknown, left.ledgers);
            said.push(format!(
                "Whether the ledger closes is not known for {of} of {all} trials: a figure of it has only bounds."
            ));
        }
    }
    said.join(" ")
}

/// That a sender was the limit, as its last trial says it: then nothing below is the receiver's.
fn sender_limit(manifest: &Manifest) -> Option<String> {
    let names: BTreeSet<&str> = manifest.trials.iter().map(|it| it.variant.as_str()).collect();
    let mut counted: Vec<&Trial> =
        names.into_iter().flat_map(|name| manifest.counted(name)).collect();
    counted.sort_few_by_key(|trial| trial.trial);
    let of = |trial: &&Trial| {
        let limit = trial.warnings.iter().find(|warning| warning.code == SENDER_LIMIT)?;
        Some((trial.variant.clone(), limit.text.clone()))
    };
    let short: Vec<_> = counted.iter().filter_map(of).collect();
    let (variant, text) = short.last()?;
    let (some, all) = (short.len(), counted.len());
    Some(format!("In {some} of {all} trials a sender is the limit; last, of `{variant}`: {text}."))
}

/// Between hosts the most common mistake: the trials show nothing of the receiver but that it takes what was sent.
fn sender_was_the_limit(manifest: &Manifest) -> Option<String> {
    let verdicts = manifest.variants.iter().filter_map(|it| Some((&it.name, it.verdict.as_ref()?)));
    let mut of_senders = verdicts.filter(|(_, verdict)| verdict.stage == Stage::Sender);
    let (name, first) = of_senders.next().filter(|_| !manifest.hosts.is_empty())?;
    let (count, all) = (1 + of_senders.count(), manifest.variants.len());
    if all == 1 {
        return Some(format!("{}.", capitalized(&first.sentence)));
    }
    // Others may be limited by another sender, for another reason.
    let which = if count > 1 { "first, " } else { "" };
    let sentence = &first.sentence;
    Some(format!(
        "In {count} of {all} variants a sender is the limit; {which}of `{name}`: {sentence}."
    ))
}

/// With a capital at its beginning.
fn capitalized(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// Decided differences come before undecided ones, larger before smaller.
fn weight(comparison: &Comparison) -> f64 {
    let effect = &comparison.effect;
    let decided = if effect.outcome == Outcome::Inconclusive { 0.0 } else { 1000.0 };
    let size = match (effect.change(), effect.ratio) {
        (Some(change), _) if is_share(&comparison.metric) => WHOLE * change.value.abs(),
        (None, Some(ratio)) => ratio.max(f64::MIN_POSITIVE).ln().abs(),
        _ => 0.0,
    };
    decided + size
}

/// A share that grows from nothing to all of it is as large a difference as a factor of 20.
const WHOLE: f64 = 3.0;

fn difference(comparison: &Comparison, manifest: &Manifest) -> String {
    let Comparison { variant, base, metric, .. } = comparison;
    let median = |name: &str| Some(manifest.summary(name)?.metrics.get(metric)?.median);
    let values = match (median(base), median(variant)) {
        (Some(from), Some(to)) => format!("{} to {}, ", number(metric, from), number(metric, to)),
        _ => String::new(),
    };
    format!("{metric} from `{base}` to `{variant}`: {values}{}.", comparison.finding())
}

fn number(metric: &str, value: f64) -> String {
    match value {
        value if is_share(metric) => format!("{:.2} %", value * 100.0),
        value if value.abs() < 1.0 => format!("{value:.4}"),
        value => si(value),
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::{PathSide, Warning};
    use rxpath_diagnose::diagnose;
    use rxpath_record::evidence::WindowEvidence;
    use rxpath_record::ledger::{Ledger, RemainderBounds};
    use rxpath_record::manifest::{HostPart, VariantSummary};
    use rxpath_record::verdict::DiagnosisVerdict;

    use super::*;

    #[test]
    fn a_sender_that_was_the_limit_between_hosts_is_said_first() {
        let verdict = |stage, sentence: &str| {
            let sentence = sentence.to_owned();
            Some(DiagnosisVerdict { stage, sentence, ..diagnose(&WindowEvidence::default()) })
        };
        let variant =
            |verdict| VariantSummary { name: "base".into(), verdict, ..VariantSummary::default() };
        let sender = variant(verdict(Stage::Sender, "the sender gen1 is the limit: its CPU"));
        let ring = variant(verdict(Stage::Ring, "the device ring is the limit"));
        let mut manifest = Manifest { variants: vec![ring, sender.clone()], ..Manifest::default() };
        assert_eq!(sender_was_the_limit(&manifest), None, "in the lab the verdict says it");
        manifest.hosts = [("gen1".to_owned(), HostPart::of(PathSide::Tx))].into();
        let said = of(&manifest);
        let first = "In 1 of 2 variants a sender is the limit; of `base`: the sender gen1 is the limit: its CPU. ";
        assert!(format!("{said} ").starts_with(first), "{said}");
        // The reason of one is not that of the other.
        let sentence = "the sender gen2 is the limit: its link";
        let other = variant(verdict(Stage::Sender, sentence));
        manifest.variants = vec![sender.clone(), other];
        let first = "In 2 of 2 variants a sender is the limit; first, of `base`: the sender gen1";
        assert!(of(&manifest).starts_with(first), "{}", of(&manifest));
        manifest.variants = vec![sender];
        assert!(of(&manifest).starts_with("The sender gen1 is the limit: its CPU."));
        manifest.variants.clear();
        assert_eq!(sender_was_the_limit(&manifest), None);
    }

    #[test]
    fn a_ledger_within_bounds_is_one_sentence_that_can_be_true() {
        let trial = |most_packets| {
            let bounds = RemainderBounds { least_packets: -5, most_packets };
            let ledger = Ledger {
                offered_packets: 100,
                unaccounted_packets: None,
                unaccounted_bounds: Some(bounds),
                ..Ledger::default()
            };
            Trial { variant: "base".into(), ledger, ..Trial::default() }
        };
        let said = |most| of(&Manifest { trials: vec![trial(most)], ..Manifest::default() });
        let wanted = "All 100 datagrams of all trials may be accounted for: 1 of 1 ledgers close within bounds only, and up to \
                      41 datagrams may be in no counter.";
        assert!(said(41).ends_with(wanted), "{}", said(41));
        assert!(said(0).ends_with("trials are accounted for."), "{}", said(0));
    }

    #[test]
    fn a_sender_that_was_the_limit_comes_before_any_difference() {
        let text = "gen1 is the limit: target 5M/s, offered 2.1M/s, CPU 3 100 % busy";
        let warning = Warning::new(SENDER_LIMIT, text);
        let trial = |warnings| Trial { variant: "base".into(), warnings, ..Trial::default() };
        let void = Trial { void: Some("noise".into()), ..trial(vec![warning.clone()]) };
        let trials = vec![trial(vec![warning.clone()]), trial(Vec::new()), void];
        // The A/A trial is no part of the figures.
        let later = trials.into_iter().map(|trial| Trial { block: 1, ..trial });
        let trials = [trial(vec![warning])].into_iter().chain(later).collect();
        let said = of(&Manifest { trials, ..Manifest::default() });
        let wanted = format!("In 1 of 2 trials a sender is the limit; last, of `base`: {text}.");
        assert!(said.starts_with(&wanted), "{said}");
    }
}
