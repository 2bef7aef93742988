//! The receive queue of each NAPI, and the polls of each device.

use std::collections::{BTreeMap, HashMap};

use rxpath_core::measured::NapiPolls;
use rxpath_core::{Log2, SortFew};
use rxpath_host::netlink::Netlink;
use rxpath_host::read::identity::network_namespace;
use rxpath_host::read::netlink::netdev::QueueKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All NAPIs of one device on all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DevicePolls {
    /// Device; `backlog` for the backlogs of all CPUs (RPS, loopback, devices without NAPI).
    pub dev: String,
    /// Device index in its namespace; 0 for the backlog.
    pub ifindex: u32,
    /// Inode of its network namespace; 0 for the backlog.
    pub netns: u32,
    /// NAPIs that polled.
    pub napis_count: u64,
    /// CPUs on which they did.
    pub cpus: Vec<u32>,
    /// NAPI polls.
    pub polls_count: u64,
    /// Packets.
    pub packets: u64,
    /// Polls that used up their budget.
    pub exhausted_count: u64,
    /// Time of the polls in softirqs, hard interrupts in them included.
    pub poll_ns: u64,
    /// Packets of a poll.
    pub packets_per_poll: Log2,
}

/// Sums NAPIs by device, the most packets first.
pub fn devices(napis: &[NapiPolls]) -> Vec<DevicePolls> {
    let mut found: BTreeMap<(u32, u32), (DevicePolls, Vec<u32>)> = BTreeMap::new();
    for napi in napis {
        let (row, ids) = found.entry((napi.netns, napi.ifindex)).or_default();
        (row.ifindex, row.netns) = (napi.ifindex, napi.netns);
        row.dev.clone_from(&napi.dev);
        row.cpus.push(napi.cpu);
        row.polls_count += napi.polls_count;
        row.packets += napi.packets;
        row.exhausted_count += napi.exhausted_count;
        row.poll_ns += napi.poll_ns;
        row.packets_per_poll.add(&napi.packets_per_poll);
        // Backlogs have no number: each CPU has one.
        ids.push(if napi.napi_id == 0 { napi.cpu } else { napi.napi_id });
    }
    let mut rows: Vec<DevicePolls> = found
        .into_values()
        .map(|(mut row, mut ids)| {
            for list in [&mut row.cpus, &mut ids] {
                list.sort_unstable();
                list.dedup();
            }
            DevicePolls { napis_count: ids.len() as u64, ..row }
        })
        .collect();
    rows.sort_few_by_key(|row| (std::cmp::Reverse(row.packets), row.netns, row.ifindex));
    rows
}

/// A NAPI of the machine.
#[derive(Clone, Copy, Debug)]
pub struct NapiInstance {
    /// Inode of its device's network namespace.
    pub netns: u32,
    /// Device index there.
    pub ifindex: u32,
    /// NAPI instance; 0 has no queue.
    pub id: u32,
}

/// Adds the receive queue to each NAPI of this network namespace, where the kernel reports it (6.8).
pub fn name_queues<'a>(napis: impl Iterator<Item = (NapiInstance, &'a mut Option<u32>)>) {
    let Ok(here) = network_namespace() else { return };
    let Ok(mut netlink) = Netlink::generic() else { return };
    let mut queues: HashMap<u32, HashMap<u32, u32>> = HashMap::new();
    for (napi, queue) in napis.filter(|(napi, _)| u64::from(napi.netns) == here && napi.id != 0) {
        let of_device = queues.entry(napi.ifindex).or_insert_with(|| {
            let found = netlink.device_queues(napi.ifindex).unwrap_or_default();
            let receiving = found.into_iter().filter(|queue| queue.kind == QueueKind::Rx);
            receiving.filter_map(|queue| Some((queue.napi_id?, queue.index))).collect()
        });
        *queue = of_device.get(&napi.id).copied();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn napis_of_a_device_are_one_row_and_backlogs_another() {
        let napi = |napi_id, ifindex, cpu, packets| NapiPolls {
            dev: if ifindex == 0 { "backlog".into() } else { "eth0".into() },
            napi_id,
            ifindex,
            netns: ifindex,
            cpu,
            polls_count: 2,
            packets,
            packets_per_poll: Log2::of(&[0, 2]),
            ..NapiPolls::default()
        };
        // One NAPI that moved from CPU 0 to 1, another on 1, the backlogs of both.
        let rows = devices(&[
            napi(8, 2, 0, 100),
            napi(8, 2, 1, 10),
            napi(9, 2, 1, 1),
            napi(0, 0, 0, 7),
            napi(0, 0, 1, 7),
        ]);
        let [eth, backlog] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((eth.dev.as_str(), eth.packets, eth.polls_count), ("eth0", 111, 6));
        assert_eq!((eth.napis_count, &eth.cpus[..]), (2, &[0, 1][..]));
        assert_eq!(eth.packets_per_poll.count(), 6);
        assert_eq!(
            (backlog.dev.as_str(), backlog.napis_count, backlog.packets),
            ("backlog", 2, 14)
        );
    }
}
