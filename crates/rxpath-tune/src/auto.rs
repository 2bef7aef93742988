//! Which settings help here, shown with error control, and nothing else kept?
//!
//! The question this module answers: *which of these candidates make the objective better, by how much, without
//! breaking a guard?* The search is pure: it chooses configurations, a [`Measure`] makes the trials. It must not read or
//! set a host.
//!
//! Every trial of the search tests every open candidate: blocks are randomised orthogonal arrays ([`mod@array`]), so that
//! an effect's standard error after T trials is 2 sd / sqrt(T) for each candidate. Candidates are proven by Holm's steps
//! with weights from their priors. What is proven together is then confirmed on fresh pairs of trials against the start, and each
//! kept candidate's own contribution is measured by leaving it out. `docs/explanation/tune-auto.md` has the reasons.

pub mod array;
pub mod candidate;
mod finish;
pub mod guard;
mod keeping;
pub mod level;
pub mod measure;
mod pairs;
mod repairs;
pub mod report;
mod search;
mod searching;
mod tally;
mod values;

pub use candidate::{Candidate, Prior, Risk};
pub use finish::MOST_PAIRS;
pub use guard::{GuardLimit, MetricGuard};
pub use measure::{Broke, Measure, Phase, TrialReading};
pub use report::{AutoOutcome, AutoResult};
pub use search::{Failed, TooShort, fewest_trials, search};
pub use searching::Plan;
