//! Netfilter and other hooks on the path.

mod audit;
pub mod dropping;
pub mod netfilter;
pub mod policy;
pub mod taps;
pub mod undelivered;
