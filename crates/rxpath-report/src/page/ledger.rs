//! The ledger section: for each variant a flow picture, the sum, and the counters behind it.

use rxpath_record::ledger::{Balance, Balances, Drop, Figure, Ledger, LedgerUnit};
use rxpath_record::manifest::Trial;
use rxpath_record::metric::verb;

use crate::prelude::*;

/// The section, or nothing without a valid trial.
pub(super) fn section(run: &Run) -> Option<Section> {
    let shown = run.shown();
    (!shown.is_empty()).then(|| Section {
        id: "ledger",
        title: "Where the packets went",
        lead: match shown[0].1.ledger.unit {
            LedgerUnit::Datagram => {
                "Every datagram of a trial, from the sender's call to the application's. Widths and percentages are \
                 shares of offered. The picture shows each variant's median trial."
            }
            LedgerUnit::Segment => {
                "Every TCP segment of a trial, in both directions, from the sending TCP to the receiving one. Widths \
                 and percentages are shares of the segments sent, retransmissions among them. The picture shows each \
                 variant's median trial."
            }
        },
        body: html! {
            (balance(run))
            div.rivers {
                @for (variant, trial) in &shown {
                    article {
                        h3 { (variant.name) }
                        p.quiet {
                            "trial " (trial.number())
                            @if trial.ledger.unit == LedgerUnit::Datagram {
                                ", offered " (number::pps(trial.rates_pps()[0]))
                                ", delivered " (number::pps(trial.rates_pps()[1]))
                            } @else if let Some(rate) = trial.metrics.get(run.main_metric()) {
                                ", " (number::metric(run.main_metric(), *rate)) " " (verb(run.main_metric()))
                            }
                            ", " (words::loop_kind(trial.loop_kind)) " loop"
                        }
                        (super::river::river(&trial.ledger))
                        (closes(&trial.ledger))
                        (may_be_lost(&trial.ledger))
                        (fold("The counters behind it", &counters(trial)))
                    }
                }
            }
        },
    })
}

/// Whether the ledgers of all valid trials close.
fn balance(run: &Run) -> Markup {
    let trials = run.manifest.trials.iter().filter(|t| t.void.is_none());
    let ledgers: Vec<&Ledger> = trials.map(|trial| &trial.ledger).collect();
    let offered: u64 = ledgers.iter().map(|l| l.offered_packets).sum();
    let left = Balances::of(ledgers.iter().copied());
    let open = left.ledgers - left.closed - left.unknown;
    html! {
        p.balance.open[!left.all_closed()] {
            @if left.all_closed() {
                b { @if left.most_packets > 0 { "The ledger closes within bounds." } @else { "The ledger closes." } }
                " All " (number::count(offered)) " " (run.unit()) " offered in " (ledgers.len())
                @if ledgers.len() == 1 { " valid trial" } @else { " valid trials" }
                (run.manifest.in_medians(ledgers.len())) " " (left.accounted(run.unit())) "."
            } @else if open > 0 {
                b { "The ledger does not close." }
                @if left.missing_packets > 0 {
                    " In " (open) " of " (ledgers.len()) " valid trials " (left.unaccounted())
                    " " (run.unit()) " are not accounted for, "
                    (number::percent(left.missing_packets as f64, offered as f64))
                    " of " (number::count(offered)) " offered."
                }
                @if left.excess_packets > 0 {
                    " " (number::count(left.excess_packets)) " more " (run.unit()) " arrived than were sent."
                }
            }
            @if left.unknown > 0 {
                " Whether it closes is not known for " (left.unknown) " of " (ledgers.len())
                " valid trials: one of their counts has only bounds."
            }
        }
    }
}

fn closes(ledger: &Ledger) -> Markup {
    let dropped: u64 = ledger.drops.iter().map(|drop| drop.packets).sum();
    html! {
        p.sum {
            span { (ledger.bound_word(Figure::Offered)) (number::count(ledger.offered_packets)) " offered" }
            span { "= " (ledger.bound_word(Figure::Delivered)) (number::count(ledger.delivered_packets)) " delivered" }
            span { "+ " (number::count(dropped)) " dropped" }
            span { "+ " (number::count(ledger.in_flight_packets)) " in flight" }
            span.missing[!matches!(ledger.balance(), Balance::Closed | Balance::Within(_))] {
                @match ledger.balance() {
                    Balance::Closed | Balance::Within(_) | Balance::Missing(_) => {
                        "+ " (ledger.unaccounted()) " unaccounted"
                    }
                    Balance::Excess(more) => { (number::count(more)) " more arrived than were sent" }
                    Balance::Unknown => { "the remainder is not known" }
                }
            }
        }
    }
}

/// Places that the picture leaves out: nothing surely was lost there.
fn may_be_lost(ledger: &Ledger) -> Markup {
    let offered = ledger.offered_packets;
    let possible = |drop: &&Drop| drop.packets == 0 && drop.range().between(offered).is_some();
    html! {
        @for drop in ledger.drops.iter().filter(possible) {
            p.quiet {
                (number::loss(drop, offered).0) " " (ledger.unit.word()) " may be lost at "
                (drop.place.words().noun) "."
            }
        }
    }
}

fn counters(trial: &Trial) -> Markup {
    let ledger = &trial.ledger;
    let mut drops = Table::new(&format!(
        "place | owning counter | #{} | #of offered | read as | cross-checks",
        ledger.unit.word()
    ));
    for drop in &ledger.drops {
        let checks = drop.cross_checks.iter().map(|check| {
            let word = if check.agrees { "agrees" } else { "differs" };
            format!("{} {} ({word})", check.counter, number::count(check.packets))
        });
        let read = match (drop.derived, drop.exact) {
            (false, true) => "exact",
            (true, true) => "derived, exact",
            (false, false) => "with bounds",
            (true, false) => "derived, with bounds",
        };
        let (packets, share) = number::loss(drop, ledger.offered_packets);
        drops.rows.push(vec![
            drop.place.words().short.into(),
            drop.counter.clone(),
            packets,
            share,
            read.into(),
            checks.collect::<Vec<_>>().join(", "),
        ]);
    }
    let mut moved = Table::new("counter | #changed by");
    let values = trial.moved.values.iter();
    moved.rows.extend(values.map(|(name, by)| vec![name.clone(), number::signed(*by)]));
    let gaps = trial.moved.gaps.iter();
    moved.rows.extend(gaps.map(|(name, why)| vec![name.clone(), format!("not read: {why}")]));
    html! {
        @if drops.rows.is_empty() { p { "No losses." } } @else { (table(&drops, "Drops by place")) }
        p { "Packets of other traffic: " (number::count(ledger.foreign_packets)) "." }
        @for bounds in &ledger.inexact { p { (bounds.to_string()) } }
        @for note in &ledger.notes { p { (note) } }
        @if !moved.rows.is_empty() { h4 { "All counters that changed" } (table(&moved, "Counters that changed")) }
    }
}

#[cfg(test)]
mod tests {
    use rxpath_record::ledger::{PacketBounds, Place};

    use super::*;

    #[test]
    fn a_place_that_only_may_have_lost_is_named_below_the_picture() {
        let of = |packets, most| {
            let bounds = PacketBounds { least_packets: 0, most_packets: Some(most) };
            let drop = Drop::counted(Place::Network, "tx - rx".into(), packets);
            let drops = vec![Drop { exact: false, bounds: Some(bounds), ..drop }];
            may_be_lost(&Ledger { offered_packets: 300_000, drops, ..Ledger::default() }).0
        };
        let said = of(0, 40_000);
        let wanted = "up to 40,000 datagrams may be lost at the network between the cards.";
        assert!(said.contains(wanted), "{said}");
        // The picture has it, and so few are none.
        assert_eq!((of(7, 40_000), of(0, 10)), (String::new(), String::new()));
    }
}
