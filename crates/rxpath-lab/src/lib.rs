//! Experiments: scenario files, the two-namespace lab they run in, trials, and the run directory they leave. Also what a model
//! predicts of a variant, and what a search for better settings tries and measures.

pub mod clock;
pub mod endpoint;
pub mod error;
pub mod hosts;
pub mod installed;
pub mod meter;
pub mod output;
pub mod plan;
pub mod predict;
pub mod run;
pub mod scenario;
pub mod search;
pub mod selftest;
mod shared;
mod stoppable;
pub mod testbed;
pub mod trial;

pub use error::LabError;
