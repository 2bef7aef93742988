//! The measured workloads: senders and receivers that count their traffic.
//!
//! Each protocol is a module. All protocols share the contract of [`workload`], the worker threads of [`pool`], the
//! counters of [`tally`] and the verdicts of [`limit`].
//!
//! Threads and blocking system calls only; nothing is allocated per packet inside a loop.

mod address;
mod buffers;
mod busy_poll;
pub mod control;
pub mod engine;
pub mod error;
pub mod http;
pub mod limit;
pub mod live;
pub mod pace;
pub mod pool;
mod ports;
pub mod quantiles;
mod schedule;
mod slab;
pub mod stall;
pub mod tally;
pub mod tcp;
mod thread_args;
pub mod udp;
pub mod usage;
pub mod values;
pub mod workload;
mod zone;

pub use error::LoadError;
