//! What an experiment is: its question, its lab, its two workloads, its variants and its trials.
//!
//! [`load`] finds a scenario by name or path and parses it into a [`ScenarioFile`], every value typed
//! and checked with its line. [`resolve`] merges base, variants, sweeps and `--set` and replaces CPU
//! roles by CPUs of one host. Nothing here reads the host or changes it: the host's shape is an argument.

mod between;
mod bundled;
mod check;
mod cpus;
mod empty;
mod error;
mod expand;
mod file;
mod forms;
mod host_shape;
mod key;
mod keys;
mod merge;
pub mod offers;
mod on_hosts;
mod place;
pub mod power;
mod protocol;
mod reader;
mod resolve;
mod reworded;
mod search;
mod sections;
mod set;
mod source;
pub mod spec;
mod tune;
mod value;
mod written;

pub use bundled::{Title, bundled, load, titles};
pub use error::ScenarioError;
pub use file::ScenarioFile;
pub use host_shape::{CpuShape, HostShape};
pub use keys::reference;
pub use place::cpus_on;
pub use reader::PORT;
pub use resolve::{resolve, resolve_between};
pub use written::parse;

#[cfg(test)]
mod tests;
