//! Which keys have a series of their own: the number of series is bounded whatever the host does.
//!
//! A key is admitted when it was among the largest of two windows running, and loses its series when it had nothing for
//! long and another wants the place. What it has before and after goes to `other`, so no counter falls and the sum of
//! the rates is that of all keys.

use std::collections::{BTreeMap, BTreeSet};

/// Windows without anything after which a place may be given away.
const IDLE_WINDOWS: u32 = 90;

/// The keys with a place.
#[derive(Debug)]
pub(crate) struct Top<K> {
    places: usize,
    /// How long each has had nothing.
    members: BTreeMap<K, u32>,
    /// Those that were among the largest of the last window.
    waiting: BTreeSet<K>,
}

/// What a window changes.
#[derive(Debug, PartialEq)]
pub(crate) struct Turn<K> {
    /// Keys that get a series, which begins at 0.
    pub admitted: Vec<K>,
    /// Keys that lose it.
    pub removed: Vec<K>,
    /// Amounts of the keys with a series.
    pub own: Vec<(K, f64)>,
    /// The sum of all others.
    pub other: f64,
    /// Keys that were due for a series while all places were taken.
    pub refused: u32,
}

impl<K: Clone + Ord> Top<K> {
    pub(crate) fn new(places: usize) -> Self {
        Self { places, members: BTreeMap::new(), waiting: BTreeSet::new() }
    }

    /// A window in which these keys had these amounts.
    pub(crate) fn turn(&mut self, amounts: BTreeMap<K, f64>) -> Turn<K> {
        for (key, idle) in &mut self.members {
            *idle =
                if amounts.get(key).is_some_and(|amount| *amount > 0.0) { 0 } else { *idle + 1 };
        }
        let mut own = Vec::new();
        let mut others: Vec<(K, f64)> = Vec::new();
        for (key, amount) in amounts {
            if self.members.contains_key(&key) {
                own.push((key, amount));
            } else if amount > 0.0 {
                others.push((key, amount));
            }
        }
        let other = others.iter().map(|(_, amount)| amount).sum();
        others.sort_by(|a, b| b.1.total_cmp(&a.1));
        others.truncate(self.places);
        let (mut admitted, mut removed, mut refused) = (Vec::new(), Vec::new(), 0);
        let wanted: BTreeSet<K> = others.into_iter().map(|(key, _)| key).collect();
        for key in &wanted {
            if !self.waiting.contains(key) {
                continue;
            }
            if self.members.len() >= self.places {
                let Some(idle) = self.idle() else {
                    refused += 1;
                    continue;
                };
                self.members.remove(&idle);
                removed.push(idle);
            }
            self.members.insert(key.clone(), 0);
            admitted.push(key.clone());
        }
        self.waiting = wanted;
        Turn { admitted, removed, own, other, refused }
    }

    /// The member that has had nothing for the longest, if that is long.
    fn idle(&self) -> Option<K> {
        let longest = self.members.iter().max_by_key(|(_, idle)| **idle)?;
        (*longest.1 >= IDLE_WINDOWS).then(|| longest.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(amounts: &[(&'static str, f64)]) -> BTreeMap<&'static str, f64> {
        amounts.iter().copied().collect()
    }

    #[test]
    fn a_key_gets_its_place_after_two_windows_and_keeps_it() {
        let mut top = Top::new(1);
        let first = top.turn(of(&[("a", 1.0), ("b", 0.5)]));
        assert_eq!((first.admitted.len(), first.other), (0, 1.5));
        let second = top.turn(of(&[("a", 1.0), ("b", 0.5)]));
        assert_eq!((second.admitted, second.other), (vec!["a"], 1.5));
        let third = top.turn(of(&[("a", 1.0), ("b", 9.0)]));
        assert_eq!((third.own, third.other), (vec![("a", 1.0)], 9.0));
        for _ in 0..IDLE_WINDOWS - 1 {
            let turn = top.turn(of(&[("b", 9.0)]));
            assert_eq!((turn.removed.len(), turn.refused), (0, 1));
        }
        let last = top.turn(of(&[("b", 9.0)]));
        assert_eq!((last.removed, last.admitted), (vec!["a"], vec!["b"]));
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_all_keys_and_the_places_are_bounded(
            windows in prop::collection::vec(prop::collection::btree_map(0u8..40, 0.0f64..5.0, 0..40), 1..60),
        ) {
            let mut top = Top::new(8);
            for amounts in windows {
                let all: f64 = amounts.values().sum();
                let turn = top.turn(amounts);
                let told: f64 = turn.own.iter().map(|(_, amount)| amount).sum::<f64>() + turn.other;
                prop_assert!((all - told).abs() < 1e-9);
                prop_assert!(top.members.len() <= 8);
            }
        }
    }
}
