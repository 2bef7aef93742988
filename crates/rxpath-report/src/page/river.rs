//! The ledger as a picture: a river as wide as the remaining datagrams, with a branch at every place of loss.
//!
//! Widths are exact shares of the offered datagrams (a loss too small to see has the smallest visible width); all text
//! is next to the picture.

use rxpath_record::ledger::{Balance, Drop, Ledger, Place};

use crate::prelude::*;

/// One row of the picture.
struct Row {
    class: String,
    label: Markup,
    amount: Markup,
    /// Datagrams that leave the river in it, in a branch of this colour.
    leaves: u64,
    colour: &'static str,
}

/// The path of one trial's datagrams, from offered to delivered.
pub(super) fn river(ledger: &Ledger) -> Markup {
    let offered = ledger.offered_packets as f64;
    let share = |packets: f64| if offered > 0.0 { packets / offered * 100.0 } else { 0.0 };
    let mut left = offered;
    let rows = rows(ledger).into_iter().map(|row| {
        let (enters, leaves) = (left, (row.leaves as f64).min(left));
        left -= leaves;
        (water([enters, leaves].map(share), row.colour), row)
    });
    html! {
        ol.river {
            @for (water, row) in rows {
                li class=(row.class) {
                    (water)
                    div.what { (row.label) }
                    div.how-many { (row.amount) }
                }
            }
        }
    }
}

fn rows(ledger: &Ledger) -> Vec<Row> {
    let (offered, flight) = (ledger.offered_packets, ledger.in_flight_packets);
    let share = |packets: u64| number::percent(packets as f64, offered as f64);
    let row = |class: &str, name: &str, what: &str, packets: u64| Row {
        class: class.to_owned(),
        label: html! { b { (name) } span { (what) } },
        amount: html! { b { (number::count(packets)) } span { (share(packets)) } },
        leaves: 0,
        colour: "missing",
    };
    let mut rows = vec![Row {
        amount: html! { b { (number::count(offered)) } span { "100 %" } },
        ..row("flow", "Offered", "attempted by the sender", offered)
    }];
    rows.extend(lost(ledger, true));
    rows.push(row("flow", "Sent", "accepted by the sender's kernel", ledger.sent_packets));
    rows.extend(lost(ledger, false));
    rows.extend((flight > 0).then(|| Row {
        leaves: flight,
        colour: "flight",
        ..row("lost flight", "In flight", "still queued when the trial ended", flight)
    }));
    rows.extend(match ledger.balance() {
        Balance::Missing(missing) => Some(Row {
            amount: html! {
                b { (ledger.unaccounted()) }
                @if ledger.unaccounted_packets.is_some() { span { (share(missing)) } }
            },
            leaves: missing,
            ..row("lost missing", "Not accounted for", "no counter explains them", missing)
        }),
        Balance::Excess(more) => {
            Some(row("lost missing", "More than sent", "more arrived than were sent", more))
        }
        Balance::Closed | Balance::Within(_) | Balance::Unknown => None,
    });
    rows.push(row("flow end", "Delivered", "read by the application", ledger.delivered_packets));
    rows
}

/// What the send call refused, or what was lost after it.
fn lost(ledger: &Ledger, at_send: bool) -> impl Iterator<Item = Row> {
    let of = move |drop: &&Drop| drop.packets > 0 && (drop.place == Place::SendCall) == at_send;
    ledger.drops.iter().filter(of).map(move |drop| {
        let (words, range) = (drop.place.words(), drop.range());
        Row {
            class: format!("lost {}", words.part),
            label: html! {
                b { (words.short) }
                span { code { (drop.counter) } @if drop.derived { " (derived)" } }
            },
            amount: html! {
                b { @if range.most_packets.is_none() { "≥ " } "\u{2212}" (number::count(drop.packets)) }
                span {
                    @if let Some(between) = range.between(ledger.offered_packets) { (between) }
                    @else { (number::loss(drop, ledger.offered_packets).1) }
                }
            },
            leaves: drop.packets,
            colour: words.part,
        }
    })
}

/// Width of the drawing; the river takes 100 of it and the branches drift into the rest.
const DRIFT: f64 = 10.0;

/// The river of a row, which enters it as wide as `before`, and its branch, as wide as `gone`.
fn water([before, gone]: [f64; 2], colour: &str) -> Markup {
    let after = before - gone;
    let seen = if gone > 0.0 { gone.max(0.9) } else { 0.0 };
    let (right, drifted, far) = (after + seen, after + DRIFT, after + DRIFT + seen);
    let branch = format!(
        "M{after:.2},0 C{after:.2},22 {drifted:.2},18 {drifted:.2},40 \
         L{far:.2},40 C{far:.2},18 {right:.2},22 {right:.2},0 Z"
    );
    html! {
        svg.water viewBox="0 0 112 40" preserveAspectRatio="none" aria-hidden="true" {
            @if after > 0.0 { rect x="0" y="0" width=(format!("{:.2}", after.max(0.4))) height="40" fill="var(--water)" {} }
            @if seen > 0.0 { path d=(branch) fill={ "url(#fall-" (colour) ")" } {} }
        }
    }
}

/// The falling branches' gradients, once in the page.
pub(super) fn gradients() -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" {
            defs {
                @for name in ["sender", "network", "device", "protocol", "socket", "flight", "missing"] {
                    linearGradient id={ "fall-" (name) } x1="0" y1="0" x2="0" y2="1" {
                        stop offset="0" stop-color={ "var(--" (name) ")" } {}
                        stop offset="0.55" stop-color={ "var(--" (name) ")" } stop-opacity="0.8" {}
                        stop offset="1" stop-color={ "var(--" (name) ")" } stop-opacity="0" {}
                    }
                }
            }
        }
    }
}
