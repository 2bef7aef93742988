//! A run's result as text: a table of variants, where packets were lost, what limits each, what differs.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use rxpath_core::units::si;
use rxpath_record::ledger::Place;
use rxpath_record::manifest::{Comparison, Manifest, Outcome, Trial, VariantSummary};

/// The whole summary.
pub fn summary(manifest: &Manifest) -> String {
    let mut out = format!("{}\n\n{}\n\n", manifest.headline, table(manifest));
    for variant in &manifest.variants {
        if let Some(verdict) = &variant.verdict {
            out += &format!("{}: {}\n", variant.name, verdict.sentence);
        }
    }
    out += "\n";
    for comparison in &manifest.comparisons {
        out += &format!("{}\n", difference(comparison));
    }
    if let Some(noise) = &manifest.noise_floor {
        out += &format!(
            "noise floor: `{}` against itself gave {:.3} times the {}\n",
            noise.variant, noise.ratio, noise.metric
        );
    }
    out + &accounted(manifest)
}

fn table(manifest: &Manifest) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "variant",
        "trials",
        "delivered/s",
        "range",
        "offered/s",
        "lost",
        "ns/datagram (receiver)",
    ]);
    for variant in &manifest.variants {
        if let Some(why) = &variant.not_available {
            table.add_row([variant.name.as_str(), "0", "not available here", why, "", "", ""]);
            continue;
        }
        let median = |name: &str| variant.metrics.get(name).map(|metric| metric.median);
        let range =
            variant.metrics.get("delivered_pps").map(|m| format!("{} to {}", si(m.min), si(m.max)));
        table.add_row([
            variant.name.clone(),
            variant.trials_count.to_string(),
            median("delivered_pps").map(si).unwrap_or_default(),
            range.unwrap_or_default(),
            median("offered_pps").map(si).unwrap_or_default(),
            median("loss_ratio").map(percent).unwrap_or_default(),
            median("receiver_cpu_ns_per_packet").map(|ns| format!("{ns:.0}")).unwrap_or_default(),
        ]);
    }
    table
}

fn percent(ratio: f64) -> String {
    format!("{:.2} %", ratio * 100.0)
}

fn difference(comparison: &Comparison) -> String {
    let interval = match comparison.interval {
        Some([low, high]) => format!("95 % interval {low:.3} to {high:.3}"),
        None => format!(
            "range {:.3} to {:.3}, too few blocks for an interval",
            comparison.range[0], comparison.range[1]
        ),
    };
    let word = match comparison.outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Same => "same",
        Outcome::Inconclusive => "inconclusive",
    };
    format!(
        "{} / {}: {:.3} times the {} ({interval}): {word}",
        comparison.variant, comparison.base, comparison.ratio, comparison.metric
    )
}

/// Offered, delivered and lost of a variant, in one line.
pub fn rates(variant: &VariantSummary) -> String {
    let median = |name: &str| variant.metrics.get(name).map_or(0.0, |metric| metric.median);
    format!(
        "{} datagrams/s offered, {} delivered, {} of offered lost",
        si(median("offered_pps")),
        si(median("delivered_pps")),
        percent(median("loss_ratio"))
    )
}

/// Where the datagrams of a variant's trials were lost, one line per place.
pub fn where_lost(manifest: &Manifest, variant: &str) -> String {
    let trials: Vec<&Trial> = manifest
        .trials
        .iter()
        .filter(|trial| trial.variant == variant && trial.void.is_none())
        .collect();
    let mut places: BTreeMap<Place, (u64, String)> = BTreeMap::new();
    for drop in trials.iter().flat_map(|trial| &trial.ledger.drops) {
        let entry = places.entry(drop.place).or_default();
        entry.0 += drop.packets;
        entry.1.clone_from(&drop.counter);
    }
    let offered: u64 = trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    let line = |(place, (packets, counter)): (&Place, &(u64, String))| {
        let share = if offered > 0 { *packets as f64 / offered as f64 } else { 0.0 };
        format!(
            "  lost at {}: {packets} datagrams, {} of offered [{counter}]\n",
            word(*place),
            percent(share)
        )
    };
    places.iter().filter(|(_, (packets, _))| *packets > 0).map(line).collect()
}

fn word(place: Place) -> String {
    // The names in results are kebab case; people read words.
    serde_json::to_value(place)
        .ok()
        .and_then(|v| v.as_str().map(|s| s.replace('-', " ")))
        .unwrap_or_default()
}

/// The sum of all ledgers in one sentence.
pub fn accounted(manifest: &Manifest) -> String {
    let offered: u64 = manifest.trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    let missing: i64 =
        manifest.trials.iter().map(|trial| trial.ledger.unaccounted_packets.abs()).sum();
    format!(
        "ledger: {offered} datagrams offered in {} trials, {missing} unaccounted\n",
        manifest.trials.len()
    )
}
