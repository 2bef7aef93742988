//! Why the kernel dropped packets, by its own reasons, next to the ledger's counts.

use std::collections::BTreeMap;

use rxpath_core::number::grouped;
use rxpath_record::ledger::DropReason;

use crate::prelude::*;

/// The section: nothing when no trial was watched.
pub(super) fn section(run: &Run) -> Option<Section> {
    let mut sums: BTreeMap<(&str, &str, &str, &str, &str), u64> = BTreeMap::new();
    let trials = run.manifest.trials.iter().filter(|trial| trial.void.is_none());
    for trial in trials {
        for reason in &trial.ledger.reasons {
            *sums.entry(key(&trial.variant, reason)).or_default() += reason.packets;
        }
    }
    let mut rows = Table::new("variant | side | reason | function | device | #packets");
    for ((variant, side, reason, place, device), packets) in sums {
        let words = [variant, side, reason, place, device].map(str::to_owned);
        rows.rows.push(words.into_iter().chain([grouped(packets)]).collect());
    }
    (!rows.rows.is_empty()).then(|| Section {
        id: "reasons",
        title: "Why packets were dropped",
        lead: "The kernel's reason when it freed them (tracepoint skb:kfree_skb), summed over all trials of a variant. A \
               buffer that GSO or GRO filled with several datagrams is one packet here.",
        body: html! { (table(&rows, "Drops by reason")) },
    })
}

fn key<'r>(
    variant: &'r str,
    reason: &'r DropReason,
) -> (&'r str, &'r str, &'r str, &'r str, &'r str) {
    (variant, &reason.side, &reason.reason, &reason.place, &reason.device)
}
