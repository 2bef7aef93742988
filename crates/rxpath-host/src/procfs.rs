//! What the files below `/proc` say: one small file for each, a pure `parse` and a `read` over [`crate::root::Root`].
//!
//! Parsers refuse what they don't understand with the line and the reason; they never fill in a zero.

pub mod cpuinfo;
pub mod dev;
pub mod interrupts;
pub mod listeners;
pub mod schedstat;
pub mod snmp;
pub mod snmp6;
pub mod socket_owner;
pub mod sockstat;
pub mod softirqs;
pub mod softnet;
pub mod stat;
pub mod sysctl;
pub mod task;
pub mod udp;
