//! Netfilter and other hooks on the path.

mod audit;
pub mod netfilter;
pub mod taps;
