//! Puts the terms together: contradictions, bounds, the sum, the notes.

use super::foreign::foreign_at_both_ends;
use super::prelude::*;
use super::{
    Balance, Ledger, aggregates, arriving, bypass, flow, fragments, interval, sending, shared, udp,
    wire,
};

impl Ledger {
    /// Where every datagram of a trial went.
    ///
    /// `moved` spans the whole trial, between two readings of stable counters.
    ///
    /// The sum closes only if the owning counters say so. A derived term is a difference and would swallow an
    /// error of the counters it is made of; where an independent witness contradicts it, the ledger does not
    /// take the one of the two figures that closes the sum, and says so in a note.
    pub fn from_counters(input: &LedgerInput, moved: &Moved) -> Self {
        let (input, mut inexact) = aggregates::in_datagrams(input, moved);
        let input = &input;
        let view = View { input, moved };
        let units = Units::of(view);
        let mut terms = sending::terms(view, &units);
        terms.extend(wire::network(view, &units));
        terms.extend(bypass::terms(view));
        terms.extend(arriving::terms(view, &units));
        let mut notes = moved.notes_of_gaps(&input.path.wanted_counters());
        fragments::in_datagrams(view, &mut terms, &mut notes);
        terms.extend(udp::terms(view, &units));
        shared::bound(view, &units, &mut terms);
        let base = input.sender.offered_packets as i64
            - input.receiver.delivered_packets as i64
            - in_flight(input) as i64;
        notes.extend(bypass::contradictions(view));
        interval::decide(view, &units, base, &mut terms, &mut notes);
        contradictions(&mut terms, base, &mut notes);
        notes.extend(routing_unwatched(view, &terms));
        let unaccounted = base - credited(&terms);
        for term in &terms {
            disagreements(term, &mut notes);
        }
        inexact.extend(fragments::offered(view));
        wire::ends_of_all(view, &mut inexact);
        inexact.retain(|end| !end.is_exact());
        let mut ledger = Self::default();
        let raised = interval::raised(input, terms.iter().map(Term::raised));
        if inexact.is_empty() {
            let room = interval::room(terms.iter().map(Term::room));
            ledger.leave_over(unaccounted, room, raised);
        } else {
            ledger.unaccounted_packets = None;
        }
        match ledger.balance() {
            Balance::Missing(_) | Balance::Excess(_) => {
                notes.extend(wire::unknown(view));
                notes.extend(flow::gaps(view, &units));
            }
            Balance::Within(_) | Balance::Unknown if inexact.is_empty() => {
                notes.push(within(unaccounted + raised, ledger.unaccounted_bounds.is_some()));
            }
            _ => {}
        }
        let mut drops: Vec<_> = terms.into_iter().filter_map(Term::into_drop).collect();
        drops.sort_few_by_key(|drop| drop.place);
        notes.extend(wire::counted_there(moved));
        Self {
            offered_packets: input.sender.offered_packets,
            sent_packets: input.sender.sent_packets,
            delivered_packets: input.receiver.delivered_packets,
            drops,
            in_flight_packets: in_flight(input),
            foreign_packets: foreign(view),
            inexact,
            notes,
            ..ledger
        }
    }

    /// Datagrams lost at `place`.
    pub fn lost_at(&self, place: super::Place) -> u64 {
        self.drops.iter().filter(|drop| drop.place == place).map(|drop| drop.packets).sum()
    }

    /// Datagrams lost at all places.
    pub fn lost_packets(&self) -> u64 {
        self.drops.iter().map(|drop| drop.packets).sum()
    }
}

fn in_flight(input: &LedgerInput) -> u64 {
    input.receiver.in_flight_packets + input.sender.queued_packets
}

/// What is said of a gap that may be nothing but what terms with bounds leave open.
fn within(gap: i64, is_bounded: bool) -> String {
    let whether = if is_bounded {
        "the ledger closes within them"
    } else {
        "whether all are accounted for is not known"
    };
    let gap = signed(gap);
    format!("{gap} datagrams lie within the bounds of what the places lost: {whether}")
}

fn credited(terms: &[Term]) -> i64 {
    terms.iter().map(Term::credited).sum()
}

/// What the links, or hosts that others use too, carried that the workload did not send.
fn foreign(view: View<'_>) -> u64 {
    if view.is_shared() {
        return foreign_at_both_ends(view).max(0).unsigned_abs();
    }
    let at = |side| view.foreign_at_ip(side) + view.foreign_family(side);
    (at(PathSide::Rx) + at(PathSide::Tx)).max(0).unsigned_abs()
}

fn contradictions(terms: &mut [Term], base: i64, notes: &mut Vec<String>) {
    for at in 0..terms.len() {
        let closes = base == credited(terms);
        let term = &mut terms[at];
        if !term.contradicted() {
            continue;
        }
        let witness = term.witness.unwrap_or(0);
        notes.push(format!(
            "{} is {}, and what can cause it says {}",
            term.counter,
            signed(term.datagrams),
            signed(witness)
        ));
        if closes {
            term.datagrams = witness;
        }
    }
}

/// Routing refuses packets without a counter: where its reasons are not watched, that is a gap with a name.
fn routing_unwatched(view: View<'_>, terms: &[Term]) -> Option<String> {
    let unexplained = |term: &&Term| {
        term.place == Place::Netfilter
            && term.witness.is_some_and(|witness| witness < term.vanished)
    };
    let term = terms.iter().find(unexplained).filter(|_| view.input.reasoned.is_none())?;
    Some(format!(
        "packets that came to IP and were dropped by no rule: {}; routing refuses a martian source, or a group that nobody joined, \
         without a counter; with --observe drops the kernel's reasons tell",
        signed(term.vanished - term.witness.unwrap_or(0))
    ))
}

fn disagreements(term: &Term, notes: &mut Vec<String>) {
    if term.datagrams < 0 && term.witness.is_none() {
        notes.push(format!(
            "{} is {}: its counters contradict each other",
            term.counter,
            signed(term.datagrams)
        ));
    }
    for check in term.checks.iter().filter(|check| !check.agrees) {
        let note = format!(
            "{} moved by {}, which does not agree with {}",
            check.counter,
            grouped(check.packets),
            term.counter
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}
