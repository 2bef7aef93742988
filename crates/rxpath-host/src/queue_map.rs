//! From a queue to the CPU that serves it: queue, NAPI instance, interrupt, CPU, NUMA node, RSS share, RPS, XPS.
//!
//! The question it answers: *which CPU pays for the packets of this queue, and how many come?* The kernel's own links
//! (netdev family, 6.8) are used where the driver made them; elsewhere the names of the device's interrupts tell
//! ([`vector`]). Counters are the driver's by its own names ([`counters`]). Nothing here judges.

pub mod counters;
mod rates;
pub mod vector;

use rxpath_core::{CpuList, Fact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::fact;
use crate::netlink::ethtool::Channels;
use crate::netlink::netdev::QueueKind;
use crate::nic::Nic;
use crate::procfs::interrupts::{Interrupt, Interrupts};
use crate::sysfs::{device, irq};
use crate::topology::Topology;
use crate::{HostError, Root};

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
        self.rows.iter().find(|row| row.queue == queue)
    }
}

/// What is read once for all devices.
#[derive(Debug)]
pub struct Shared {
    /// `/proc/interrupts`.
    pub interrupts: Fact<Interrupts>,
    /// CPUs and nodes.
    pub topology: Fact<Topology>,
}

impl Shared {
    /// Reads it.
    pub fn read(root: &Root) -> Self {
        use crate::procfs::interrupts;
        Self {
            interrupts: fact(root.parsed(interrupts::PATH, interrupts::parse)),
            topology: fact(crate::topology::read(root)),
        }
    }

    /// Reads again what moves: how often each interrupt was taken, and where it goes.
    pub fn refresh(&mut self, root: &Root) {
        use crate::procfs::interrupts;
        self.interrupts = fact(root.parsed(interrupts::PATH, interrupts::parse));
    }
}

/// The queues of the device `name`.
///
/// **Errors** [`HostError::Missing`] when there is no such device; what it does not tell are gaps.
pub fn read(
    root: &Root,
    name: &str,
    nic: &Nic,
    shared: &Shared,
) -> Result<DeviceQueues, HostError> {
    let sysfs = device::steering(root, name)?;
    let vectors = vectors(root, name, &shared.interrupts);
    let (source, counted) = counters::of(nic, sysfs.rx_queues.len());
    let active = nic.channels.value().and_then(Channels::receiving).filter(|n| *n > 0);
    let queues = active.map_or(sysfs.rx_queues.len(), |n| (n as usize).min(sysfs.rx_queues.len()));
    let rss_shares = table_shares(nic, queues);
    let rows = sysfs.rx_queues.iter().take(queues).map(|rx| {
        let at = rx.index as usize;
        let tx = sysfs.tx_queues.iter().find(|tx| tx.index == rx.index);
        let total = |pick: fn(&counters::Counted) -> Option<u64>| {
            counted.get(&rx.index).and_then(pick).map_or_else(
                || match &source {
                    Fact::Ok { value } => Fact::absent(format!("not among the {value}")),
                    gap => gap.clone().map(|_| 0),
                },
                Fact::ok,
            )
        };
        Row {
            queue: rx.index,
            napi_id: napi(nic, rx.index),
            irq: find_irq(root, nic, &vectors, (rx.index, queues), shared),
            rss_share_ratio: rss_shares
                .as_ref()
                .map_or_else(Clone::clone, |all| Fact::ok(all.get(at).copied().unwrap_or(0.0))),
            rps_cpus: rx.rps_cpus.clone(),
            rps_flow_count: rx.rps_flow_count.clone(),
            xps_cpus: tx
                .map_or_else(|| Fact::absent("no such transmit queue"), |tx| tx.xps_cpus.clone()),
            packets_total: total(|counted| counted.packets_total),
            drops_total: total(|counted| counted.drops_total),
        }
    });
    Ok(DeviceQueues {
        device: name.to_owned(),
        rows: rows.collect(),
        driver: sysfs.driver,
        node: sysfs.numa_node,
        counters: source,
    })
}

/// The part of the indirection table that leads to each queue; the gap when there is no table.
fn table_shares(nic: &Nic, queues: usize) -> Result<Vec<f64>, Fact<f64>> {
    match &nic.rss {
        _ if queues == 1 => Ok(vec![1.0]),
        Fact::Ok { value } if !value.table.is_empty() => {
            let entries = value.table.len() as f64;
            let shares = value.shares(queues as u32);
            Ok(shares.into_iter().map(|share| share as f64 / entries).collect())
        }
        Fact::Ok { .. } => Err(Fact::absent("the driver shows no indirection table")),
        Fact::Absent { why } => Err(Fact::absent(why.clone())),
        Fact::Denied { needs } => Err(Fact::denied(needs.clone())),
    }
}

fn napi(nic: &Nic, queue: u32) -> Fact<u32> {
    match &nic.queues {
        Fact::Ok { value } => value
            .iter()
            .find(|one| one.kind == QueueKind::Rx && one.index == queue)
            .and_then(|one| one.napi_id)
            .map_or_else(|| Fact::absent("the driver did not link queue and NAPI"), Fact::ok),
        Fact::Absent { why } => Fact::absent(why.clone()),
        Fact::Denied { needs } => Fact::denied(needs.clone()),
    }
}

/// The rows of `/proc/interrupts` that are the device's.
fn vectors<'a>(root: &Root, name: &str, table: &'a Fact<Interrupts>) -> Fact<Vec<&'a Interrupt>> {
    let table = match table {
        Fact::Ok { value } => value,
        Fact::Absent { why } => return Fact::absent(why.clone()),
        Fact::Denied { needs } => return Fact::denied(needs.clone()),
    };
    let listed = irq::of_device(root, name);
    let own = table.rows.iter().filter(|row| {
        row.number().is_some_and(|number| match &listed {
            Ok(listed) => listed.contains(&number),
            Err(_) => vector::is_named(&row.about, name),
        })
    });
    let own: Vec<&Interrupt> = own.collect();
    if own.is_empty() {
        Fact::absent(format!("no interrupt of {name} in /proc/interrupts"))
    } else {
        Fact::ok(own)
    }
}

fn find_irq(
    root: &Root,
    nic: &Nic,
    vectors: &Fact<Vec<&Interrupt>>,
    (queue, queues): (u32, usize),
    shared: &Shared,
) -> Fact<QueueIrq> {
    let linked = napi(nic, queue).into_value().and_then(|id| {
        let napi = nic.napis.value()?.iter().find(|napi| napi.id == id)?;
        napi.irq
    });
    let own: &[&Interrupt] = match vectors {
        Fact::Ok { value } => value,
        Fact::Absent { why } if linked.is_none() => return Fact::absent(why.clone()),
        Fact::Denied { needs } if linked.is_none() => return Fact::denied(needs.clone()),
        _ => &[],
    };
    let by_name = || {
        let blocks = own.iter().filter(|row| vector::is_gve_block(&row.about)).count();
        own.iter().find(|row| vector::receive_queue(&row.about, blocks) == Some(queue))
    };
    let (number, source) = if let Some(number) = linked {
        (number, IrqSource::Netdev)
    } else if let Some(number) = by_name().and_then(|row| row.number()) {
        (number, IrqSource::Name)
    } else if let (1, [only]) = (queues, own) {
        (only.number().unwrap_or_default(), IrqSource::Only)
    } else {
        return Fact::absent("no interrupt of the device has a name that tells this queue");
    };
    let table = shared.interrupts.value();
    let row = table.and_then(|table| table.rows.iter().find(|row| row.number() == Some(number)));
    let masks = irq::read(root, number);
    Fact::ok(QueueIrq {
        irq: number,
        name: row.map_or_else(String::new, |row| vector::name(&row.about).to_owned()),
        source,
        nodes: nodes(&masks.effective_cpus, &shared.topology),
        allowed_cpus: masks.allowed_cpus,
        effective_cpus: masks.effective_cpus,
        taken_total: row.map_or(0, |row| row.counts.iter().sum()),
    })
}

fn nodes(cpus: &Fact<CpuList>, topology: &Fact<Topology>) -> Fact<Vec<u32>> {
    let (cpus, topology) = match (cpus, topology) {
        (Fact::Ok { value: cpus }, Fact::Ok { value: topology }) => (cpus, topology),
        (Fact::Ok { .. }, gap) => return gap.clone().map(|_| Vec::new()),
        (gap, _) => return gap.clone().map(|_| Vec::new()),
    };
    let mut nodes = Vec::new();
    for cpu in cpus.as_slice() {
        match topology.cpu(*cpu).map(|cpu| &cpu.node) {
            Some(Fact::Ok { value }) => nodes.push(*value),
            Some(gap) => return gap.clone().map(|_| Vec::new()),
            None => return Fact::absent(format!("CPU {cpu} is not online")),
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    Fact::ok(nodes)
}
