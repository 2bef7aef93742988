//! The host as it is: procfs, sysfs, netlink, sockets, threads, namespaces.
//!
//! The question this crate answers: *what does this kernel say, and what did it really do with what
//! we asked?* Each fact is ok, absent with its reason or denied with what would show it. The crate
//! must not judge (that is for rules and the diagnosis) and must not know about experiments.

pub mod awake;
pub mod caps;
pub mod capture;
pub mod cgroup;
pub mod change;
pub mod clock;
pub mod counter;
pub mod cputime;
pub mod detached;
pub mod energy;
pub mod environment;
pub mod error;
pub mod fault;
pub mod glob;
pub mod heap;
pub mod identity;
pub mod inherited;
pub mod installed;
pub mod journal;
pub mod kernel_config;
mod listed;
pub mod lock;
pub mod netlink;
pub mod netns;
pub mod nft;
pub mod nic;
pub mod notify;
pub mod ntp;
pub mod only;
pub mod optional;
pub mod owner;
pub mod pairs;
pub mod parse;
pub mod probe;
pub mod procfs;
pub mod queue_map;
pub mod root;
pub mod session;
pub mod setter;
pub mod snapshot;
pub mod startup;
pub mod steering;
pub mod sysfs;
pub mod target;
pub mod tcx;
pub mod thread;
pub mod topology;

#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
#[cfg(test)]
mod tests;

pub use change::{Change, Outcome};
pub use error::HostError;
pub use netns::{Inside, Namespace, NsChild, NsThread};
pub use owner::Owner;
pub use root::Root;
pub use target::{Group, Knob, Target};
