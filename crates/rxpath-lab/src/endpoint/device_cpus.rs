//! Which CPUs work for the device of an experiment: what disturbs them disturbs the trial, wherever its programs run.
//!
//! Those that took the device's interrupts in the window, and those that handled packets: a NAPI instance that always has
//! work takes no interrupt.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_host::Root;
use rxpath_host::read::ioctl;
use rxpath_host::read::procfs::interrupts::{self, InterruptRow, Interrupts};
use rxpath_host::read::queue_map::vector;
use rxpath_host::read::sysfs::irq;
use rxpath_record::counters::Snapshot;

/// A CPU with a smaller share of the interrupts or of the packets has only strays.
const SHARE: f64 = 0.05;
/// A CPU with fewer packets has only strays too: those of the control connection, for example. **Unit** packets/s.
const STRAYS_PPS: f64 = 1_000.0;

/// How often each CPU had taken an interrupt of some devices.
#[derive(Clone, Debug, Default)]
pub struct Interrupted(BTreeMap<u32, u64>);

impl Interrupted {
    /// Reads it now; nothing for devices without interrupts.
    pub fn now(devices: &[&str]) -> Self {
        let root = Root::host();
        let table = root.parsed(interrupts::PATH, interrupts::parse).unwrap_or_default();
        let numbers: Vec<u32> =
            devices.iter().flat_map(|device| numbers(&root, device, &table)).collect();
        Self(by_cpu(&table, &numbers))
    }

    /// The CPUs that took a significant part of the interrupts since, or of the packets between two readings.
    pub fn cpus_since(&self, before: &Self, [first, last]: [&Snapshot; 2]) -> Vec<u32> {
        let then = |cpu: &u32| before.0.get(cpu).copied().unwrap_or(0);
        let taken: Vec<(u32, u64)> =
            self.0.iter().map(|(cpu, now)| (*cpu, now.saturating_sub(then(cpu)))).collect();
        let span_s = (last.t_ns - first.t_ns) as f64 / 1e9;
        let handled = significant(&processed(first, last), (STRAYS_PPS * span_s).max(1.0));
        let cpus = significant(&taken, 1.0).into_iter().chain(handled);
        cpus.collect::<BTreeSet<u32>>().into_iter().collect()
    }
}

/// The numbers of a device's interrupts: by sysfs, which shows one network namespace only, by the bus, or by name.
fn numbers(root: &Root, device: &str, table: &Interrupts) -> Vec<u32> {
    let bus = ioctl::driver_info(device).map(|info| info.bus).unwrap_or_default();
    irq::of_device(root, device).or_else(|_| irq::of_bus(root, &bus)).unwrap_or_else(|_| {
        let named = table.rows.iter().filter(|row| vector::is_named(&row.about, device));
        named.filter_map(InterruptRow::number).collect()
    })
}

fn by_cpu(table: &Interrupts, numbers: &[u32]) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    let is_own = |row: &&InterruptRow| row.number().is_some_and(|number| numbers.contains(&number));
    for row in table.rows.iter().filter(is_own) {
        for (cpu, count) in table.cpus.iter().zip(&row.counts) {
            *all.entry(*cpu).or_insert(0) += *count;
        }
    }
    all
}

/// Packets that each CPU's softirq took between two readings.
fn processed(first: &Snapshot, last: &Snapshot) -> Vec<(u32, u64)> {
    let one = |(name, now): (&String, &u64)| {
        let cpu = name.strip_prefix("softnet.cpu")?.strip_suffix(".processed")?;
        let then = first.values.get(name)?;
        // 32 bits that wrap.
        Some((cpu.parse().ok()?, u64::from(now.wrapping_sub(*then) as u32)))
    };
    last.values.iter().filter_map(one).collect()
}

/// The CPUs that have at least `least`, and no tiny share of all.
fn significant(counts: &[(u32, u64)], least: f64) -> Vec<u32> {
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let is_much = |count: u64| count as f64 >= least && count as f64 >= SHARE * all as f64;
    counts.iter().filter(|(_, count)| is_much(*count)).map(|(cpu, _)| *cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn softnet(t_s: i64, processed: [u64; 3]) -> Snapshot {
        let name = |cpu: u32| format!("softnet.cpu{cpu}.processed");
        let values = (0..).map(name).zip(processed).collect();
        Snapshot { t_ns: t_s * 1_000_000_000, values, ..Snapshot::default() }
    }

    #[test]
    fn only_the_device_s_own_interrupts_count() {
        let text = "CPU0 CPU1 CPU2\n 41: 900 10 0 PCI-MSIX-0000:81:00.0 1-edge rxtest1-TxRx-0\n \
                    42: 0 500 5 PCI-MSIX-0000:81:00.0 2-edge rxtest1-TxRx-1\n \
                    43: 0 0 9000 PCI-MSIX-0000:82:00.0 1-edge rxtest10-TxRx-0\nLOC: 7 7 7 timer\n";
        let table = interrupts::parse(text).unwrap();
        let numbers = numbers(&Root::host(), "rxtest1", &table);
        assert_eq!(numbers, [41, 42], "by name: this host has no such device");
        assert_eq!(by_cpu(&table, &numbers), [(0, 900), (1, 510), (2, 5)].into());
    }

    #[test]
    fn cpus_that_took_interrupts_or_packets_work_for_the_device() {
        let at = |counts: [u64; 3]| Interrupted((0..).zip(counts).collect());
        let (before, after) = (at([900, 500, 5]), at([1_900, 500, 10]));
        let quiet = softnet(0, [0; 3]);
        let strays = softnet(1, [0, 0, 90]);
        assert_eq!(after.cpus_since(&before, [&quiet, &strays]), [0]);
        // CPU 1 polls all the time; the counter of CPU 0 wraps.
        let first = softnet(0, [u64::from(u32::MAX), 0, 0]);
        let last = softnet(1, [20_000, 90_000, 100]);
        assert_eq!(after.cpus_since(&before, [&first, &last]), [0, 1]);
        assert_eq!(Interrupted::default().cpus_since(&before, [&quiet, &quiet]), [0_u32; 0]);
    }
}
