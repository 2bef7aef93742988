//! Queueing, virtualisation, managers of settings, honesty of benchmarks.

pub mod link_files;
pub mod managers;
pub mod netvsc;
pub mod owners;
mod persistent;
pub mod queueing;
pub mod virtual_machine;
