//! Netfilter and other hooks on the path.

pub mod netfilter;
pub mod taps;
