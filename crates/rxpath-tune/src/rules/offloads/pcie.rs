//! The path between NIC and memory: PCIe and NUMA.

use crate::prelude::*;

const PCI: &str = "kernel: Documentation/ABI/testing/sysfs-bus-pci";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "pcie-link",
        what: "Does the NIC have its maximum PCIe lanes and speed?",
        applies: "NICs on PCIe that report their link; guests usually do not",
        weight: Weight::always(Warn).sized(Latency, Percents),
        size: Multiple,
        effect: "half of the lanes is half of the bytes per second",
        check: Check::Nic(link),
        why: "A card in the wrong slot, or with bad link training, gets half of its lanes or speed. It works, but \
              with a lower maximum rate.",
        mechanism: "Link status and capability registers of PCI Express, shown as current_link_* and max_link_*.",
        not_when: "the link still carries more than the port's rate",
        side_effects: "the host must be opened",
        set_now: "another slot, a reseated card, firmware settings (bifurcation)",
        persist: "the same",
        undo: "put the card back",
        verify: "cat /sys/class/net/DEV/device/current_link_width /sys/class/net/DEV/device/max_link_width",
        since: "4.13",
        sources: &[PCI, "kernel: drivers/pci/pci-sysfs.c current_link_width_show"],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "pcie-mps-mrrs",
        what: "How large are the NIC's PCIe payloads and read requests?",
        applies: "NICs on PCIe, read by root",
        check: Check::Device(payload),
        why: "Larger transfers have less overhead on the bus.",
        mechanism: "Device control register of the PCI Express capability, bits 7:5 and 14:12.",
        not_when: "leave it: the firmware chose a size that every bridge on the path supports",
        side_effects: "a payload that a bridge does not support causes bus errors",
        set_now: "only at boot: pci=pcie_bus_perf",
        persist: "the kernel command line",
        undo: "remove it from the kernel command line",
        verify: "lspci -vv -s SLOT: MaxPayload, MaxReadReq",
        since: "every kernel",
        sources: &["kernel: Documentation/admin-guide/kernel-parameters.txt pcie_bus_perf", PCI],
        ..Rule::record(Area::Offloads)
    },
    Rule {
        id: "pcie-aspm",
        what: "Is ASPM on, so that the NIC's PCIe link may sleep?",
        applies: "NICs on PCIe whose link states are shown",
        weight: Weight::by_goal().when(Latency, Warn).when(Benchmark, Info),
        check: Check::Nic(aspm),
        why: "After a pause the first transfer waits until the link is awake.",
        mechanism: "Active State Power Management puts an idle link into L0s or L1 (drivers/pci/pcie/aspm.c).",
        not_when: "power matters more than the latency of a lone packet",
        side_effects: "more power at idle",
        set_now: "echo 0 > /sys/class/net/DEV/device/link/l1_aspm (and l0s_aspm)",
        persist: "pcie_aspm.policy=performance on the kernel command line",
        verify: "cat /sys/class/net/DEV/device/link/*_aspm",
        since: "2.6.26; per link 5.5",
        sources: &[PCI, "kernel: drivers/pci/pcie/aspm.c"],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "nic-numa-node",
        what: "Which NUMA node and CPUs are near the NIC?",
        applies: "NICs whose platform reports it",
        size: Tens,
        effect: "1.4 million packets/s with everything on one NUMA node, 1 million across nodes",
        figure_from: "Cloudflare, How to receive a million packets per second, 2015",
        check: Check::Device(node),
        why: "Readers belong on these CPUs, next to the interrupts.",
        mechanism: "/sys/class/net/DEV/device/numa_node and local_cpulist, from the firmware's tables.",
        not_when: "nothing to change: move the application, not the NIC",
        set_now: "taskset -c CPUS COMMAND, or numactl --cpunodebind=N COMMAND",
        persist: "systemd unit: CPUAffinity=, NUMAPolicy=",
        verify: "cat /sys/class/net/DEV/device/local_cpulist",
        since: "2.6",
        sources: &[PCI, "https://blog.cloudflare.com/how-to-receive-a-million-packets/"],
        ..Rule::record(Area::Offloads)
    },
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
    Answer::found(
        observed.join(", "),
        "both at their maximum",
        "the slot, the card's seat or firmware settings",
    )
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
    let control = express_control(&config);
    let control = control.or_gap("a PCI Express capability")?;
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
    Answer::found(
        on.join(", ") + " on",
        "off",
        "the first transfer after a pause waits for the link to wake",
    )
    .changes(changes)
}

fn node(ask: &Ask<'_>, device: &Device) -> Checked {
    let node = *(&device.sysfs.numa_node).known()?;
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
