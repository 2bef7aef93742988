//! CPU, power, scheduling, kernel.

pub mod clocks;
pub mod company;
pub mod guest;
pub mod kernel;
pub mod power;
pub mod quiet;
pub mod quota;
