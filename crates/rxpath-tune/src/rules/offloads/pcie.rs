//! The path between NIC and memory: PCIe and NUMA.

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("pcie-link", Check::Nic(link)),
    ("pcie-mps-mrrs", Check::Device(payload)),
    ("pcie-aspm", Check::Nic(aspm)),
    ("nic-numa-node", Check::Device(node)),
];

/// A file of the device on its bus; a virtio device's is that of the PCI device below it.
fn bus(ask: &Ask<'_>, device: &Device, file: &str) -> Result<String, Gap> {
    ask.facts.text(&device.path(&format!("device/{file}"))).known()
}

/// The number at the start of `8.0 GT/s PCIe`.
fn leading(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

fn link(ask: &Ask<'_>, device: &Device) -> Checked {
    let mut observed = Vec::new();
    let mut below = false;
    for what in ["width", "speed"] {
        let now = bus(ask, device, &format!("current_link_{what}"))?;
        let max = bus(ask, device, &format!("max_link_{what}"))?;
        let (Some(n), Some(m)) = (leading(&now), leading(&max)) else {
            return Answer::silent("the link is not known, as usual in a guest");
        };
        // A guest's bridge shows width 0 or 255.
        if n == 0.0 || m == 0.0 || m >= 255.0 {
            return Answer::silent("the link is not known, as usual in a guest");
        }
        below |= n < m;
        observed.push(format!("{what} {now} of {max}"));
    }
    if !below {
        return Answer::fine(observed.join(", "));
    }
    Answer::observed(observed.join(", "))
        .advice("not changeable at runtime: another slot, or reseat the card")
}

/// PCI Express capability id.
const CAP_EXPRESS: u8 = 0x10;

fn payload(ask: &Ask<'_>, device: &Device) -> Checked {
    let config = ask.facts.bytes(&device.path("device/config")).known()?;
    // Without CAP_SYS_ADMIN the kernel shows the first 64 bytes only (pci_read_config).
    if config.len() <= 64 {
        return Err(Gap::Denied("CAP_SYS_ADMIN to read the capabilities".into()));
    }
    let control = express_control(&config).or_gap("a PCI Express capability")?;
    let size = |bits: u16| 128u32 << bits.min(5);
    Answer::recorded(format!(
        "payload {} bytes, read requests {} bytes",
        size(control >> 5 & 7),
        size(control >> 12 & 7)
    ))
}

/// The device control register, found by walking the capability list from offset 0x34.
fn express_control(config: &[u8]) -> Option<u16> {
    let mut at = usize::from(*config.get(0x34)? & 0xfc);
    // 48 capabilities fill the space: a longer list is a loop.
    for _ in 0..48 {
        if at < 0x40 {
            return None;
        }
        if *config.get(at)? == CAP_EXPRESS {
            return Some(u16::from_le_bytes([*config.get(at + 8)?, *config.get(at + 9)?]));
        }
        at = usize::from(*config.get(at + 1)? & 0xfc);
    }
    None
}

fn aspm(ask: &Ask<'_>, device: &Device) -> Checked {
    let states = ask.facts.list(&device.path("device/link")).known()?;
    let mut is_shown = false;
    let mut on = Vec::new();
    for name in states.into_iter().filter(|name| name.ends_with("_aspm")) {
        is_shown = true;
        if ask.facts.text(&device.path(&format!("device/link/{name}"))).known()? == "1" {
            on.push(name);
        }
    }
    // A link shows its states; without L1 it has no state deep enough to matter.
    if !is_shown || (on.is_empty() && !ask.facts.exists(&device.path("device/link/l1_aspm"))) {
        return Err(Gap::Absent("the PCIe link does not show whether it sleeps in L1".into()));
    }
    if on.is_empty() {
        return Answer::fine("no sleep state is on");
    }
    let changes = on
        .iter()
        .map(|name| Set::new(Knob::path(&device.path(&format!("device/link/{name}"))), "0"));
    Answer::observed(on.join(", ") + " on").changes(changes)
}

fn node(ask: &Ask<'_>, device: &Device) -> Checked {
    let node = *(&device.sysfs.steering.numa_node).known()?;
    if node < 0 {
        return Answer::silent("the platform does not report the NIC's node (-1)");
    }
    let cpus = bus(ask, device, "local_cpulist").unwrap_or_else(|_| "not reported".into());
    Answer::recorded(format!("node {node}, CPUs {cpus}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_express_capability_is_found_behind_others() {
        let mut config = vec![0u8; 256];
        config[0x34] = 0x40;
        config[0x40..0x42].copy_from_slice(&[0x01, 0x70]);
        config[0x70] = CAP_EXPRESS;
        config[0x78..0x7a].copy_from_slice(&0x2830u16.to_le_bytes());
        assert_eq!(express_control(&config), Some(0x2830));
        config[0x41] = 0x40;
        assert_eq!(express_control(&config), None, "a list that leads back is no endless walk");
        assert_eq!(express_control(&config[..8]), None);
    }
}
