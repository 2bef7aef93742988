//! The connection tracking table is full: each packet of a new flow is dropped.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let conntrack = view.raw.conntrack?;
    let lost = view.lost_in_conntrack();
    if !view.is_loss_at(Place::Netfilter, lost) {
        return None;
    }
    let full = conntrack.entries_max.filter(|max| conntrack.entries_count >= *max);
    let table = match conntrack.entries_max {
        Some(max) => format!(
            "the table holds {} entries of {} at most; evicted to make space: {}",
            count(conntrack.entries_count),
            count(max),
            count(conntrack.early_drops_count)
        ),
        None => format!(
            "the table holds {} entries; its maximum was not read",
            count(conntrack.entries_count)
        ),
    };
    let own = line(
        format!("connection tracking dropped {} packets", count(conntrack.drops_packets)),
        "nf_conntrack statistics: drop, all CPUs",
    );
    let sentence = match full {
        Some(max) => format!(
            "the connection tracking table is full: it holds {} entries, and {} of {} found no free entry",
            count(max),
            percent(view.share_at(Place::Netfilter, lost)),
            whose(view, Place::Netfilter)
        ),
        None => format!(
            "connection tracking is the limit: it made no entry for {} of {} and dropped them",
            percent(view.share_at(Place::Netfilter, lost)),
            whose(view, Place::Netfilter)
        ),
    };
    Some(
        Claim::new(
            Stage::ConntrackFull,
            // Entries can expire between the drops and the reading: then the counter alone tells.
            Confidence::strong_if(full.is_some()),
            &[Part::Ledger],
            sentence,
        )
        .losing_at(view, Place::Netfilter, lost)
        .because([own, line(table, "nf_conntrack statistics and nf_conntrack_max")])
        .because(drops(view, Place::Netfilter))
        .because([rates(view)])
        .remedy("do not track this traffic: a `notrack` rule in raw prerouting (nft), `-j CT --notrack` (iptables)")
        .remedy("a larger table: net.netfilter.nf_conntrack_max, some 320 bytes an entry, one value for the whole host; with it nf_conntrack_buckets")
        .remedy("shorter times for flows that have ended: net.netfilter.nf_conntrack_udp_timeout and similar"),
    )
}
