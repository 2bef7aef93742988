//! A stable sort of few values, without code of its own at each place.

use std::cmp::Ordering;

/// What sorts a slice.
pub trait SortFew<T> {
    /// As `sort_by`.
    ///
    /// **Cost** a vector of two indexes for each value, and an indirect call for each comparison. `sort_by` is compiled again
    /// at each place: four kilobytes for a list that mostly has a few entries.
    fn sort_few_by(&mut self, order: impl Fn(&T, &T) -> Ordering);

    /// As `sort_by_key`, at the cost of [`SortFew::sort_few_by`].
    fn sort_few_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.sort_few_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> SortFew<T> for [T] {
    fn sort_few_by(&mut self, order: impl Fn(&T, &T) -> Ordering) {
        let mut targets = targets(self.len(), &|a, b| order(&self[a], &self[b]));
        for at in 0..targets.len() {
            while targets[at] != at {
                let to = targets[at];
                self.swap(at, to);
                targets.swap(at, to);
            }
        }
    }
}

/// Where the value of each index belongs.
fn targets(count: usize, order: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..count).collect();
    sorted.sort_by(|a, b| order(*a, *b));
    let mut targets = vec![0; count];
    for (to, from) in sorted.into_iter().enumerate() {
        targets[from] = to;
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(
            values in proptest::collection::vec((0u8..10, any::<u32>()), 0..60),
        ) {
            let (mut few, mut right) = (values.clone(), values);
            few.sort_few_by_key(|value| value.0);
            right.sort_by_key(|value| value.0);
            prop_assert_eq!(&few, &right);
            few.sort_few_by(|a, b| (b.1 % 7).cmp(&(a.1 % 7)).then(a.0.cmp(&b.0)));
            right.sort_by(|a, b| (b.1 % 7).cmp(&(a.1 % 7)).then(a.0.cmp(&b.0)));
            prop_assert_eq!(few, right);
        }
    }
}
