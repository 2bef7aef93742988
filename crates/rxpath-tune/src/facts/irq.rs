//! The interrupts of a device: numbers, where they may go and where they last went.

use std::collections::BTreeMap;

use rxpath_core::{Fact, IntoMap};
use rxpath_host::Root;
use rxpath_host::read::queue_map::{DeviceQueues, HostTables};
use rxpath_host::read::sysfs::irq::{self, Masks};

/// One interrupt of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Irq {
    /// Its number.
    pub number: u32,
    /// Controller and names, as `/proc/interrupts` shows them.
    pub about: String,
    /// How often it was taken, over all CPUs.
    pub taken_total: u64,
    /// CPUs that it may go to, goes to, and should go to by the driver's hint.
    pub masks: Masks,
    /// The first receive queue in use that it serves; `None` for others and where nothing tells.
    pub queue: Option<u32>,
}

/// The interrupts of device `name`.
pub(super) fn of(
    root: &Root,
    name: &str,
    shared: &HostTables,
    queues: &DeviceQueues,
) -> Fact<Vec<Irq>> {
    let served: BTreeMap<u32, u32> = queues
        .rows
        .iter()
        .rev()
        .filter_map(|row| Some((row.irq.value()?.irq, row.queue)))
        .into_map();
    shared.of_device(root, name).map(|rows| {
        let all = rows.into_iter().map(|(number, row)| Irq {
            number,
            about: row.about.clone(),
            taken_total: row.counts.iter().sum(),
            masks: irq::read(root, number),
            queue: served.get(&number).copied(),
        });
        all.collect()
    })
}
