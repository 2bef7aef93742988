//! Hooks in front of IP that a trial's programs attach, of which the bed does not know.

use std::collections::BTreeSet;

use crate::bed::Bed;

/// What is found of them.
pub struct Attached<'a> {
    bed: &'a dyn Bed,
    before: Vec<String>,
    found: BTreeSet<String>,
}

impl<'a> Attached<'a> {
    /// Before any program is started: what hangs there already is the bed's.
    pub fn before(bed: &'a dyn Bed) -> Self {
        Self { bed, before: bed.ingress_hooks(), found: BTreeSet::new() }
    }

    /// To be called while the programs live: with them goes what their descriptors hold. Gives all that were found so far,
    /// in words.
    pub fn look(&mut self) -> Vec<String> {
        let now = self.bed.ingress_hooks().into_iter();
        self.found.extend(now.filter(|hook| !self.before.contains(hook)));
        self.found.iter().cloned().collect()
    }
}
