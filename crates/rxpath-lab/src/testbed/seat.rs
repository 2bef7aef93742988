//! On which of a trial's hosts a program runs.

use rxpath_core::Side;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The side.
    pub side: Side,
    /// Which of the side's hosts.
    pub index: usize,
}

impl From<Side> for Seat {
    /// The side's first host.
    fn from(side: Side) -> Self {
        Self { side, index: 0 }
    }
}
