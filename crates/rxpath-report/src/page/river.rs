//! The ledger as a picture: a river as wide as the remaining datagrams, with a branch at every place of loss.
//!
//! Widths are exact shares of the offered datagrams (a loss too small to see has the smallest visible width); all text
//! is next to the picture.

use rxpath_record::ledger::{Balance, Drop, Ledger, Place};

use crate::prelude::*;

/// One row of the picture.
struct Row<'a> {
    kind: Kind<'a>,
    /// Datagrams that enter the row from above.
    enters: f64,
    /// Datagrams that leave the river in it.
    leaves: f64,
}

enum Kind<'a> {
    Offered,
    Sent(u64),
    Lost(&'a Drop),
    InFlight(u64),
    Unaccounted(u64),
    Excess(u64),
    Delivered(u64),
}

/// The path of one trial's datagrams, from offered to delivered.
pub(super) fn river(ledger: &Ledger) -> Markup {
    let offered = ledger.offered_packets as f64;
    let rows = rows(ledger);
    html! {
        ol.river {
            @for row in &rows {
                li class=(class(&row.kind)) {
                    (water(row, offered))
                    div.what { (label(&row.kind)) }
                    div.how-many { (amount(&row.kind, ledger)) }
                }
            }
        }
    }
}

fn rows(ledger: &Ledger) -> Vec<Row<'_>> {
    let lost = |at_send: bool| {
        let of = move |drop: &&Drop| drop.packets > 0 && (drop.place == Place::SendCall) == at_send;
        ledger.drops.iter().filter(of).map(|drop| (Kind::Lost(drop), drop.packets as f64))
    };
    let flight = ledger.in_flight_packets;
    let steps = std::iter::once((Kind::Offered, 0.0))
        .chain(lost(true))
        .chain([(Kind::Sent(ledger.sent_packets), 0.0)])
        .chain(lost(false))
        .chain((flight > 0).then_some((Kind::InFlight(flight), flight as f64)))
        .chain(match ledger.balance() {
            Balance::Missing(lost) => Some((Kind::Unaccounted(lost), lost as f64)),
            Balance::Excess(more) => Some((Kind::Excess(more), 0.0)),
            Balance::Closed | Balance::Within(_) | Balance::Unknown => None,
        })
        .chain([(Kind::Delivered(ledger.delivered_packets), 0.0)]);
    let mut left = ledger.offered_packets as f64;
    let mut rows = Vec::new();
    for (kind, packets) in steps {
        let leaves = packets.clamp(0.0, left);
        rows.push(Row { kind, enters: left, leaves });
        left -= leaves;
    }
    rows
}

fn class(kind: &Kind) -> String {
    match kind {
        Kind::Offered | Kind::Sent(_) => "flow".into(),
        Kind::Delivered(_) => "flow end".into(),
        Kind::Lost(drop) => format!("lost {}", drop.place.words().part),
        Kind::InFlight(_) => "lost flight".into(),
        Kind::Unaccounted(_) | Kind::Excess(_) => "lost missing".into(),
    }
}

/// Width of the drawing; the river takes 100 of it and the branches drift into the rest.
const DRIFT: f64 = 10.0;

fn water(row: &Row, offered: f64) -> Markup {
    let share = |packets: f64| if offered > 0.0 { packets / offered * 100.0 } else { 0.0 };
    let (before, gone) = (share(row.enters), share(row.leaves));
    let after = before - gone;
    let seen = if gone > 0.0 { gone.max(0.9) } else { 0.0 };
    let (right, drifted, far) = (after + seen, after + DRIFT, after + DRIFT + seen);
    let branch = format!(
        "M{after:.2},0 C{after:.2},22 {drifted:.2},18 {drifted:.2},40 \
         L{far:.2},40 C{far:.2},18 {right:.2},22 {right:.2},0 Z"
    );
    let colour = match &row.kind {
        Kind::Lost(drop) => drop.place.words().part,
        Kind::InFlight(_) => "flight",
        _ => "missing",
    };
    html! {
        svg.water viewBox="0 0 112 40" preserveAspectRatio="none" aria-hidden="true" {
            @if after > 0.0 { rect x="0" y="0" width=(format!("{:.2}", after.max(0.4))) height="40" fill="var(--water)" {} }
            @if seen > 0.0 { path d=(branch) fill={ "url(#fall-" (colour) ")" } {} }
        }
    }
}

fn label(kind: &Kind) -> Markup {
    let (name, what) = match kind {
        Kind::Offered => ("Offered", "attempted by the sender"),
        Kind::Sent(_) => ("Sent", "accepted by the sender's kernel"),
        Kind::Delivered(_) => ("Delivered", "read by the application"),
        Kind::InFlight(_) => ("In flight", "still queued when the trial ended"),
        Kind::Unaccounted(_) => ("Not accounted for", "no counter explains them"),
        Kind::Excess(_) => ("More than sent", "more arrived than were sent"),
        Kind::Lost(drop) => {
            return html! {
                b { (drop.place.words().short) }
                span { code { (drop.counter) } @if drop.derived { " (derived)" } }
            };
        }
    };
    html! { b { (name) } span { (what) } }
}

fn amount(kind: &Kind, ledger: &Ledger) -> Markup {
    let base = ledger.offered_packets as f64;
    let flow = |packets: u64| {
        html! { b { (number::count(packets)) } span { (number::percent(packets as f64, base)) } }
    };
    match kind {
        Kind::Offered => html! { b { (number::count(ledger.offered_packets)) } span { "100 %" } },
        Kind::Sent(packets) | Kind::Delivered(packets) | Kind::InFlight(packets) => flow(*packets),
        Kind::Excess(packets) => flow(*packets),
        Kind::Unaccounted(packets) => {
            html! {
                b { (ledger.unaccounted()) }
                @if ledger.unaccounted_packets.is_some() { span { (number::percent(*packets as f64, base)) } }
            }
        }
        Kind::Lost(drop) => html! {
            b { @if drop.range().most_packets.is_none() { "≥ " } "\u{2212}" (number::count(drop.packets)) }
            span {
                @if let Some(between) = drop.range().between(ledger.offered_packets) { (between) }
                @else { (number::loss(drop, ledger.offered_packets).1) }
            }
        },
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
