//! The reader half: what this kernel says of the host, from procfs, sysfs, netlink, ioctl and system calls.
//!
//! The question it answers: *what is there now?* Nothing in it changes the machine, and nothing in it uses
//! [`crate::write`] or [`crate::lab`].

pub mod cgroup;
pub mod clock;
pub mod conntrack;
pub mod counter;
pub mod cputime;
pub mod energy;
pub mod environment;
pub mod identity;
pub mod installed;
pub mod ioctl;
pub mod kernel_config;
pub mod netlink;
pub mod nic;
pub mod ntp;
pub mod only;
pub mod optional;
pub mod process;
pub mod procfs;
pub mod queue_map;
pub mod root;
pub mod session;
pub mod snapshot;
pub mod startup;
pub mod steering;
pub mod sysfs;
pub mod tcx;
pub mod thread;
pub mod topology;
