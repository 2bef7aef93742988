//! One place's loss while the ledger is being made.

use super::units::Unit;
use super::{CrossCheck, Drop, PacketBounds, Place};

/// A loss, with what its derivation rests on.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub place: Place,
    pub counter: String,
    /// Datagrams. Below zero, a derived term is a contradiction between its counters. Of a term that is not exact, the least
    /// until [`super::interval::decide`].
    pub datagrams: i64,
    /// Lower bound, from [`super::interval::decide`] on.
    pub least: i64,
    /// Upper bound when `datagrams` is only the least.
    pub most: Option<i64>,
    /// What its counters show as lost, of whatever program.
    pub counted: i64,
    pub derived: bool,
    pub exact: bool,
    /// What its formula gave, before a witness contradicted it.
    pub vanished: i64,
    /// What an independent source says a derived term must be.
    pub witness: Option<i64>,
    pub checks: Vec<CrossCheck>,
    /// Its counter counts fragments, whatever its place counts elsewhere.
    pub of_pieces: bool,
    /// What is known of a loss that is not exact, in words of its own.
    pub bound: Option<String>,
    /// Its bounds are so close that the least is as good as the number: nothing is said of them.
    pub is_narrow: bool,
}

impl Term {
    /// A loss that one counter owns.
    pub fn owned(place: Place, counter: String, packets: i64, unit: Unit) -> Self {
        let (datagrams, exact) = unit.least(packets);
        Self {
            place,
            counter,
            datagrams,
            least: datagrams,
            most: unit.most(packets),
            counted: datagrams,
            derived: false,
            exact,
            vanished: datagrams,
            witness: None,
            checks: Vec::new(),
            of_pieces: false,
            bound: None,
            is_narrow: false,
        }
    }

    /// A loss computed from several counters; `witness` is in the same packets.
    pub fn derived(
        place: Place,
        formula: String,
        packets: i64,
        unit: Unit,
        witness: Option<i64>,
    ) -> Self {
        let witness = witness.map(|packets| unit.least(packets).0);
        Self { derived: true, witness, ..Self::owned(place, formula, packets, unit) }
    }

    /// Shows a counter that moves with the loss; it agrees when it moved by `expected`.
    pub fn check(&mut self, counter: impl Into<String>, moved: i64, expected: i64) {
        let packets = moved.max(0).unsigned_abs();
        self.checks.push(CrossCheck {
            counter: counter.into(),
            packets,
            agrees: moved == expected,
        });
    }

    /// A derived term that its witness contradicts.
    pub fn contradicted(&self) -> bool {
        self.witness.is_some_and(|witness| witness != self.datagrams)
    }

    /// What the term adds to the sum.
    pub fn credited(&self) -> i64 {
        self.datagrams.max(0)
    }

    /// How much more than what it adds to the sum may have been lost; `None` without an upper bound.
    pub fn room(&self) -> Option<i64> {
        if self.exact { Some(0) } else { Some((self.most? - self.credited()).max(0)) }
    }

    /// How much of what it adds to the sum only what is missing in all shows.
    pub fn raised(&self) -> i64 {
        if self.exact { 0 } else { (self.credited() - self.least.max(0)).max(0) }
    }

    /// The term as it is shown, when there is something to show.
    pub fn into_drop(self) -> Option<Drop> {
        let packets = self.credited().unsigned_abs();
        let may_be_more = !self.exact && self.room() != Some(0);
        (packets > 0 || may_be_more).then_some(Drop {
            place: self.place,
            counter: self.counter,
            packets,
            derived: self.derived,
            exact: self.exact,
            bounds: (!self.exact)
                .then(|| PacketBounds::of(self.least.min(self.datagrams), self.most)),
            cross_checks: self.checks,
        })
    }
}
