//! The flows of packets in taken softirqs, by the task whose time they took.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;

use super::row::TaskKey;
use crate::bytes::Fields;

/// The interrupted task and the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// The task that was interrupted.
    pub victim: TaskKey,
    /// Device through which the packet came, in its namespace.
    pub ifindex: u32,
    /// Inode of the device's network namespace.
    pub netns: u32,
    /// Transport protocol (`IPPROTO_*`); 0 for packets that are not IP or have their headers in fragments.
    pub transport: u16,
    /// Destination port of TCP and UDP.
    pub port: u16,
    /// Destination address.
    pub to: Option<IpAddr>,
}

/// Sampled packets of one flow.
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

/// Limit of flow rows kept after they were removed from the kernel; further flows are counted together.
const KEPT: usize = 65_536;

/// Sum of the rows removed from the kernel to make room for others.
#[derive(Debug, Default)]
pub(super) struct Flows {
    rows: HashMap<FlowKey, FlowRow>,
}

impl Flows {
    /// Keeps a row; where there are too many, without port and address.
    pub(super) fn keep(&mut self, row: FlowRow) {
        let mut key = row.key;
        if self.rows.len() >= KEPT && !self.rows.contains_key(&key) {
            (key.port, key.to) = (0, None);
        }
        let kept = self.rows.entry(key).or_insert(FlowRow { key, packets: 0, dev: row.dev });
        kept.packets += row.packets;
    }

    /// These rows of the kernel and what was taken of the same flows before, and all others that were taken.
    pub(super) fn with(&self, now: impl Iterator<Item = FlowRow>) -> Vec<FlowRow> {
        let mut all = self.rows.clone();
        for row in now {
            match all.entry(row.key) {
                Entry::Occupied(mut kept) => kept.get_mut().packets += row.packets,
                Entry::Vacant(place) => drop(place.insert(row)),
            }
        }
        all.into_values().collect()
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
    fn what_was_taken_out_is_added_and_never_more_than_is_kept() {
        let row = |port: u32, packets| FlowRow {
            key: FlowKey {
                victim: TaskKey { start_ns: 1, pid: 7, cpu: port >> 16 },
                ifindex: 1,
                netns: 2,
                transport: 17,
                port: port as u16,
                to: Some(Ipv4Addr::LOCALHOST.into()),
            },
            packets,
            dev: "veth0".into(),
        };
        let mut flows = Flows::default();
        flows.keep(row(5, 3));
        flows.keep(row(5, 4));
        let mut read = flows.with([row(5, 1), row(6, 2)].into_iter());
        read.sort_by_key(|row| row.key.port);
        assert_eq!(read, [row(5, 8), row(6, 2)]);
        (0..2 * KEPT as u32).for_each(|port| flows.keep(row(port, 1)));
        let read = flows.with(std::iter::empty());
        // The others of CPU 1 are one row, and so is the last of CPU 0.
        assert!((KEPT..=KEPT + 2).contains(&read.len()), "{}", read.len());
        assert_eq!(read.iter().map(|row| row.packets).sum::<u64>(), 7 + 2 * KEPT as u64);
    }

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
