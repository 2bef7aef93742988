//! Queueing, virtualisation, managers of settings, honesty of benchmarks.

pub mod link_files;
pub mod managers;
pub mod owners;
mod persistent;
pub mod virtual_machine;
