//! NAPI, softirq, polling.

pub mod backlog;
pub mod budget;
pub mod moderation;
pub mod polling;
