//! The calendar: each actor of the simulation has one slot with the time of its next event. The calendar knows the
//! earliest.
//!
//! A winner tree instead of a heap of events: an actor's event can be moved or taken back in the same few steps,
//! nothing is allocated, and equal times are settled by the slot's number, so that runs repeat exactly. The first
//! slots, the CPUs', are no part of the tree: each packet moves them several times, and looking through a few is
//! quicker than keeping them in order.

/// No event.
pub(super) const NEVER: u64 = u64::MAX;

/// Most slots that are looked through.
const NEAR: usize = 8;

/// The calendar.
#[derive(Debug)]
pub(super) struct Slots {
    /// The first slots, which move with each packet; looked through as a whole.
    near: [u64; NEAR],
    /// How many there are.
    split: usize,
    /// The others.
    far: Tree,
}

impl Slots {
    /// A calendar of `actors`, of which the first `near` move often.
    pub(super) fn new(actors: usize, near: usize) -> Self {
        let split = near.min(actors).min(NEAR);
        Self { near: [NEVER; NEAR], split, far: Tree::new(actors - split) }
    }

    /// Sets the time of `slot`.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, at: u64) {
        if slot < self.split {
            self.near[slot % NEAR] = at;
        } else {
            self.far.set(slot - self.split, at);
        }
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> u64 {
        if slot < self.split { self.near[slot % NEAR] } else { self.far.at[slot - self.split] }
    }

    /// The earliest slot and its time.
    #[inline]
    pub(super) fn first(&self) -> (usize, u64) {
        let mut first = (0, self.near[0]);
        for (slot, at) in self.near.iter().enumerate().take(self.split).skip(1) {
            if *at < first.1 {
                first = (slot, *at);
            }
        }
        let far = self.far.first();
        if first.1 <= far.1 { first } else { (self.split + far.0, far.1) }
    }
}

/// A winner tree.
#[derive(Debug)]
struct Tree {
    /// Leaves, padded to a power of two.
    at: Vec<u64>,
    /// Winner of each inner node; node 1 is the root.
    winner: Vec<u32>,
    leaves: usize,
}

impl Tree {
    fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        let mut tree = Self { at: vec![NEVER; leaves], winner: vec![0; leaves], leaves };
        for node in (1..leaves).rev() {
            tree.replay(node);
        }
        tree
    }

    #[inline]
    fn under(&self, node: usize) -> u32 {
        if node >= self.leaves { (node - self.leaves) as u32 } else { self.winner[node] }
    }

    #[inline]
    fn replay(&mut self, node: usize) {
        let (left, right) = (self.under(2 * node), self.under(2 * node + 1));
        let earlier = self.at[left as usize] <= self.at[right as usize];
        self.winner[node] = if earlier { left } else { right };
    }

    #[inline]
    fn set(&mut self, slot: usize, at: u64) {
        if self.at[slot] == at {
            return;
        }
        self.at[slot] = at;
        let mut node = (slot + self.leaves) >> 1;
        while node >= 1 {
            self.replay(node);
            node /= 2;
        }
    }

    #[inline]
    fn first(&self) -> (usize, u64) {
        let slot = self.winner[1] as usize;
        (slot, self.at[slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_of_the_lowest_number_wins(
            actors in 1_usize..40, near in 0_usize..40,
            moves in proptest::collection::vec((0_usize..40, 0_u64..20), 1..200),
        ) {
            let mut slots = Slots::new(actors, near);
            let mut plain = vec![NEVER; actors];
            for (slot, at) in moves {
                let slot = slot % actors;
                let at = if at == 0 { NEVER } else { at };
                slots.set(slot, at);
                plain[slot] = at;
                let least = plain.iter().min().copied().unwrap_or(NEVER);
                let first = plain.iter().position(|at| *at == least).unwrap_or(0);
                prop_assert_eq!(slots.first(), (first, least));
            }
        }
    }
}
