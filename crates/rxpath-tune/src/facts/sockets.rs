//! UDP sockets by port, as `/proc/net/udp` and `/proc/net/udp6` list them.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::Fact;
use rxpath_host::read::procfs::{socket_owner, udp};
use rxpath_host::{HostError, Root};

/// The sockets of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpPort {
    /// How many there are.
    pub sockets_count: usize,
    /// Datagrams that the worst of them dropped since it was opened.
    pub worst_drops_total: u64,
}

/// Sockets by their own port, those of these processes where some are named; absent when neither file can be read.
pub(super) fn udp_ports(
    root: &Root,
    processes: Option<&BTreeSet<i32>>,
) -> Fact<BTreeMap<u16, UdpPort>> {
    let mut wanted: Option<BTreeSet<u32>> = processes.map(|_| BTreeSet::new());
    for pid in processes.into_iter().flatten() {
        match socket_owner::held(root, *pid) {
            Ok(held) => wanted.get_or_insert_default().extend(held),
            Err(error @ HostError::Denied { .. }) => return error.into_gap(),
            // Ended since.
            Err(_) => {}
        }
    }
    let is_wanted = |socket: &udp::ProcfsUdpSocket| {
        wanted.as_ref().is_none_or(|wanted| wanted.contains(&socket.inode))
    };
    let mut ports: BTreeMap<u16, UdpPort> = BTreeMap::new();
    let mut gap = None;
    for path in [udp::UDP, udp::UDP6] {
        match root.parsed(path, udp::parse) {
            Ok(sockets) => {
                for socket in sockets.into_iter().filter(is_wanted) {
                    let port = ports.entry(socket.port).or_default();
                    port.sockets_count += 1;
                    port.worst_drops_total =
                        port.worst_drops_total.max(socket.drops.unwrap_or_default());
                }
            }
            // A host without IPv6 has no second file.
            Err(error) if path == udp::UDP => gap = Some(error),
            Err(_) => {}
        }
    }
    match gap {
        Some(error) if ports.is_empty() => error.into_gap(),
        _ => Fact::ok(ports),
    }
}
