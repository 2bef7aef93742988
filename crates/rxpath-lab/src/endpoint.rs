//! One host of an experiment between hosts: the process that runs there, and the coordinator's end of its pipe.
//!
//! An endpoint starts this program's workloads on its host, reads the host's counters and CPU time, and measures the
//! window at instants that it was given ahead. It ends with its input: nothing stays behind on the host.

mod ahead;
pub mod background;
mod carriers;
pub mod client;
pub mod clock;
mod cost;
pub mod counting;
mod device_cpus;
mod faults;
mod files;
mod lease;
pub mod leftovers;
pub mod links;
pub mod observing;
mod outlet;
pub mod probe;
pub mod programs;
pub mod route;
pub mod said;
pub mod server;
mod session;
pub mod settings;
pub mod strays;
pub mod token;
pub mod window;
pub mod wire;
