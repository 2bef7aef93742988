//! On which of a trial's hosts a program runs.

use rxpath_core::PathSide;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The side.
    pub side: PathSide,
    /// Which of the side's hosts.
    pub index: usize,
}

impl From<PathSide> for Seat {
    /// The side's first host.
    fn from(side: PathSide) -> Self {
        Self { side, index: 0 }
    }
}
