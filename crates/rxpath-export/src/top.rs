//! Which keys have a series of their own: the number of series is bounded whatever the host does.
//!
//! A key is admitted when it was among the largest of two windows running. While all places are taken, it waits: for the place
//! of a key that had little for long, or until it has itself been among the largest for as long. What a key has before and
//! after goes to `other`, so no counter falls and the sum of the rates is that of all keys.

use std::collections::BTreeMap;

use rxpath_core::{IntoMap, SortFew};

/// For how long a key has little before its place may be given away: a service that idles between two peaks keeps its series.
const LONG_S: f64 = 900.0;
/// A key has little below the rank of half as many again as there are places (24 of 16). Otherwise two keys around the last
/// place would take it from each other with each change of their order.
const KEPT: [usize; 2] = [3, 2];

/// A key with a place.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Its rank in the last window, from 0; the last one of all when it had nothing.
    rank: usize,
    /// For how long it has not been among as many of the largest as there are places. In s.
    outside_s: f64,
    /// For how long it has been below the rank that keeps a place. In s.
    low_s: f64,
}

/// The keys with a place.
#[derive(Debug)]
pub(crate) struct Top<K> {
    places: usize,
    members: BTreeMap<K, Member>,
    /// Keys without a place that were among the largest of the last window, and for how long before it. In s.
    waiting: BTreeMap<K, f64>,
}

/// What a window changes.
#[derive(Debug, PartialEq)]
pub(crate) struct Turn<K> {
    /// Keys that get a series, which begins at 0.
    pub admitted: Vec<K>,
    /// Keys that lose it. What they had in this window is in `other`.
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
        Self { places, members: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    /// A window of this length, in which these keys had these amounts.
    pub(crate) fn turn(&mut self, amounts: BTreeMap<K, f64>, window_s: f64) -> Turn<K> {
        let mut ranked: Vec<(&K, f64)> = amounts
            .iter()
            .filter(|(_, amount)| **amount > 0.0)
            .map(|(key, amount)| (key, *amount))
            .collect();
        ranked.sort_few_by(|a, b| b.1.total_cmp(&a.1));
        self.rank(&ranked, window_s);
        let (mut admitted, mut removed, mut refused) = (Vec::new(), Vec::new(), 0);
        let mut waiting = BTreeMap::new();
        for (rank, (key, _)) in ranked.iter().take(self.places).enumerate() {
            if self.members.contains_key(*key) {
                continue;
            }
            let waited_s = self.waiting.get(*key).map(|waited_s| waited_s + window_s);
            if waited_s.is_some_and(|waited_s| self.make_place(waited_s, &mut removed)) {
                self.members.insert((*key).clone(), Member { rank, ..Member::default() });
                admitted.push((*key).clone());
            } else {
                refused += u32::from(waited_s.is_some());
                waiting.insert((*key).clone(), waited_s.unwrap_or(0.0));
            }
        }
        self.waiting = waiting;
        let (mut own, mut other) = (Vec::new(), 0.0);
        for (key, amount) in amounts {
            if self.members.contains_key(&key) && !admitted.contains(&key) {
                own.push((key, amount));
            } else if amount > 0.0 {
                other += amount;
            }
        }
        Turn { admitted, removed, own, other, refused }
    }

    /// Where the members stand in a window of this length.
    fn rank(&mut self, ranked: &[(&K, f64)], window_s: f64) {
        let ranks: BTreeMap<&K, usize> =
            ranked.iter().enumerate().map(|(rank, (key, _))| (*key, rank)).into_map();
        let [more, of] = KEPT;
        for (key, member) in &mut self.members {
            member.rank = ranks.get(key).copied().unwrap_or(usize::MAX);
            let is_outside = member.rank >= self.places;
            member.outside_s = if is_outside { member.outside_s + window_s } else { 0.0 };
            let is_low = member.rank >= self.places * more / of;
            member.low_s = if is_low { member.low_s + window_s } else { 0.0 };
        }
    }

    /// Whether there is a place for a key that has been among the largest for this long; takes one from a member if it must.
    fn make_place(&mut self, waited_s: f64, removed: &mut Vec<K>) -> bool {
        if self.members.len() < self.places {
            return true;
        }
        let Some(key) = self.lowest().or_else(|| self.outsider(waited_s)) else { return false };
        self.members.remove(&key);
        removed.push(key);
        true
    }

    /// The lowest of the members that have had little for long.
    fn lowest(&self) -> Option<K> {
        let low = self.members.iter().filter(|(_, member)| member.low_s >= LONG_S);
        let lowest =
            low.max_by(|(_, a), (_, b)| a.rank.cmp(&b.rank).then(a.low_s.total_cmp(&b.low_s)));
        lowest.map(|(key, _)| key.clone())
    }

    /// For one who has waited for long: the member that has not been among the largest for the longest. With few keys nobody
    /// has a low rank, and there is always one outside.
    fn outsider(&self, waited_s: f64) -> Option<K> {
        let outside = self.members.iter().filter(|(_, member)| member.rank >= self.places);
        let longest = outside
            .max_by(|(_, a), (_, b)| a.outside_s.total_cmp(&b.outside_s).then(a.rank.cmp(&b.rank)));
        longest.filter(|_| waited_s >= LONG_S).map(|(key, _)| key.clone())
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
        let first = top.turn(of(&[("a", 1.0), ("b", 0.5)]), 10.0);
        assert_eq!((first.admitted.len(), first.other), (0, 1.5));
        let second = top.turn(of(&[("a", 1.0), ("b", 0.5)]), 10.0);
        assert_eq!((second.admitted, second.other), (vec!["a"], 1.5));
        let third = top.turn(of(&[("a", 1.0), ("b", 9.0)]), 10.0);
        assert_eq!((third.own, third.other), (vec![("a", 1.0)], 9.0));
    }

    /// How long a key that is the largest from some window on waits for a place, in s, and which keys lose theirs then. All 16
    /// places were taken before, by keys with these amounts in a window of that number; so many others have 2 each.
    fn wait(window_s: f64, others: u8, of_member: fn(u8, u32) -> f64) -> (f64, Vec<u8>) {
        const LATE: u8 = 200;
        let mut top = Top::new(16);
        for number in 0..10_000 {
            let mut amounts: BTreeMap<u8, f64> =
                (0..16).map(|key| (key, of_member(key, number))).collect();
            if number >= 2 {
                amounts.extend((16..16 + others).map(|key| (key, 2.0)));
                amounts.insert(LATE, 99.0);
            }
            let turn = top.turn(amounts, window_s);
            if turn.admitted.contains(&LATE) {
                assert!(turn.other >= 99.0, "its series begins at 0");
                assert!(turn.own.iter().all(|(key, _)| !turn.removed.contains(key)));
                return (f64::from(number - 2) * window_s, turn.removed);
            }
        }
        panic!("it stays in the rest");
    }

    #[test]
    fn a_late_heavy_key_gets_a_place_though_light_ones_always_have_something() {
        for window_s in [1.0, 10.0, 60.0] {
            let most_s = LONG_S + 2.0 * window_s;
            // Nobody is below the rank that keeps a place: the last of all goes.
            let (few_s, gone) = wait(window_s, 0, |key, _| 1.0 + f64::from(key));
            assert!(few_s <= most_s, "{few_s}");
            assert_eq!(gone, [0]);
            // Many others, each with more than the light ones.
            let (many_s, gone) = wait(window_s, 30, |key, _| 0.01 * f64::from(key + 1));
            assert!(many_s <= most_s, "{many_s}");
            assert!(gone.contains(&0), "{gone:?}");
            // Light ones whose order changes from window to window.
            let (mixed_s, _) =
                wait(window_s, 0, |key, number| f64::from((u32::from(key) * 7 + number) % 16 + 1));
            assert!(mixed_s <= most_s, "{mixed_s}");
        }
    }

    #[test]
    fn the_lowest_of_those_with_little_for_long_goes_at_once() {
        let mut top = Top::new(2);
        let all = |late: bool| {
            let base = [("a", 9.0), ("b", 0.1), ("x", 3.0), ("y", 3.0)];
            let mut amounts = of(&base);
            if late {
                amounts.insert("z", 8.0);
            }
            amounts
        };
        (0..2).for_each(|_| drop(top.turn(of(&[("a", 9.0), ("b", 0.1)]), 10.0)));
        // Until now "b" has been below the third rank for less than 15 minutes.
        assert_eq!(top.turn(all(false), 898.0).removed.len(), 0);
        assert_eq!(top.turn(all(true), 1.0).refused, 0);
        let turn = top.turn(all(true), 1.0);
        assert_eq!((turn.removed, turn.admitted), (vec!["b"], vec!["z"]));
        assert_eq!(turn.own, [("a", 9.0)]);
        assert!((turn.other - 14.1).abs() < 1e-9, "{}", turn.other);
    }

    #[test]
    fn a_key_that_is_back_in_time_keeps_its_place() {
        let mut top = Top::new(1);
        (0..2).for_each(|_| drop(top.turn(of(&[("a", 1.0)]), 60.0)));
        for number in 0..100 {
            // It has the most in one of ten windows.
            let a = if number % 10 == 9 { 10.0 } else { 0.0 };
            let turn = top.turn(of(&[("a", a), ("b", 1.0)]), 60.0);
            assert_eq!(turn.removed.len(), 0, "{number}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_no_counter_falls_the_sum_is_that_of_all_and_places_are_bounded(
            windows in prop::collection::vec(
                (prop::collection::btree_map(0u8..40, 0.0f64..5.0, 0..40), 1.0f64..60.0, 1u32..40),
                1..30,
            ),
        ) {
            let mut top = Top::new(8);
            let mut counters: BTreeMap<u8, f64> = BTreeMap::new();
            let windows = windows.iter().flat_map(|one| (0..one.2).map(move |_| (&one.0, one.1)));
            for (amounts, window_s) in windows {
                let before = counters.clone();
                let all: f64 = amounts.values().sum();
                let turn = top.turn(amounts.clone(), window_s);
                for key in &turn.removed {
                    counters.remove(key);
                }
                counters.extend(turn.admitted.iter().map(|key| (*key, 0.0)));
                for (key, amount) in &turn.own {
                    // No series begins without being admitted, nor again after it was removed.
                    prop_assert!(before.contains_key(key) && counters.contains_key(key), "{key}");
                    *counters.entry(*key).or_default() += amount;
                }
                for (key, then) in &before {
                    prop_assert!(counters.get(key).is_none_or(|now| now >= then), "{key}");
                }
                let told: f64 = turn.own.iter().map(|(_, amount)| amount).sum::<f64>() + turn.other;
                prop_assert!((all - told).abs() < 1e-9);
                prop_assert!(counters.len() <= 8);
                prop_assert!(counters.keys().eq(top.members.keys()));
            }
        }
    }
}
