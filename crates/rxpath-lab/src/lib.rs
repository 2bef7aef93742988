//! Experiments: scenario files, the two-namespace lab they run in, trials, and the run directory they leave.

pub mod output;
pub mod plan;
pub mod scenario;
