//! Why the kernel dropped packets, by its own reasons, next to the ledger's counts.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::number::grouped;
use rxpath_record::ledger::DropReason;

use crate::prelude::*;

/// The section: nothing when no trial was watched.
pub(super) fn section(run: &Run) -> Option<Section> {
    let mut sums: BTreeMap<[&String; 5], u64> = BTreeMap::new();
    // Of the trials: a manifest that was salvaged may have no variants.
    let variants: BTreeSet<&String> =
        run.manifest.trials.iter().map(|trial| &trial.variant).collect();
    for variant in variants {
        let counted = run.manifest.counted(variant).into_iter();
        for reason in counted.flat_map(|trial| &trial.ledger.reasons) {
            let DropReason { side, reason: why, place, device, packets, .. } = reason;
            *sums.entry([variant, side, why, place, device]).or_default() += packets;
        }
    }
    let mut rows = Table::new("variant | side | reason | function | device | #packets");
    for (words, packets) in sums {
        rows.rows.push(words.map(String::clone).into_iter().chain([grouped(packets)]).collect());
    }
    (!rows.rows.is_empty()).then(|| Section {
        id: "reasons",
        title: "Why packets were dropped",
        lead: "The kernel's reason when it freed them (tracepoint skb:kfree_skb), summed over a variant's trials (those of \
               A/A only where it has no others). A buffer that GSO or GRO filled with several datagrams is one packet here.",
        body: html! { (table(&rows, "Drops by reason")) },
    })
}

#[cfg(test)]
mod tests {
    use rxpath_record::ledger::Ledger;
    use rxpath_record::manifest::{Manifest, Trial, VariantSummary};

    use super::*;

    #[test]
    fn drops_of_trials_that_are_in_no_median_are_not_added_also_without_variants() {
        let trial = |block, packets, void: Option<&str>| {
            let why = DropReason { reason: "NO_SOCKET".into(), packets, ..DropReason::default() };
            let ledger = Ledger { reasons: vec![why], ..Ledger::default() };
            let void = void.map(str::to_owned);
            Trial { variant: "base".into(), block, void, ledger, ..Trial::default() }
        };
        let manifest = Manifest {
            variants: vec![VariantSummary { name: "base".into(), ..VariantSummary::default() }],
            trials: vec![
                trial(0, 7_000, None),
                trial(0, 7_000, None),
                trial(1, 1_500, None),
                trial(2, 900, Some("noise")),
                trial(2, 2_500, None),
            ],
            ..Manifest::default()
        };
        let salvaged = Manifest { variants: Vec::new(), ..manifest.clone() };
        for manifest in [manifest, salvaged] {
            let run = Run {
                directory: "r".into(),
                manifest,
                environment: None,
                events: Vec::new(),
                samples: Vec::new(),
                problems: Vec::new(),
            };
            let page = section(&run).unwrap().body.0;
            assert!(page.contains("NO_SOCKET") && page.contains("4,000"), "{page}");
        }
    }
}
