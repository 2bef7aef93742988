//! What a trial or slice of a search was made for, and with what.

use std::collections::BTreeSet;

use rxpath_tune::auto::Phase;

/// Names of the variants that pairs of the confirmation are made of.
pub const START: &str = "start";
/// The other one.
pub const KEPT: &str = "kept";

/// A trial of a search, in the order in which they were made.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    pub phase: Phase,
    /// The pair within the phase, from 0.
    pub block: usize,
    /// The candidates that were on.
    pub on: &'a [String],
}

impl Made<'_> {
    pub fn has(&self, kept: &BTreeSet<&str>) -> bool {
        self.on.iter().map(String::as_str).collect::<BTreeSet<_>>() == *kept
    }
}
