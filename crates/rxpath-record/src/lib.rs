//! The files of a run: the packet ledger, the run directory, its types and their JSON Schemas.
//!
//! Types, reader and writer live together so that what is written can always be read back.
//! This crate must not read the host and must not measure: it gets numbers and keeps them.

pub mod agreement;
pub mod axes;
pub mod capacity;
pub mod compared;
pub mod comparison;
pub mod counters;
pub mod doubts;
pub mod environment;
pub mod event;
pub mod evidence;
pub mod grade;
pub mod hosts;
pub mod ledger;
pub mod manifest;
pub mod metric;
pub mod prediction;
pub mod run;
pub mod samples;
pub mod schema;
pub mod stolen;
pub mod traced;
pub mod verdict;
pub mod watch;
