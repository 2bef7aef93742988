//! Interrupts: where they may go, where they go, and which are a device's.
//!
//! **Source** Documentation/core-api/irq/irq-affinity.rst, kernel/irq/proc.c; `effective_affinity_list` since 4.14.
//! **Caveat** `effective_cpus` is what the interrupt controller last got: a new mask acts at the next interrupt.

use rxpath_core::{CpuList, Fact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::parse_mask;
use crate::error::fact;
use crate::{HostError, Root};

/// Masks of one interrupt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Masks {
    /// CPUs that it may go to.
    pub allowed_cpus: Fact<CpuList>,
    /// CPUs that it goes to.
    pub effective_cpus: Fact<CpuList>,
    /// CPUs that the driver suggests; empty when it suggests none.
    pub hint_cpus: Fact<CpuList>,
    /// Its device's NUMA node; -1 when the platform does not say.
    pub node: Fact<i32>,
}

/// Reads the masks of an interrupt.
pub fn read(root: &Root, number: u32) -> Masks {
    let path = |file: &str| format!("/proc/irq/{number}/{file}");
    Masks {
        allowed_cpus: fact(root.cpus(&path("smp_affinity_list"))),
        effective_cpus: fact(root.cpus(&path("effective_affinity_list"))),
        hint_cpus: fact(root.parsed(&path("affinity_hint"), parse_mask)),
        node: fact(root.number(&path("node"))),
    }
}

/// Numbers of a network device's interrupts; those of a virtio device are its parent's.
///
/// **Errors** `Missing` for devices without message-signalled interrupts.
pub fn of_device(root: &Root, name: &str) -> Result<Vec<u32>, HostError> {
    let device = format!("/sys/class/net/{name}/device");
    let listed = root
        .list(&format!("{device}/msi_irqs"))
        .or_else(|_| root.list(&format!("{device}/../msi_irqs")))?;
    Ok(listed.iter().filter_map(|name| name.parse().ok()).collect())
}

/// Interrupts of the PCI device at this address, by their numbers: `/sys/class/net` shows one network namespace, the bus
/// has the devices of all.
///
/// **Errors** as [`of_device`].
pub fn of_bus(root: &Root, bus: &str) -> Result<Vec<u32>, HostError> {
    let listed = root.list(&format!("/sys/bus/pci/devices/{bus}/msi_irqs"))?;
    Ok(listed.iter().filter_map(|name| name.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_hosts_interrupts_have_masks() {
        let root = Root::host();
        let numbers = root.list("/proc/irq").unwrap();
        let number = numbers.iter().find_map(|name| name.parse().ok()).unwrap();
        assert!(read(&root, number).allowed_cpus.value().is_some());
        assert!(of_device(&root, "lo").is_err());
    }
}
