//! The host as it is: procfs, sysfs, netlink, sockets, threads, namespaces.
//!
//! The question this crate answers: *what does this kernel say, and what did it really do with what
//! we asked?* Each fact is ok, absent with its reason or denied with what would show it. The crate
//! must not judge (that is for rules and the diagnosis) and must not know about experiments.
//!
//! [`read`] never changes the machine and uses neither [`write`](mod@write) nor [`lab`]; [`write`](mod@write) does not use
//! [`lab`]. What stands next to them is shared: names, texts, errors, the netlink protocol, and this process itself.

pub mod lab;
pub mod read;
pub mod write;

pub mod caps;
pub mod command_line;
mod cpu_mask;
pub mod error;
pub mod glob;
pub mod heap;
pub mod inherited;
mod ioctl;
mod listed;
pub mod netlink;
pub mod notify;
pub mod pairs;
pub mod parse;
pub mod target;

#[cfg(test)]
mod any_bytes;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
#[cfg(test)]
mod tests;

pub use error::HostError;
pub use read::root::Root;
pub use target::{Group, Knob, Target};
