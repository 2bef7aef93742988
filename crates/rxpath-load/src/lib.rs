//! The measured workloads. UDP senders and receivers that count every datagram.
//!
//! Threads and blocking system calls only; nothing is allocated per packet inside a loop.

pub mod control;
pub mod engine;
pub mod error;
pub mod udp;

pub use error::LoadError;
