//! What a trial or slice of a search was made for, and with what.

use std::collections::BTreeSet;

use rxpath_tune::auto::Phase;

/// Name of the variant of a confirming pair that is as at the start.
pub const START: &str = "start";
/// Name of the variant with what is kept.
pub const KEPT: &str = "kept";

/// A trial of a search, in the order in which they were made.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// What for.
    pub phase: Phase,
    /// The pair within the phase, from 0.
    pub block: usize,
    /// The candidates that were on.
    pub on: &'a [String],
}

impl Made<'_> {
    /// Whether exactly these candidates were on.
    pub fn has(&self, kept: &BTreeSet<&str>) -> bool {
        self.on.iter().map(String::as_str).collect::<BTreeSet<_>>() == *kept
    }
}
