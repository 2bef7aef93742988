//! What of the host is judged: devices, and the processes whose sockets count.

use std::collections::BTreeSet;

/// What is judged; everything by default.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Devices that device rules are asked about; empty for all of them. Rules about the host see every device.
    pub devices: Vec<String>,
    /// Processes whose sockets, threads and control groups are looked at; `None` for all of them.
    pub processes: Option<BTreeSet<i32>>,
    /// Whether this process moved into the network namespace. The files of settings below `/etc` are then those of
    /// another one: what they say of `net` does not hold here.
    pub is_entered: bool,
}

impl Scope {
    /// These devices alone, of everybody.
    pub fn devices(devices: &[String]) -> Self {
        Self { devices: devices.to_vec(), ..Self::default() }
    }
}
