//! From a queue to its interrupt: the kernel's own link where the driver made it, else the interrupt's name.
//!
//! A device may have thousands of queues: everything is looked up in an index that is made once.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::{CpuList, Fact, IntoMap};

use super::{IrqSource, QueueIrq, vector};
use crate::Root;
use crate::error::fact;
use crate::read::netlink::netdev::QueueKind;
use crate::read::nic::Nic;
use crate::read::procfs::interrupts::{self, InterruptRow, Interrupts};
use crate::read::sysfs::irq;
use crate::read::topology::{self, CpuTopology};

/// What is read once for all devices.
#[derive(Debug)]
pub struct HostTables {
    /// `/proc/interrupts`.
    pub interrupts: Fact<Interrupts>,
    /// CPUs and nodes.
    pub topology: Fact<CpuTopology>,
    /// Places of the numbered rows of `/proc/interrupts`.
    by_number: BTreeMap<u32, usize>,
}

impl HostTables {
    /// Reads it.
    pub fn read(root: &Root) -> Self {
        Self::new(interrupts(root), fact(topology::read(root)))
    }

    /// Of what was read.
    pub fn new(interrupts: Fact<Interrupts>, topology: Fact<CpuTopology>) -> Self {
        let rows = interrupts.value().map_or(&[][..], |table| &table.rows);
        let by_number =
            rows.iter().enumerate().filter_map(|(at, row)| Some((row.number()?, at))).into_map();
        Self { interrupts, topology, by_number }
    }

    /// Reads again what moves: how often each interrupt was taken, and where it goes.
    pub fn refresh(&mut self, root: &Root) {
        let topology = std::mem::replace(&mut self.topology, Fact::absent("is read"));
        *self = Self::new(interrupts(root), topology);
    }

    /// The row of an interrupt.
    pub fn row(&self, number: u32) -> Option<&InterruptRow> {
        self.interrupts.value()?.rows.get(*self.by_number.get(&number)?)
    }

    /// The numbers and rows of a device's interrupts: by sysfs, else by name.
    ///
    /// A gap when it has none or the table could not be read.
    pub fn of_device(&self, root: &Root, name: &str) -> Fact<Vec<(u32, &InterruptRow)>> {
        let listed: Option<BTreeSet<u32>> =
            irq::of_device(root, name).ok().map(|numbers| numbers.into_iter().collect());
        let is_own = |(number, row): &(u32, &InterruptRow)| match &listed {
            Some(listed) => listed.contains(number),
            None => vector::is_named(&row.about, name),
        };
        self.interrupts.as_ref().and_then(|table| {
            let all = self.by_number.iter().map(|(number, at)| (*number, &table.rows[*at]));
            let own: Vec<(u32, &InterruptRow)> = all.filter(is_own).collect();
            let why = || format!("no interrupt of {name} in /proc/interrupts");
            if own.is_empty() { Fact::absent(why()) } else { Fact::ok(own) }
        })
    }
}

fn interrupts(root: &Root) -> Fact<Interrupts> {
    fact(root.parsed(interrupts::PATH, interrupts::parse))
}

/// The interrupts of one device's queues.
#[derive(Debug)]
pub struct Lines<'a> {
    root: &'a Root,
    shared: &'a HostTables,
    /// NAPI instance by queue; the gap when netlink did not tell.
    napis: Fact<BTreeMap<u32, u32>>,
    /// Interrupt by NAPI instance.
    linked: BTreeMap<u32, u32>,
    /// Interrupt by queue, as the names tell; the gap when the device has no interrupts.
    named: Fact<BTreeMap<u32, u32>>,
    /// Its only interrupt.
    only: Option<u32>,
}

impl<'a> Lines<'a> {
    /// Of the device `name`.
    pub fn new(root: &'a Root, name: &str, nic: &Nic, shared: &'a HostTables) -> Self {
        let own = shared.of_device(root, name);
        let only = own.value().filter(|own| own.len() == 1).map(|own| own[0].0);
        let named = own.map(|own| {
            let blocks = own.iter().filter(|(_, row)| vector::is_gve_block(&row.about)).count();
            let queue = |row: &InterruptRow| vector::receive_queue(&row.about, blocks);
            // The first of two interrupts with one name.
            own.iter().rev().filter_map(|(number, row)| Some((queue(row)?, *number))).into_map()
        });
        let receiving = nic.queues.clone().map(|all| {
            let receiving = all.into_iter().filter(|one| one.kind == QueueKind::Rx);
            receiving.filter_map(|one| Some((one.index, one.napi_id?))).into_map()
        });
        let napis = nic.napis.value().map_or(&[][..], Vec::as_slice);
        let linked = napis.iter().filter_map(|napi| Some((napi.id, napi.irq?))).into_map();
        Self { root, shared, napis: receiving, linked, named, only }
    }

    /// The NAPI instance of a queue.
    pub fn napi(&self, queue: u32) -> Fact<u32> {
        let why = "the driver did not link queue and NAPI";
        self.napis.as_ref().and_then(|ids| Fact::of(ids.get(&queue).copied(), why))
    }

    /// The interrupt of a queue, of so many that are in use.
    pub fn irq(&self, queue: u32, queues: usize) -> Fact<QueueIrq> {
        let linked = self.napi(queue).into_value().and_then(|id| self.linked.get(&id));
        if let Some(number) = linked {
            return Fact::ok(self.one(*number, IrqSource::Netdev));
        }
        self.named.as_ref().and_then(|named| match (named.get(&queue), self.only) {
            (Some(number), _) => Fact::ok(self.one(*number, IrqSource::Name)),
            (None, Some(only)) if queues == 1 => Fact::ok(self.one(only, IrqSource::Only)),
            (None, _) => {
                Fact::absent("no interrupt of the device has a name that tells this queue")
            }
        })
    }

    fn one(&self, number: u32, source: IrqSource) -> QueueIrq {
        let row = self.shared.row(number);
        let masks = irq::read(self.root, number);
        QueueIrq {
            irq: number,
            name: row.map_or_else(String::new, |row| vector::name(&row.about).to_owned()),
            source,
            nodes: nodes(&masks.effective_cpus, &self.shared.topology),
            allowed_cpus: masks.allowed_cpus,
            effective_cpus: masks.effective_cpus,
            taken_total: row.map_or(0, |row| row.counts.iter().sum()),
        }
    }
}

fn nodes(cpus: &Fact<CpuList>, topology: &Fact<CpuTopology>) -> Fact<Vec<u32>> {
    let both = cpus.as_ref().and_then(|cpus| topology.as_ref().map(|topology| (cpus, topology)));
    both.and_then(|(cpus, topology)| {
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
    })
}
