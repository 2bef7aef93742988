//! From the kernel's counters over a window to the rows of the evidence: packets by CPU, connection tracking.

use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_host::read::counter::Width;
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
        drops_packets: summed(before.drop_total, after.drop_total),
        early_drops_count: summed(before.early_drop_total, after.early_drop_total),
        entries_count: after.entries_count,
        entries_max: after.entries_max,
    }
}

/// How far a sum over CPUs moved; 0 where it was reset.
fn summed(before: u64, after: u64) -> u64 {
    Width::U32Sum.step(before, after).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_on_one_cpu_hides_no_drops_of_connection_tracking() {
        let dropped = |before, after| {
            let of = |drop_total| Conntrack { drop_total, ..Conntrack::default() };
            conntrack(&of(before), &of(after)).drops_packets
        };
        assert_eq!(dropped(7, 12), 5);
        // Two CPUs: one had 2^32 - 10 and has 90, the other stands at 1000.
        assert_eq!(dropped((1 << 32) - 10 + 1000, 90 + 1000), 100);
        // The module was loaded again.
        assert_eq!(dropped(5_000, 3), 0);
    }
}
