//! Queueing, virtualisation, managers of settings, honesty of benchmarks.

pub mod managers;
pub mod virtual_machine;
