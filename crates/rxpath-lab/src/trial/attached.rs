//! Hooks in front of IP that a trial's programs attach, of which the testbed does not know.

use std::collections::BTreeSet;

use crate::testbed::Testbed;

/// What is found of them.
pub struct Attached<'a> {
    testbed: &'a dyn Testbed,
    before: Vec<String>,
    found: BTreeSet<String>,
}

impl<'a> Attached<'a> {
    /// Before any program is started: what hangs there already is the testbed's.
    pub fn before(testbed: &'a dyn Testbed) -> Self {
        Self { testbed, before: testbed.ingress_hooks(), found: BTreeSet::new() }
    }

    /// To be called while the programs live: with them goes what their descriptors hold. Gives all that were found so far,
    /// in words.
    pub fn look(&mut self) -> Vec<String> {
        let now = self.testbed.ingress_hooks().into_iter();
        self.found.extend(now.filter(|hook| !self.before.contains(hook)));
        self.found.iter().cloned().collect()
    }
}
