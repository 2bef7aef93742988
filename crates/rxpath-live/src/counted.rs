//! From the kernel's counters over a window to the rows of the evidence: packets by CPU, connection tracking.

use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_host::read::netlink::netfilter::Conntrack;
use rxpath_record::counters::Moved;
use rxpath_record::evidence::{ConntrackUse, CpuPackets};

/// Packets of each CPU's receive softirq and backlog, by `softnet_stat`.
pub fn packets_by_cpu(moved: &Moved) -> Vec<CpuPackets> {
    let prefix = format!("{}/softnet.cpu", PathSide::Machine);
    let mut by_cpu: BTreeMap<u32, CpuPackets> = BTreeMap::new();
    for (name, count) in &moved.values {
        let Some((cpu, counter)) = name.strip_prefix(&prefix).and_then(|it| it.split_once('.'))
        else {
            continue;
        };
        let Ok(cpu) = cpu.parse() else { continue };
        let field: fn(&mut CpuPackets) -> &mut u64 = match counter {
            "processed" => |row| &mut row.packets,
            "dropped" => |row| &mut row.dropped_packets,
            "time_squeeze" => |row| &mut row.squeezed_count,
            _ => continue,
        };
        let none = CpuPackets { cpu, ..CpuPackets::default() };
        // 32 bits that wrap.
        *field(by_cpu.entry(cpu).or_insert(none)) = u64::from(*count as u32);
    }
    by_cpu.into_values().collect()
}

/// What connection tracking did between two readings.
pub fn conntrack(before: &Conntrack, after: &Conntrack) -> ConntrackUse {
    ConntrackUse {
        drops_packets: after.drop_total.saturating_sub(before.drop_total),
        early_drops_count: after.early_drop_total.saturating_sub(before.early_drop_total),
        entries_count: after.entries_count,
        entries_max: after.entries_max,
    }
}
