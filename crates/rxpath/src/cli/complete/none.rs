//! rxpath-agent has no other options and arguments.

use super::Entry;

pub(super) const VALUES: &[Entry] = &[];
