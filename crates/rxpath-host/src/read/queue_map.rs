//! From a queue to the CPU that serves it: queue, NAPI instance, interrupt, CPU, NUMA node, RSS share, RPS, XPS.
//!
//! The question it answers: *which CPU pays for the packets of this queue, and how many come?* The kernel's own links
//! (netdev family, 6.8) are used where the driver made them; elsewhere the names of the device's interrupts tell
//! ([`vector`]). Counters are the driver's by its own names ([`counters`]). Nothing here judges.

pub mod counters;
mod devices;
mod lines;
mod rates;
pub mod vector;

use std::collections::BTreeMap;

use rxpath_core::{CpuList, Fact, IntoMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::netlink::ethtool::Channels;
use crate::read::nic::Nic;
use crate::read::sysfs::device::{self, Steering};
use crate::{HostError, Root};

pub use devices::{pass_over, read_all};
pub use lines::{HostTables, Lines};
pub use rates::{QueueRate, rates};

/// How the interrupt of a queue was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IrqSource {
    /// The kernel says so: queue, NAPI instance, interrupt.
    Netdev,
    /// By the name that the driver gave the interrupt.
    Name,
    /// The device has one queue and one interrupt.
    Only,
}

/// One interrupt of a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueIrq {
    /// Its number.
    pub irq: u32,
    /// Its name.
    pub name: String,
    /// How it was found.
    pub source: IrqSource,
    /// CPUs that it may go to.
    pub allowed_cpus: Fact<CpuList>,
    /// CPUs that it goes to.
    pub effective_cpus: Fact<CpuList>,
    /// NUMA nodes of these CPUs.
    pub nodes: Fact<Vec<u32>>,
    /// How often it was taken, on all CPUs.
    pub taken_total: u64,
}

/// One receive queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Number.
    pub queue: u32,
    /// Number of its NAPI instance.
    pub napi_id: Fact<u32>,
    /// Its interrupt.
    pub irq: Fact<QueueIrq>,
    /// Part of the indirection table that leads to it.
    pub rss_share_ratio: Fact<f64>,
    /// CPUs that RPS spreads its packets to; empty is off.
    pub rps_cpus: Fact<CpuList>,
    /// Entries of its flow table (RFS).
    pub rps_flow_count: Fact<u64>,
    /// CPUs that transmit through the transmit queue of the same number.
    pub xps_cpus: Fact<CpuList>,
    /// Packets that it received.
    pub packets_total: Fact<u64>,
    /// Packets that were lost at it.
    pub drops_total: Fact<u64>,
}

/// The queues of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceQueues {
    /// Its name.
    pub device: String,
    /// Its driver.
    pub driver: Fact<String>,
    /// Its NUMA node; -1 when the platform does not say.
    pub node: Fact<i32>,
    /// Where the counters come from, or why there are none.
    pub counters: Fact<String>,
    /// The queues, by number.
    pub rows: Vec<Row>,
}

impl DeviceQueues {
    /// A queue by its number.
    pub fn row(&self, queue: u32) -> Option<&Row> {
        // Rows are in the order of their numbers.
        self.rows.binary_search_by_key(&queue, |row| row.queue).ok().map(|at| &self.rows[at])
    }
}

/// The queues of the device `name`.
///
/// **Errors** [`HostError::Missing`] when there is no such device; what it does not tell are gaps.
pub fn read(
    root: &Root,
    name: &str,
    nic: &Nic,
    shared: &HostTables,
) -> Result<DeviceQueues, HostError> {
    let sysfs = device::steering(root, name)?;
    Ok(of(&sysfs, nic, &Lines::new(root, name, nic, shared), name))
}

/// The queues that are in use of a device whose files were read.
pub fn of(sysfs: &Steering, nic: &Nic, lines: &Lines<'_>, name: &str) -> DeviceQueues {
    let (source, counted) = counters::of(nic, sysfs.rx_queues.len());
    let active = nic.channels.value().and_then(Channels::receiving).filter(|n| *n > 0);
    let queues = active.map_or(sysfs.rx_queues.len(), |n| (n as usize).min(sysfs.rx_queues.len()));
    let rss_shares = table_shares(nic, queues);
    let xps: BTreeMap<u32, &Fact<CpuList>> =
        sysfs.tx_queues.iter().map(|tx| (tx.index, &tx.xps_cpus)).into_map();
    let rows = sysfs.rx_queues.iter().take(queues).map(|rx| {
        let at = rx.index as usize;
        let total = |pick: fn(&counters::QueueCounters) -> Option<u64>| {
            counted.get(&rx.index).and_then(pick).map_or_else(
                || source.as_ref().and_then(|of| Fact::absent(format!("not among the {of}"))),
                Fact::ok,
            )
        };
        Row {
            queue: rx.index,
            napi_id: lines.napi(rx.index),
            irq: lines.irq(rx.index, queues),
            rss_share_ratio: rss_shares.as_ref().map(|all| all.get(at).copied().unwrap_or(0.0)),
            rps_cpus: rx.rps_cpus.clone(),
            rps_flow_count: rx.rps_flow_count.clone(),
            xps_cpus: xps
                .get(&rx.index)
                .map_or_else(|| Fact::absent("no such transmit queue"), |cpus| (*cpus).clone()),
            packets_total: total(|counted| counted.packets_total),
            drops_total: total(|counted| counted.drops_total),
        }
    });
    DeviceQueues {
        device: name.to_owned(),
        rows: rows.collect(),
        driver: sysfs.driver.clone(),
        node: sysfs.numa_node.clone(),
        counters: source,
    }
}

/// The part of the indirection table that leads to each queue; the gap when there is no table.
fn table_shares(nic: &Nic, queues: usize) -> Fact<Vec<f64>> {
    if queues == 1 {
        return Fact::ok(vec![1.0]);
    }
    nic.rss.as_ref().and_then(|rss| {
        if rss.table.is_empty() {
            return Fact::absent("the driver shows no indirection table");
        }
        let (entries, shares) = (rss.table.len() as f64, rss.shares(queues as u32));
        Fact::ok(shares.into_iter().map(|share| share as f64 / entries).collect())
    })
}
