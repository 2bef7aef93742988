//! The world of a search for settings that help: candidates and trials, of a scenario or of this host's own traffic.
//!
//! The question: *what can be tried here, and what does a trial with these settings measure?* What is tried when, and
//! what is kept, is decided by [`rxpath_tune::auto`].

pub mod answer;
pub mod ask;
mod axes;
pub mod candidates;
pub mod catalogue;
pub mod confirming;
pub mod cost;
mod ground;
mod in_variant;
pub mod live;
mod made;
pub mod product;
pub mod searched;
pub mod session;
mod trials;
