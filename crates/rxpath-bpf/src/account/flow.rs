//! For which flows the packets of taken softirqs were, by the task whose time they took.

use std::net::IpAddr;

use super::row::TaskKey;
use crate::bytes::Fields;

/// Whose time, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// The task that was interrupted.
    pub victim: TaskKey,
    /// Device through which the packet came, in its namespace.
    pub ifindex: u32,
    /// Inode of the device's network namespace.
    pub netns: u32,
    /// Transport protocol (`IPPROTO_*`); 0 for what is no IP or has its headers in fragments.
    pub transport: u16,
    /// Destination port of TCP and UDP.
    pub port: u16,
    /// Destination address.
    pub to: Option<IpAddr>,
}

/// Packets of one flow that were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// Whose, for whom.
    pub key: FlowKey,
    /// Packets (aggregates of GRO count as one).
    pub packets: u64,
    /// Device name when first seen.
    pub dev: String,
}

impl FlowRow {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: Option<&Self>) -> Self {
        let before = earlier.map_or(0, |row| row.packets);
        Self { packets: self.packets.saturating_sub(before), ..self.clone() }
    }
}

/// `struct flow_key` and `struct flow_row`.
pub(super) fn flow(key: &[u8], value: &[u8]) -> FlowRow {
    let mut k = Fields::of(key);
    let victim = TaskKey { start_ns: k.u64(), pid: k.u32(), cpu: k.u32() };
    let (ifindex, netns, transport, port) = (k.u32(), k.u32(), k.u16(), k.u16());
    k.skip(4);
    let to = k.address();
    let mut f = Fields::of(value);
    let packets = f.u64();
    let key = FlowKey { victim, ifindex, netns, transport, port, to };
    FlowRow { key, packets, dev: f.text(16) }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_flow_is_read_by_place() {
        let mut key = 5u64.to_ne_bytes().to_vec();
        key.extend([7u32, 1, 3, 99].iter().flat_map(|word| word.to_ne_bytes()));
        key.extend([17u16, 4321, 0, 0].iter().flat_map(|half| half.to_ne_bytes()));
        key.extend(Ipv4Addr::new(10, 1, 2, 3).to_ipv6_mapped().octets());
        let mut value = 12u64.to_ne_bytes().to_vec();
        value.extend(b"veth0\0\0\0\0\0\0\0\0\0\0\0");
        let row = flow(&key, &value);
        assert_eq!(row.key.victim, TaskKey { start_ns: 5, pid: 7, cpu: 1 });
        assert_eq!(
            (row.key.ifindex, row.key.netns, row.key.transport, row.key.port),
            (3, 99, 17, 4321)
        );
        assert_eq!(row.key.to, Some(Ipv4Addr::new(10, 1, 2, 3).into()));
        // Counted together, because there was no room.
        key[32..48].fill(0);
        assert_eq!(flow(&key, &value).key.to, None);
        assert_eq!((row.packets, row.dev.as_str()), (12, "veth0"));
        assert_eq!(row.since(Some(&FlowRow { packets: 5, ..row.clone() })).packets, 7);
    }
}
