//! The clients: streams and transactions towards one `rxpath serve tcp`.

mod begin;
mod limit;
pub mod options;
mod session;
pub mod stream;
pub mod transactions;
