//! Terms and remainders that are only known to lie between two values.
//!
//! Sequence numbers show how many datagrams were lost in all. Where every place has a term, that narrows the bounds of each:
//! no place can have lost more than the others leave, and each has lost at least what the others cannot have lost. A place
//! without a term may have lost the rest; then only the upper bounds get narrower. What two counters show of such a place
//! limits its loss: this much is left out of the lower bounds.
//!
//! What is lost beyond the lower bounds is shown at the places whose counters have it, before places where frames of others
//! may only hide it. Where the counters of several places have it, and none shows whose packets these were, no place shows it.
//!
//! What is shown of places beyond their lower bounds makes the sum close by itself. So the remainder is then no number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::prelude::*;
use super::{Drop, Ledger, arriving, foreign};

/// The least and the most that a number of packets can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketBounds {
    /// Surely so many.
    pub least_packets: u64,
    /// No more than these; `null` if nothing limits them.
    pub most_packets: Option<u64>,
}

/// The least and the most that a ledger's remainder can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemainderBounds {
    /// If each place lost the most that it can have lost.
    pub least_packets: i64,
    /// If each place lost the least.
    pub most_packets: i64,
}

impl PacketBounds {
    pub(super) fn of(least: i64, most: Option<i64>) -> Self {
        let least_packets = least.max(0).unsigned_abs();
        let most_packets = most.map(|most| most.max(0).unsigned_abs().max(least_packets));
        Self { least_packets, most_packets }
    }

    /// Both added; without a limit if one has none.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let most = self.most_packets.zip(other.most_packets);
        Self {
            least_packets: self.least_packets.saturating_add(other.least_packets),
            most_packets: most.map(|(one, other)| one.saturating_add(other)),
        }
    }

    /// A loss for people, next to what is shown of it: `12`, `12 (between 3 and 41)`, `up to 41` where nothing surely was lost,
    /// `at least 12`. Bounds that are narrow for what was offered are one number.
    pub fn around(self, packets: u64, offered_packets: u64) -> String {
        let shown = grouped(packets);
        match self.between(offered_packets) {
            Some(_) if packets == 0 => {
                format!("up to {}", grouped(self.most_packets.unwrap_or_default()))
            }
            Some(between) => format!("{shown} ({between})"),
            None if self.most_packets.is_none() => {
                format!("at least {}", grouped(self.least_packets))
            }
            None => shown,
        }
    }

    /// `between 3 and 41`, where both are known and one number is not as good.
    pub fn between(self, offered_packets: u64) -> Option<String> {
        let most = self.most_packets.filter(|_| !self.is_narrow(offered_packets))?;
        Some(format!("between {} and {}", grouped(self.least_packets), grouped(most)))
    }

    /// A loss as a share of what was offered; `None` where its bounds are not as good as one number, and where nothing was
    /// offered.
    pub fn share_ratio(self, packets: u64, offered_packets: u64) -> Option<f64> {
        let is_number = offered_packets > 0 && self.is_narrow(offered_packets);
        is_number.then(|| packets as f64 / offered_packets as f64)
    }

    /// Whether the bounds of a loss are so close that one number is as good; `offered_packets` is what was offered.
    pub fn is_narrow(self, offered_packets: u64) -> bool {
        let width = self.most_packets.map(|most| most - self.least_packets.min(most));
        width.is_some_and(|width| width <= foreign::narrow_packets(offered_packets).unsigned_abs())
    }
}

impl Drop {
    /// What surely was lost here, and what may have been.
    pub fn range(&self) -> PacketBounds {
        let most_packets = self.exact.then_some(self.packets);
        self.bounds.unwrap_or(PacketBounds { least_packets: self.packets, most_packets })
    }

    /// How much more than `packets` may have been lost; `None` if nothing limits it.
    pub(super) fn room(&self) -> Option<i64> {
        let more = self.range().most_packets?.saturating_sub(self.packets);
        Some(i64::try_from(more).unwrap_or(i64::MAX))
    }

    /// How much of `packets` only what is missing in all shows.
    pub(super) fn raised(&self) -> i64 {
        let raised = self.packets.saturating_sub(self.range().least_packets);
        i64::try_from(raised).unwrap_or(i64::MAX)
    }
}

/// How much more than what these add to the sum may have been lost; `None` if nothing limits it.
pub(super) fn room(each: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    each.into_iter().try_fold(0i64, |sum, more| Some(sum.saturating_add(more?)))
}

/// What is shown of these beyond their lower bounds, in all; zero if so few make no difference to a number. In a lab only the
/// size of aggregates makes bounds, and no packets of others: there the numbers of datagrams decide.
pub(super) fn raised(input: &LedgerInput, each: impl IntoIterator<Item = i64>) -> i64 {
    let sum = each.into_iter().fold(0, i64::saturating_add);
    let few = foreign::narrow_packets(input.sender.offered_packets);
    if input.path.link == Link::Nic && sum > few { sum } else { 0 }
}

impl Ledger {
    /// Enters what the sum leaves over. `room` of it may be more losses of its terms; the terms may have lost less than
    /// shown, by `raised`.
    pub(super) fn leave_over(&mut self, gap: i64, room: Option<i64>, raised: i64) {
        let is_exact = raised == 0 && (gap <= 0 || room == Some(0));
        self.unaccounted_packets = is_exact.then_some(gap);
        self.unaccounted_bounds = room.filter(|_| !is_exact).map(|room| RemainderBounds {
            least_packets: gap.saturating_sub(room),
            most_packets: gap.saturating_add(raised),
        });
    }
}

/// Settles the bounds of terms and what is shown of each; `base` is what was lost in all by the programs' own counts.
pub(super) fn decide(
    view: View<'_>,
    units: &Units,
    base: i64,
    terms: &mut [Term],
    notes: &mut Vec<String>,
) {
    for term in terms.iter_mut() {
        term.least = term.datagrams;
    }
    let exact: i64 = terms.iter().filter(|term| term.exact).map(Term::credited).sum();
    let unseen = unseen(view, units, terms);
    let mut open: Vec<&mut Term> = terms.iter_mut().filter(|term| !term.exact).collect();
    let bounds: Vec<(i64, Option<i64>)> =
        open.iter().map(|term| (term.datagrams, term.most)).collect();
    let mut undecided = None;
    if let Some(lost) = view.input.receiver.sequence_lost_packets {
        // Datagrams at the end of a stream have no later one that shows their loss.
        let lost = [lost as i64, base.max(lost as i64)].map(|lost| lost - exact);
        undecided = narrow(view, &mut open, lost, unseen);
    }
    notes.extend(open.into_iter().zip(bounds).filter_map(|(term, bounds)| said(term, bounds)));
    notes.extend(undecided);
}

/// Datagrams that may have been lost at places without a term; `None` if nothing limits them. What network cards leave out, the
/// wire between them, has a term only where they count it.
fn unseen(view: View<'_>, units: &Units, terms: &[Term]) -> Option<i64> {
    let has = |place| terms.iter().any(|term| term.place == place);
    match view.link() {
        Link::Nic if !has(Place::Network) => None,
        Link::Nic if !has(Place::IngressHook) => arriving::unseen(view, units),
        _ => Some(0),
    }
}

/// Narrows the bounds of terms that lost `least` to `most` together, and divides `least` among those of a whole path. Of these,
/// `unseen` may have been lost elsewhere. What is said if no place shows a part of them.
fn narrow(
    view: View<'_>,
    open: &mut [&mut Term],
    [least, most]: [i64; 2],
    unseen: Option<i64>,
) -> Option<String> {
    let leasts: Vec<i64> = open.iter().map(|term| term.credited()).collect();
    let rooms: Vec<Option<i64>> = open.iter().map(|term| term.room()).collect();
    let all_least: i64 = leasts.iter().sum();
    for (at, term) in open.iter_mut().enumerate() {
        let limit = (most - (all_least - leasts[at])).max(leasts[at]);
        term.most = Some(term.most.map_or(limit, |most| most.min(limit)));
        let others = rooms.iter().enumerate().filter(|(other, _)| *other != at);
        let others = room(others.map(|(_, room)| *room));
        if let Some((others, unseen)) = others.zip(unseen) {
            let of_others = (all_least - leasts[at]).saturating_add(others).saturating_add(unseen);
            let highest = term.most.unwrap_or(i64::MAX).max(term.least);
            term.least = term.least.max(least.saturating_sub(of_others)).min(highest);
            term.datagrams = term.least;
        }
    }
    // So many make no difference to a number.
    let few = foreign::narrow(view);
    let elsewhere = unseen.map(|unseen| if unseen > few { unseen } else { 0 })?;
    let more = least - elsewhere - open.iter().map(|term| term.credited()).sum::<i64>();
    if view.link() == Link::Nic {
        return divide(open, more.max(0), few);
    }
    // Of a lab only the size of aggregates is not known.
    let more = raise(open, of_own_counter, more.max(0));
    raise(open, all_room, more);
    None
}

/// How much more than its lower bound a place may have lost for one reason.
type Reason = fn(&Term) -> i64;

/// What its counters have, be it of others or not.
fn counted(term: &Term) -> i64 {
    (term.counted - term.credited()).clamp(0, all_room(term))
}

/// What a counter of its own may be in datagrams.
fn of_own_counter(term: &Term) -> i64 {
    if term.derived { 0 } else { all_room(term) }
}

/// All that its bounds allow.
fn all_room(term: &Term) -> i64 {
    term.room().unwrap_or(i64::MAX)
}

/// Shows `more` datagrams at the places that have the best reason for them. What several places have for the same reason stays
/// open, unless it is so `few` that a number stays the same; then that is said.
fn divide(open: &mut [&mut Term], mut more: i64, few: i64) -> Option<String> {
    let reasons: [Reason; 3] = [counted, of_own_counter, all_room];
    for reason in reasons {
        if more > few {
            more = settle(open, reason, more);
        }
        if more > few && open.iter().any(|term| reason(term) > 0) {
            // Places that have only a worse reason may have lost them all the same.
            let may_have = open.iter().filter(|term| all_room(term) > 0);
            let may_have: Vec<&str> = may_have.map(|term| term.place.words().noun).collect();
            return Some(format!(
                "{} datagrams were lost at {}: the counters there also count packets of other programs",
                signed(more),
                may_have.join(" or at ")
            ));
        }
        more = raise(open, reason, more);
    }
    None
}

/// Gives each term what the others have no room for; what is left then.
fn settle(open: &mut [&mut Term], reason: Reason, more: i64) -> i64 {
    let rooms: Vec<i64> = open.iter().map(|term| reason(term)).collect();
    let all = rooms.iter().fold(0, |sum: i64, own| sum.saturating_add(*own));
    let mut left = more;
    for (term, own) in open.iter_mut().zip(rooms) {
        let sure = more.saturating_sub(all - own).clamp(0, own);
        term.datagrams = term.credited() + sure;
        left -= sure;
    }
    left
}

/// Divides what more was lost, in proportion to what more each term may have lost for this reason; what is left then.
fn raise(open: &mut [&mut Term], reason: Reason, more: i64) -> i64 {
    let mut left = more;
    let mut rooms = open.iter().fold(0, |sum: i64, term| sum.saturating_add(reason(term)));
    for term in open.iter_mut() {
        let own = reason(term);
        let part = i128::from(left.min(rooms)) * i128::from(own) / i128::from(rooms.max(1));
        let part = i64::try_from(part).unwrap_or(left).min(left);
        term.datagrams = term.credited() + part;
        (left, rooms) = (left - part, rooms.saturating_sub(own));
    }
    left
}

/// What is said of a term that is not exact, with the bounds that its counters have.
fn said(term: &mut Term, (least, most): (i64, Option<i64>)) -> Option<String> {
    let is_least = term.datagrams == least;
    if let Some(bound) = term.bound.take() {
        return Some(bound + if is_least { "" } else { "; sequence numbers decide" });
    }
    if term.is_narrow {
        return None;
    }
    let most = most.map_or_else(|| "an unknown number of".into(), signed);
    Some(format!(
        "{}: counts aggregates of unknown size: at least {} and at most {most} datagrams; {}",
        term.counter,
        signed(least),
        if is_least { "the least is shown" } else { "sequence numbers decide" }
    ))
}
