//! Is this host set up right? Rules over a host's facts, what they found, and why.
//!
//! The path of the data: [`facts`] are read once through `rxpath-host`; each rule in [`rules`] reads facts and answers;
//! [`check()`] orders the answers, and [`suppress`] takes out what a site lives with. A rule names what it would change
//! as a [`knob`], and never changes it. [`fleet`] sums up the reports of many hosts. This crate must not measure, and
//! rules must not read the host but through the facts.

pub mod answer;
pub mod apply;
pub mod auto;
pub mod carry;
pub mod check;
pub mod effects;
pub mod facts;
pub mod finding;
pub mod fleet;
pub mod knob;
pub mod limits;
pub mod outcome;
pub mod persist;
pub mod plan;
mod prelude;
pub mod ranges;
pub mod rule;
mod rule_file;
pub mod rules;
pub mod standings;
pub mod status;
pub mod store;
pub mod suppress;
pub mod switch;
pub mod unjudged;
pub mod verify;
pub mod watch;
pub mod weight;

pub use check::{Report, check};
pub use facts::{Device, HostFacts, Scope};
pub use finding::Finding;
pub use knob::Set;
pub use rule::{Ask, Rule};
pub use weight::{Goal, Severity};
