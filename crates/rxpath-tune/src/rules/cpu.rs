//! CPU, power, scheduling, kernel.

pub mod kernel;
pub mod power;
pub mod quiet;
