//! What the files below `/proc` say: one small file for each, a pure `parse` and a `read` over [`crate::Root`].
//!
//! Parsers refuse what they don't understand with the line and the reason; they never fill in a zero.

pub mod cpuinfo;
pub mod interrupts;
pub mod listeners;
pub mod nf_conntrack;
pub mod schedstat;
pub mod snmp;
pub mod snmp6;
pub mod socket_owner;
pub mod softnet;
pub mod stat;
pub mod sysctl;
pub mod task;
pub mod udp;
pub mod waits;

use std::time::Duration;

use crate::{HostError, Root};

/// How long the host has been up, by `/proc/uptime` (proc_uptime(5)); in steps of 10 ms.
pub fn uptime(root: &Root) -> Result<Duration, HostError> {
    const PATH: &str = "/proc/uptime";
    let seconds = root.parsed(PATH, |text| {
        crate::parse::number::<f64>(1, "uptime", text.split_ascii_whitespace().next())
    })?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| HostError::malformed(root.path(PATH), 1, error.to_string()))
}

/// `PROC_PID_INIT_INO`, include/linux/proc_ns.h.
pub(crate) const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether pids here are those of the host, as probes in the kernel see them; `true` where it is not known.
pub fn is_first_pid_namespace(root: &Root) -> bool {
    let link = root.link("/proc/self/ns/pid");
    link.map_or(true, |name| name.to_str() == Some(FIRST_PID_NAMESPACE))
}
