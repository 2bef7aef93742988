//! The interrupts of a device: numbers, where they may go and where they last went.
//!
//! **Source** Documentation/core-api/irq/irq-affinity.rst; `effective_affinity_list` since 4.14
//! (0d3f54257dc3), and only what the interrupt controller last programmed: a new mask acts at the next interrupt.

use rxpath_core::{CpuList, Fact};
use rxpath_host::error::fact;
use rxpath_host::procfs::interrupts::Interrupts;
use rxpath_host::root::Root;

/// One interrupt of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Irq {
    /// Its number.
    pub number: u32,
    /// Controller and names, as `/proc/interrupts` shows them.
    pub about: String,
    /// How often it was taken, over all CPUs.
    pub taken_total: u64,
    /// CPUs that it may go to.
    pub allowed: Fact<CpuList>,
    /// CPUs that it goes to.
    pub effective: Fact<CpuList>,
    /// CPUs that the driver suggests; empty when it suggests none.
    pub hint: Fact<CpuList>,
}

impl Irq {
    /// Whether it looks like one that receives: management and transmit-only vectors do not.
    ///
    /// **Source** vector names of drivers: igb and ixgbe `DEV-TxRx-N` and `DEV` alone for link changes,
    /// virtio_net `virtioN-input.M`, `-output.M`, `-config`, i40e `misc`, mlx5 `mlx5_async`.
    pub fn receives(&self) -> bool {
        let name = self.about.rsplit(' ').next().unwrap_or_default().to_ascii_lowercase();
        let other =
            ["output", "config", "-tx-", "misc", "async", "mgmnt", "mbox", "control", "event"];
        !other.iter().any(|word| name.contains(word))
            && (name.contains("rx")
                || name.contains("input")
                || name.ends_with(|c: char| c.is_ascii_digit()))
    }

    /// Whether the vector is message signalled with a vector of its own (MSI-X).
    pub fn is_msix(&self) -> bool {
        self.about.contains("MSIX") || self.about.contains("MSI-X")
    }
}

/// The interrupts of device `name`: by sysfs, else by name in `/proc/interrupts`.
pub(super) fn of(root: &Root, name: &str, table: &Fact<Interrupts>) -> Fact<Vec<Irq>> {
    let table = match table {
        Fact::Ok { value } => value,
        Fact::Absent { why } => return Fact::absent(why),
        Fact::Denied { needs } => return Fact::denied(needs),
    };
    let listed = numbers(root, name);
    let rows = table.rows.iter().filter_map(|row| Some((row.number()?, row)));
    let own: Vec<Irq> = rows
        .filter(|(number, row)| match &listed {
            Some(listed) => listed.contains(number),
            None => is_named(&row.about, name),
        })
        .map(|(number, row)| {
            let path = |file: &str| format!("/proc/irq/{number}/{file}");
            Irq {
                number,
                about: row.about.clone(),
                taken_total: row.counts.iter().sum(),
                allowed: fact(root.cpus(&path("smp_affinity_list"))),
                effective: fact(root.cpus(&path("effective_affinity_list"))),
                hint: fact(
                    root.parsed(&path("affinity_hint"), rxpath_host::sysfs::device::parse_mask),
                ),
            }
        })
        .collect();
    if own.is_empty() {
        Fact::absent(format!("no interrupt of {name} in /proc/interrupts"))
    } else {
        Fact::ok(own)
    }
}

/// `msi_irqs` of the device, or of the PCI device that a virtio device sits on.
fn numbers(root: &Root, name: &str) -> Option<Vec<u32>> {
    let device = format!("/sys/class/net/{name}/device");
    let dirs = [format!("{device}/msi_irqs"), format!("{device}/../msi_irqs")];
    let names = dirs.iter().find_map(|dir| root.list(dir).ok())?;
    Some(names.iter().filter_map(|name| name.parse().ok()).collect())
}

/// Whether a vector's name holds the device's name as a word: `eth1` is not `eth10`.
fn is_named(about: &str, name: &str) -> bool {
    about.split([' ', ',']).any(|word| {
        word.strip_prefix(name).is_some_and(|rest| {
            rest.is_empty() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn irq(about: &str) -> Irq {
        Irq {
            number: 1,
            about: about.into(),
            taken_total: 0,
            allowed: Fact::absent("test"),
            effective: Fact::absent("test"),
            hint: Fact::absent("test"),
        }
    }

    #[test]
    fn vectors_that_receive_are_told_from_others() {
        for about in [
            "PCI-MSIX-0000:3b:00.0 1-edge eth0-TxRx-0",
            "PCI-MSIX-0000:00:04.0 1-edge virtio3-input.0",
            "PCI-MSI 524288-edge mlx5_comp3@pci:0000:81:00.0",
            "PCI-MSIX 3-edge eth0-rx-2",
            "PCI-MSIX 3-edge ens5-Tx-Rx-7",
            "PCI-MSIX 1-edge i40e-eth0-TxRx-11",
        ] {
            assert!(irq(about).receives(), "{about}");
        }
        for about in [
            "PCI-MSIX-0000:00:04.0 2-edge virtio3-output.0",
            "PCI-MSIX-0000:00:04.0 0-edge virtio3-config",
            "PCI-MSI 524288-edge mlx5_async0@pci:0000:81:00.0",
            "PCI-MSIX 3-edge eth0-tx-0",
            "PCI-MSIX 0-edge i40e-0000:3b:00.0:misc",
        ] {
            assert!(!irq(about).receives(), "{about}");
        }
    }

    #[test]
    fn names_are_whole_words() {
        assert!(is_named("PCI-MSIX 1-edge eth1-TxRx-0", "eth1"));
        assert!(is_named("IO-APIC 11-fasteoi uhci, eth1", "eth1"));
        assert!(!is_named("PCI-MSIX 1-edge eth10-TxRx-0", "eth1"));
    }
}
