//! Why the kernel dropped packets, by its own reasons, next to the ledger's counts.

use std::collections::BTreeMap;

use rxpath_core::number::grouped;
use rxpath_record::ledger::DropReason;

use crate::prelude::*;

/// The section: nothing when no trial was watched.
pub(super) fn section(run: &Run) -> Option<Section> {
    let mut sums: BTreeMap<[&String; 5], u64> = BTreeMap::new();
    let trials = run.manifest.trials.iter().filter(|trial| trial.void.is_none());
    for trial in trials {
        for reason in &trial.ledger.reasons {
            let DropReason { side, reason: why, place, device, packets, .. } = reason;
            *sums.entry([&trial.variant, side, why, place, device]).or_default() += packets;
        }
    }
    let mut rows = Table::new("variant | side | reason | function | device | #packets");
    for (words, packets) in sums {
        rows.rows.push(words.map(String::clone).into_iter().chain([grouped(packets)]).collect());
    }
    (!rows.rows.is_empty()).then(|| Section {
        id: "reasons",
        title: "Why packets were dropped",
        lead: "The kernel's reason when it freed them (tracepoint skb:kfree_skb), summed over all trials of a variant. A \
               buffer that GSO or GRO filled with several datagrams is one packet here.",
        body: html! { (table(&rows, "Drops by reason")) },
    })
}
