//! Packets and drops of each receive queue, under whatever name the driver has for them.
//!
//! The netdev family has one name for all (6.9), where the driver joined it; drivers that joined with packets and without
//! drops (virtio_net, bnxt) have those among their own statistics. These are read by the patterns below, which are tried on the names and not on the driver: a driver that is not listed and
//! uses one of them is read as well.
//!
//! **Source** the functions that print the names (Linux 6.12):
//!
//! | driver | packets | drops | file |
//! |---|---|---|---|
//! | virtio_net | `rx0_packets`, before 6.10 `rx_queue_0_packets` | `rx0_drops`, `rx_queue_0_drops` | drivers/net/virtio_net.c `virtnet_get_stats_string` |
//! | veth | `rx_queue_0_xdp_packets` (those that NAPI took) | `rx_queue_0_drops` | drivers/net/veth.c `veth_get_strings` |
//! | igb, igc | `rx_queue_0_packets` | `rx_queue_0_drops` | drivers/net/ethernet/intel/igb/igb_ethtool.c `igb_get_strings` |
//! | ixgbe, ice | `rx_queue_0_packets` | - | .../ixgbe/ixgbe_ethtool.c `ixgbe_get_strings`, .../ice/ice_ethtool.c `__ice_get_strings` |
//! | i40e, iavf | `rx-0.packets`, before 4.20 `rx-0.rx_packets` | - | .../i40e/i40e_ethtool.c `i40e_gstrings_queue_stats` |
//! | mlx5 | `rx0_packets` | `rx0_wqe_err` | drivers/net/ethernet/mellanox/mlx5/core/en_stats.c `rq_stats_desc` |
//! | ena | `queue_0_rx_cnt` | `queue_0_rx_skb_alloc_fail`, `queue_0_rx_bad_desc_num` | drivers/net/ethernet/amazon/ena/ena_ethtool.c `ena_get_queue_strings` |
//! | gve | `rx_completed_desc[0]` | `rx_dropped_pkt[0]`, `rx_queue_drop_cnt[0]` | drivers/net/ethernet/google/gve/gve_ethtool.c `gve_gstrings_rx_stats` |
//! | bnxt | `[0]: rx_ucast_packets` and `mcast`, `bcast` | `[0]: rx_discards` | drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c `bnxt_ring_rx_stats_str` |
//! | vmxnet3 | `ucast pkts rx` and `mcast`, `bcast` behind `Rx Queue#` | `pkts rx OOB`, `drv dropped rx total` | drivers/net/vmxnet3/vmxnet3_ethtool.c `vmxnet3_rq_dev_stats` |
//! | e1000e, e1000 | one queue: the device's own `rx_packets` | `rx_missed_errors`, `rx_no_buffer_count` | .../e1000e/ethtool.c `e1000_gstrings_stats` |
//!
//! **Caveat** what a driver counts as a drop of a queue differs; drops that the NIC counts for all queues together
//! (`rx_missed_errors`, `rx_out_of_buffer`) belong to none of them and are not here, but for devices with one queue.

use std::collections::BTreeMap;

use rxpath_core::{Fact, IntoMap};

use crate::parse::is_number;
use crate::read::netlink::netdev::QueueKind;
use crate::read::nic::Nic;

#[cfg(test)]
mod tests;

/// What one queue counted; `None` where the driver has no such counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Packets received.
    pub packets_total: Option<u64>,
    /// Packets lost.
    pub drops_total: Option<u64>,
}

/// Counters by queue.
pub type ByQueue = BTreeMap<u32, QueueCounters>;

/// What a counter's name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Packets,
    /// Packets that XDP saw: of virtio_net a part of the packets, of veth all that there is.
    XdpPackets,
    Drops,
}

/// Before the queue's number, behind it, what it counts; counters of one kind are added up.
const PATTERNS: [(&str, &str, Kind); 20] = [
    ("rx_queue_", "_packets", Kind::Packets),
    ("rx_queue_", "_xdp_packets", Kind::XdpPackets),
    ("rx_queue_", "_drops", Kind::Drops),
    ("rx", "_packets", Kind::Packets),
    ("rx", "_drops", Kind::Drops),
    ("rx", "_wqe_err", Kind::Drops),
    ("rx-", ".packets", Kind::Packets),
    ("rx-", ".rx_packets", Kind::Packets),
    ("queue_", "_rx_cnt", Kind::Packets),
    ("queue_", "_rx_skb_alloc_fail", Kind::Drops),
    ("queue_", "_rx_bad_desc_num", Kind::Drops),
    ("rx_completed_desc[", "]", Kind::Packets),
    ("rx_dropped_pkt[", "]", Kind::Drops),
    ("rx_queue_drop_cnt[", "]", Kind::Drops),
    ("[", "]: rx_ucast_packets", Kind::Packets),
    ("[", "]: rx_mcast_packets", Kind::Packets),
    ("[", "]: rx_bcast_packets", Kind::Packets),
    ("[", "]: rx_discards", Kind::Drops),
    ("rxq", "_pkts", Kind::Packets),
    ("rx_", "_packets", Kind::Packets),
];

/// Begins a section of vmxnet3; its value is the queue's number.
const SECTION: &str = "Rx Queue#";
/// Names in a section of vmxnet3.
const SECTIONED: [(&str, Kind); 5] = [
    ("ucast pkts rx", Kind::Packets),
    ("mcast pkts rx", Kind::Packets),
    ("bcast pkts rx", Kind::Packets),
    ("pkts rx OOB", Kind::Drops),
    ("drv dropped rx total", Kind::Drops),
];

/// The counters of a device's receive queues and where they come from, or why there are none.
pub fn of(nic: &Nic, queues: usize) -> (Fact<String>, ByQueue) {
    if let Some(found) = from_netdev(nic) {
        return with_drops(found, nic);
    }
    let stats = match &nic.driver_stats {
        Fact::Ok { value } => value,
        gap => return (gap.clone().map(|_| String::new()), ByQueue::new()),
    };
    let mut found = from_names(stats);
    if found.is_empty() && queues == 1 {
        found = of_only_queue(stats);
    }
    if found.is_empty() {
        let why = format!("none of the driver's {} statistics names a queue", stats.len());
        return (Fact::absent(why), found);
    }
    (Fact::ok("driver's statistics".into()), found)
}

/// Packets and drops of each queue, and what is known of the drops where the driver does not tell all of them: that is
/// the least of it, and 0 says nothing.
fn from_netdev(nic: &Nic) -> Option<BTreeMap<u32, (QueueCounters, u64)>> {
    let stats = nic.queue_stats.value()?;
    let found: BTreeMap<u32, (QueueCounters, u64)> = stats
        .iter()
        .filter(|one| one.kind == QueueKind::Rx)
        .map(|one| {
            let of = |name: &str| one.counters.get(name).copied();
            // rx-hw-drops holds the overruns; rate limits and failed allocations are counted apart.
            let apart = [of("rx-alloc-fail"), of("rx-hw-drop-ratelimits")];
            let least = apart.into_iter().flatten().fold(0, u64::saturating_add);
            let counted = QueueCounters {
                packets_total: of("rx-packets"),
                drops_total: of("rx-hw-drops").map(|drops| drops.saturating_add(least)),
            };
            (one.index, (counted, least))
        })
        .into_map();
    found.values().any(|(one, _)| one.packets_total.is_some()).then_some(found)
}

/// The kernel's counters of the queues, with the driver's drops where the kernel has none.
fn with_drops(queues: BTreeMap<u32, (QueueCounters, u64)>, nic: &Nic) -> (Fact<String>, ByQueue) {
    let stats = nic.driver_stats.value().map_or(&[][..], Vec::as_slice);
    let (named, mut used) = (from_names(stats), false);
    let found = queues.into_iter().map(|(queue, (counted, least))| {
        let theirs = named.get(&queue).and_then(|one| one.drops_total);
        used |= counted.drops_total.is_none() && theirs.is_some();
        let drops_total = counted.drops_total.or(theirs).or(Some(least).filter(|least| *least > 0));
        (queue, QueueCounters { drops_total, ..counted })
    });
    let found: ByQueue = found.into_map();
    let drops = if used { ", drops: driver's statistics" } else { "" };
    (Fact::ok(format!("kernel's queue statistics{drops}")), found)
}

/// The counters in a driver's own statistics.
pub fn from_names(stats: &[(String, u64)]) -> ByQueue {
    let mut found = ByQueue::new();
    let mut section = None;
    let mut seen_by_xdp: BTreeMap<u32, u64> = BTreeMap::new();
    for (name, value) in stats {
        let name = plain(name);
        if name == SECTION {
            section = u32::try_from(*value).ok();
        } else if let Some((queue, kind)) = by_pattern(name) {
            if kind == Kind::XdpPackets {
                let seen = seen_by_xdp.entry(queue).or_insert(0);
                *seen = seen.saturating_add(*value);
            } else {
                add(&mut found, queue, kind, *value);
            }
        } else if let (Some(queue), Some(kind)) = (section, sectioned(name)) {
            add(&mut found, queue, kind, *value);
        } else if name.starts_with("Tx Queue#") {
            section = None;
        }
    }
    for (queue, packets) in seen_by_xdp {
        found.entry(queue).or_default().packets_total.get_or_insert(packets);
    }
    found
}

/// The name without the blanks around it and without the `#2` of a repeated one.
fn plain(name: &str) -> &str {
    let name = name.trim();
    match name.rsplit_once('#') {
        Some((before, number)) if is_number(number) => before.trim(),
        _ => name,
    }
}

fn by_pattern(name: &str) -> Option<(u32, Kind)> {
    PATTERNS.iter().find_map(|(before, behind, kind)| {
        let number = name.strip_prefix(before)?.strip_suffix(behind)?;
        Some((is_number(number).then(|| number.parse().ok())??, *kind))
    })
}

fn sectioned(name: &str) -> Option<Kind> {
    SECTIONED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

fn add(found: &mut ByQueue, queue: u32, kind: Kind, value: u64) {
    let counted = found.entry(queue).or_default();
    let total = match kind {
        Kind::Packets | Kind::XdpPackets => &mut counted.packets_total,
        Kind::Drops => &mut counted.drops_total,
    };
    *total = Some(total.unwrap_or(0).saturating_add(value));
}

/// The device's counters are those of its one queue.
fn of_only_queue(stats: &[(String, u64)]) -> ByQueue {
    let of = |wanted: &str| stats.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let drops = [of("rx_missed_errors"), of("rx_no_buffer_count")];
    let counted = QueueCounters {
        packets_total: of("rx_packets"),
        drops_total: drops.into_iter().flatten().max(),
    };
    if counted == QueueCounters::default() { ByQueue::new() } else { ByQueue::from([(0, counted)]) }
}
