//! Losses that are only possible: within the bounds of counters that have the packets of other programs too.

use rxpath_core::SortFew;
use rxpath_record::ledger::Drop;

use super::View;

impl<'a> View<'a> {
    /// What may have been lost where the sure loss is no limit: drops whose upper bounds are large enough to be one, with that
    /// bound, the largest first.
    pub fn possible_losses(&self) -> Vec<(&'a Drop, u64)> {
        let unsure = self.losses().filter(|drop| !self.is_loss_at(drop.place, drop.packets));
        let bounded = unsure.filter_map(|drop| Some((drop, drop.range().most_packets?)));
        let mut large: Vec<(&Drop, u64)> =
            bounded.filter(|(drop, most)| self.is_loss_at(drop.place, *most)).collect();
        // Of equals, the order of the list does not decide.
        let key = |&(drop, most): &(&'a Drop, u64)| (most, drop.place);
        large.sort_few_by(|a, b| key(b).cmp(&key(a)).then_with(|| b.0.counter.cmp(&a.0.counter)));
        large
    }
}
