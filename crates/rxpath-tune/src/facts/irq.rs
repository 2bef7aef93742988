//! The interrupts of a device: numbers, where they may go and where they last went.

use rxpath_core::Fact;
use rxpath_host::procfs::interrupts::{Interrupt, Interrupts};
use rxpath_host::queue_map::vector;
use rxpath_host::root::Root;
use rxpath_host::sysfs::irq::{self, Masks};

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
    /// The receive queue that it serves; `None` for others and where its name does not tell.
    pub queue: Option<u32>,
}

/// The interrupts of device `name`: by sysfs, else by name in `/proc/interrupts`.
pub(super) fn of(root: &Root, name: &str, table: &Fact<Interrupts>) -> Fact<Vec<Irq>> {
    let table = match table {
        Fact::Ok { value } => value,
        Fact::Absent { why } => return Fact::absent(why),
        Fact::Denied { needs } => return Fact::denied(needs),
    };
    let listed = irq::of_device(root, name);
    let is_own = |number: u32, row: &Interrupt| match &listed {
        Ok(listed) => listed.contains(&number),
        Err(_) => vector::is_named(&row.about, name),
    };
    let rows: Vec<(u32, &Interrupt)> = table
        .rows
        .iter()
        .filter_map(|row| Some((row.number()?, row)))
        .filter(|(number, row)| is_own(*number, row))
        .collect();
    if rows.is_empty() {
        return Fact::absent(format!("no interrupt of {name} in /proc/interrupts"));
    }
    let blocks = rows.iter().filter(|(_, row)| vector::is_gve_block(&row.about)).count();
    let one = |(number, row): (u32, &Interrupt)| Irq {
        number,
        about: row.about.clone(),
        taken_total: row.counts.iter().sum(),
        masks: irq::read(root, number),
        queue: vector::receive_queue(&row.about, blocks),
    };
    Fact::ok(rows.into_iter().map(one).collect())
}
