//! What a ledger's sum leaves over, of one ledger and of several, as values and as text; and the loss that its two ends leave.

use rxpath_core::number::grouped;

use super::{Figure, Inexact, Ledger};

/// The remainder of a ledger's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Zero: the ledger closes.
    Closed,
    /// Zero lies within the bounds: all may be accounted for, and at most this many are in no counter.
    Within(u64),
    /// This many are in no counter; or more, if [`Ledger::unaccounted_packets`] is `None`.
    Missing(u64),
    /// This many more arrived than were sent.
    Excess(u64),
    /// A term of the sum has only bounds.
    Unknown,
}

impl Ledger {
    /// The remainder of the sum.
    pub fn balance(&self) -> Balance {
        match (self.unaccounted_packets, self.unaccounted_bounds) {
            (None, None) => Balance::Unknown,
            (None, Some(rest)) if rest.most_packets < 0 => {
                Balance::Excess(rest.most_packets.unsigned_abs())
            }
            (None, Some(rest)) if rest.least_packets <= 0 => {
                Balance::Within(rest.most_packets.unsigned_abs())
            }
            (None, Some(rest)) => Balance::Missing(rest.least_packets.unsigned_abs()),
            (Some(0), _) => Balance::Closed,
            (Some(left @ 1..), _) => Balance::Missing(left.unsigned_abs()),
            (Some(more), _) => Balance::Excess(more.unsigned_abs()),
        }
    }

    /// What is in no counter, for people: `7`, `0 (at most 41)`, `at least 7`, `not known`. `0` if more arrived than were sent.
    pub fn unaccounted(&self) -> String {
        Balances::of([self]).unaccounted()
    }

    /// The least and the most that was lost of what was offered; `None` where both ends are exact, and where nothing was offered.
    ///
    /// **Unit** share of what was offered.
    pub fn loss_bounds(&self) -> Option<[f64; 2]> {
        if self.offered_packets == 0 || self.inexact.iter().all(Inexact::is_exact) {
            return None;
        }
        // An end may have bounds for several reasons.
        let bounds = |figure: Figure, shown: u64| {
            let all = self.inexact.iter().filter(|it| it.figure == figure);
            let widest = all.map(|it| (it.least_packets, it.most_packets)).reduce(|one, other| {
                let most = one.1.zip(other.1).map(|(one, other)| one.max(other));
                (one.0.min(other.0), most)
            });
            widest.unwrap_or((shown, Some(shown)))
        };
        let offered = bounds(Figure::Offered, self.offered_packets);
        let delivered = bounds(Figure::Delivered, self.delivered_packets);
        let lost = |offered: u64, delivered: u64| {
            (1.0 - delivered as f64 / offered.max(1) as f64).clamp(0.0, 1.0)
        };
        Some([
            delivered.1.map_or(0.0, |most| lost(offered.0, most)),
            offered.1.map_or(1.0, |most| lost(most, delivered.0)),
        ])
    }

    /// The word before the figure that is shown of an end: none where it is exact, `at least `, `at most ` where a part may be of
    /// others, `about ` where the end may be less and more.
    pub fn bound_word(&self, figure: Figure) -> &'static str {
        let shown = match figure {
            Figure::Offered => self.offered_packets,
            Figure::Delivered => self.delivered_packets,
        };
        let bounds = || self.inexact.iter().filter(|it| it.figure == figure);
        let may_be_less = bounds().any(|it| it.least_packets < shown);
        let may_be_more = bounds().any(|it| it.most_packets.is_none_or(|most| most > shown));
        match (may_be_less, may_be_more) {
            (false, false) => "",
            (false, true) => "at least ",
            (true, false) => "at most ",
            (true, true) => "about ",
        }
    }
}

/// The remainders of several ledgers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    /// Ledgers.
    pub ledgers: usize,
    /// Those that close, exactly or within the bounds of their terms.
    pub closed: usize,
    /// Those of them that close within bounds.
    pub within: usize,
    /// Those for which it is unknown whether they close.
    pub unknown: usize,
    /// In no counter, at least.
    pub missing_packets: u64,
    /// In no counter, at most; those of unknown remainders left out.
    pub most_packets: u64,
    /// Arrived in addition to those sent.
    pub excess_packets: u64,
}

impl Balances {
    /// Sums over all of these.
    pub fn of<'a>(ledgers: impl IntoIterator<Item = &'a Ledger>) -> Self {
        ledgers.into_iter().fold(Self::default(), |mut all, ledger| {
            all.ledgers += 1;
            match ledger.balance() {
                Balance::Closed => all.closed += 1,
                Balance::Within(most) => {
                    all.closed += 1;
                    all.within += 1;
                    all.most_packets += most;
                }
                Balance::Missing(packets) => {
                    all.missing_packets += packets;
                    let most = ledger.unaccounted_bounds.map_or(0, |rest| rest.most_packets);
                    all.most_packets += packets.max(most.max(0).unsigned_abs());
                }
                Balance::Excess(packets) => all.excess_packets += packets,
                Balance::Unknown => all.unknown += 1,
            }
            all
        })
    }

    /// What is in no counter of those whose remainder is known, for people: `7`, `0 (at most 41)`, `at least 7`; `not known` if
    /// none of them is.
    pub fn unaccounted(&self) -> String {
        let (least, most) = (self.missing_packets, self.most_packets);
        match least {
            _ if self.unknown > 0 && self.unknown == self.ledgers => "not known".into(),
            _ if least == most => grouped(least),
            0 => format!("0 (at most {})", grouped(most)),
            _ => format!("at least {}", grouped(least)),
        }
    }

    /// What is true of the packets of ledgers that all close: `are accounted for`, or with bounds `may be accounted for: 3 of 5
    /// ledgers close within bounds only, and up to 41 datagrams may be in no counter`. `unit` is the plural.
    pub fn accounted(&self, unit: &str) -> String {
        if self.most_packets == 0 {
            return "are accounted for".into();
        }
        format!(
            "may be accounted for: {} of {} ledgers close within bounds only, and up to {} {unit} may be in no counter",
            self.within,
            self.ledgers,
            grouped(self.most_packets)
        )
    }

    /// Whether all close.
    pub fn all_closed(&self) -> bool {
        self.closed == self.ledgers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RemainderBounds;

    fn exact(left: i64) -> Ledger {
        Ledger { unaccounted_packets: Some(left), ..Ledger::default() }
    }

    fn within(least_packets: i64, most_packets: i64) -> Ledger {
        let bounds = RemainderBounds { least_packets, most_packets };
        Ledger { unaccounted_packets: None, unaccounted_bounds: Some(bounds), ..Ledger::default() }
    }

    fn unknown() -> Ledger {
        Ledger { unaccounted_packets: None, ..Ledger::default() }
    }

    #[test]
    fn a_remainder_says_whether_its_number_is_exact() {
        let cases = [
            (exact(0), "0"),
            (exact(1_700), "1,700"),
            (exact(-5), "0"),
            (within(-90, 41), "0 (at most 41)"),
            (within(7, 41), "at least 7"),
            (unknown(), "not known"),
        ];
        for (ledger, text) in cases {
            assert_eq!(ledger.unaccounted(), text, "{ledger:?}");
        }
        assert_eq!(within(-9, -2).balance(), Balance::Excess(2));
    }

    #[test]
    fn a_loss_between_ends_that_have_bounds_has_bounds() {
        let inexact = |figure, least_packets, most_packets| Inexact {
            figure,
            least_packets,
            most_packets,
            why: "?".into(),
        };
        let of = |inexact: &[Inexact]| {
            let inexact = inexact.to_vec();
            let (offered_packets, delivered_packets) = (1_000, 800);
            Ledger { offered_packets, delivered_packets, inexact, ..Ledger::default() }
                .loss_bounds()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[inexact(Figure::Offered, 1_000, Some(1_000))]), None, "one value");
        let delivered = inexact(Figure::Delivered, 800, Some(900));
        assert_eq!(of(std::slice::from_ref(&delivered)), Some([1.0 - 0.9, 1.0 - 0.8]));
        let offered = |most| inexact(Figure::Offered, 1_000, most);
        assert_eq!(of(&[offered(Some(2_000)), delivered.clone()]), Some([1.0 - 0.9, 1.0 - 0.4]));
        let aggregates = inexact(Figure::Delivered, 700, Some(850));
        assert_eq!(of(&[aggregates, delivered.clone()]), Some([1.0 - 0.9, 1.0 - 0.7]));
        let unlimited = inexact(Figure::Delivered, 820, None);
        assert_eq!(of(&[delivered.clone(), unlimited]), Some([0.0, 1.0 - 0.8]));
        assert_eq!(of(&[offered(None), delivered]), Some([1.0 - 0.9, 1.0]));
        assert_eq!(of(&[inexact(Figure::Delivered, 800, None)]), Some([0.0, 1.0 - 0.8]));
        assert_eq!(of(&[inexact(Figure::Delivered, 800, Some(1_100))]), Some([0.0, 1.0 - 0.8]));
    }

    #[test]
    fn the_word_before_an_end_says_which_bound_is_shown() {
        let word = |figure, least_packets, most_packets| {
            let bounds = Inexact { figure, least_packets, most_packets, why: "?".into() };
            Ledger { offered_packets: 900, inexact: vec![bounds], ..Ledger::default() }
                .bound_word(Figure::Offered)
        };
        assert_eq!(word(Figure::Offered, 900, None), "at least ");
        assert_eq!(word(Figure::Offered, 0, Some(900)), "at most ");
        assert_eq!(word(Figure::Offered, 0, None), "about ");
        assert_eq!(word(Figure::Offered, 0, Some(1_000)), "about ");
        assert_eq!(word(Figure::Delivered, 0, None), "", "of the other end");
    }

    #[test]
    fn what_may_be_in_no_counter_is_not_said_to_be_accounted_for() {
        let of = |all: &[Ledger]| Balances::of(all).accounted("datagrams");
        assert_eq!(of(&[exact(0), exact(0)]), "are accounted for");
        // No more than nothing is missing.
        assert_eq!(of(&[exact(0), within(-9, 0)]), "are accounted for");
        let bounds = "may be accounted for: 2 of 3 ledgers close within bounds only, and up to 1,041 datagrams may be in no \
                      counter";
        assert_eq!(of(&[exact(0), within(-90, 41), within(0, 1_000)]), bounds);
    }

    #[test]
    fn remainders_add_up_with_their_bounds() {
        let of = |all: &[Ledger]| Balances::of(all).unaccounted();
        assert_eq!(of(&[exact(3), exact(4)]), "7");
        assert_eq!(of(&[exact(0), within(-1, 5), within(0, 6)]), "0 (at most 11)");
        assert_eq!(of(&[exact(3), within(-1, 5)]), "at least 3");
        assert_eq!(of(&[exact(3), unknown()]), "3", "of those that are known");
        assert_eq!(of(&[unknown(), unknown()]), "not known");
        assert_eq!(of(&[]), "0");
    }
}
