//! NIC: interrupts and coalescing.

pub mod affinity;
pub mod coalesce;
pub mod lines;
