//! A map of pairs, put together without code of its own at each place.

use std::collections::BTreeMap;

/// What makes a map of an iterator over pairs.
pub trait IntoMap<K, V>: Iterator<Item = (K, V)> + Sized {
    /// The map of these pairs, of which the last with a key counts, as with `collect`.
    ///
    /// **Cost** one insertion for each pair. `collect` sorts the pairs first, by a sort that is compiled again for each
    /// iterator: some kilobytes for a map that mostly has a few entries.
    fn into_map(self) -> BTreeMap<K, V>
    where
        K: Ord,
    {
        let mut map = BTreeMap::new();
        for (key, value) in self {
            map.insert(key, value);
        }
        map
    }
}

impl<K, V, I: Iterator<Item = (K, V)>> IntoMap<K, V> for I {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_map_is_that_of_collect(pairs in proptest::collection::vec((0u8..20, any::<u32>()), 0..60)) {
            let collected: BTreeMap<u8, u32> = pairs.iter().copied().collect();
            prop_assert_eq!(pairs.into_iter().into_map(), collected);
        }
    }
}
