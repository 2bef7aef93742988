//! Statistics: quantiles, intervals, differences and their verdicts.
//!
//! Pure and without meaning: this crate does not know what a datagram is. The unit of an experiment's statistics
//! is the trial; samples inside a trial go into histograms, which are merged and never averaged.

pub mod bootstrap;
pub mod buckets;
pub mod difference;
pub mod goal;
pub mod histogram;
pub mod load_class;
pub mod load_search;
pub mod looks;
pub mod order;
pub mod paired;
pub mod planning;
pub mod proportion;
pub mod quantile;
pub mod scale;
pub mod slope;
pub mod student;
pub mod tails;
pub mod welch;

pub use bootstrap::ConfidenceInterval;
pub use buckets::Buckets;
pub use difference::VariantDifference;
pub use histogram::Histogram;
pub use looks::Looks;
pub use scale::Scale;
