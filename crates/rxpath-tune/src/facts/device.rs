//! One network device: what sysfs shows, what the kernel tells over netlink, and its interrupts.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use rxpath_host::Root;
use rxpath_host::error::fact;
use rxpath_host::read::nic::{self, Nic};
use rxpath_host::read::queue_map::{self, DeviceQueues, HostTables, Lines};
use rxpath_host::read::sysfs;

use super::irq::{self, Irq};

/// `ARPHRD_LOOPBACK`, linux/if_arp.h.
const LOOPBACK: u32 = 772;
/// linux/if.h.
const IFF_LOOPBACK: u32 = 8;

/// What is lost when the devices cannot be listed; no device has such a name (net/core/dev.c `dev_valid_name`).
pub const NO_DEVICES: &str = "/sys/class/net";

/// What is lost when netlink does not answer for any device.
pub const NETLINK: &str = "netlink/";

/// A network device.
#[derive(Clone, Debug)]
pub struct Device {
    /// Name.
    pub name: String,
    /// What sysfs shows: queues with their masks, MTU, NUMA node, statistics.
    pub sysfs: sysfs::device::SysfsDevice,
    /// `ARPHRD_*`.
    pub hardware_type: Fact<u32>,
    /// `IFF_*` (hexadecimal in sysfs).
    pub flags: Fact<u32>,
    /// Whether hardware, or virtual hardware, is behind it (it has a `device` link).
    pub has_hardware: bool,
    /// `DEVTYPE` of its uevent: `bridge`, `vlan`, `bond`; absent for plain Ethernet.
    pub kind: Fact<String>,
    /// The bridge, bond or other device that it belongs to; absent when to none.
    pub master: Fact<String>,
    /// Its interrupts.
    pub irqs: Fact<Vec<Irq>>,
    /// Its receive queues in use, with the interrupt that serves each.
    pub queues: DeviceQueues,
    /// What its driver tells over netlink and ioctl.
    pub nic: Nic,
}

impl Device {
    /// Hardware or virtual hardware.
    pub(crate) fn is_nic(&self) -> bool {
        self.has_hardware && !self.is_loopback()
    }

    /// The loopback device.
    pub fn is_loopback(&self) -> bool {
        match self.hardware_type.value() {
            Some(hardware) => *hardware == LOOPBACK,
            None => self.flags.value().is_some_and(|flags| flags & IFF_LOOPBACK != 0),
        }
    }

    /// Whether it carries packets: `operstate` is `up`, or unknown (devices that do not tell) with `IFF_UP`.
    pub fn is_up(&self) -> bool {
        match self.sysfs.operstate.value().map(String::as_str) {
            Some("up") => true,
            Some("unknown") => self.flags.value().is_some_and(|flags| flags & 1 == 1),
            _ => false,
        }
    }

    /// The driver's name; empty when it is not known.
    pub fn driver(&self) -> &str {
        self.sysfs.steering.driver.value().map_or("", String::as_str)
    }

    /// What kind of virtual device it is (`vlan`, `bond`, `veth`); `None` for hardware and where nothing tells.
    pub(crate) fn link_kind(&self) -> Option<&str> {
        let told = self.nic.link.value().and_then(|link| link.kind.as_deref());
        told.or_else(|| self.kind.value().map(String::as_str))
    }

    /// Whether RPS spreads the packets of one of its queues.
    pub(crate) fn has_rps(&self) -> bool {
        let mut queues = self.sysfs.steering.rx_queues.iter();
        queues.any(|queue| queue.rps_cpus.value().is_some_and(|cpus| !cpus.is_empty()))
    }

    /// Whether one of its queues has a flow table (RFS).
    pub(crate) fn has_flow_tables(&self) -> bool {
        let mut queues = self.sysfs.steering.rx_queues.iter();
        queues.any(|queue| queue.rps_flow_count.value().is_some_and(|count| *count > 0))
    }

    /// The path of an attribute of it below `/sys/class/net`.
    pub fn path(&self, attribute: &str) -> String {
        format!("/sys/class/net/{}/{attribute}", self.name)
    }

    /// The interrupts of its receive queues in use, each once; a gap when that of a queue is not known.
    pub(crate) fn receiving_irqs(&self) -> Fact<Vec<Irq>> {
        if let Some(row) = self.queues.rows.iter().find(|row| row.irq.value().is_none()) {
            return row.irq.clone().map(|_| Vec::new());
        }
        let used = |all: &Vec<Irq>| all.iter().filter(|irq| irq.queue.is_some()).cloned().collect();
        self.irqs.as_ref().map(used)
    }
}

/// The devices, and those that could not be read.
pub(super) fn all(root: &Root, shared: &HostTables) -> (Vec<Device>, Vec<(String, String)>) {
    let names = match sysfs::device::names(root) {
        Ok(names) => names,
        Err(error) => return (Vec::new(), vec![(NO_DEVICES.into(), error.to_string())]),
    };
    let (mut devices, mut lost) = (Vec::new(), Vec::new());
    let mut told = nic::all(root).unwrap_or_else(|error| {
        lost.push((NETLINK.into(), error.to_string()));
        BTreeMap::new()
    });
    for name in names {
        match sysfs::device::read(root, &name) {
            Ok(found) => {
                let nic = told.remove(&name).unwrap_or_else(|| Nic::all_gaps("it went away"));
                devices.push(one(root, found, nic, shared));
            }
            Err(error) => lost.push((name, error.to_string())),
        }
    }
    (devices, lost)
}

fn one(root: &Root, sysfs: sysfs::device::SysfsDevice, nic: Nic, shared: &HostTables) -> Device {
    let name = sysfs.name.clone();
    let lines = Lines::new(root, &name, &nic, shared);
    let queues = queue_map::of(&sysfs.steering, &nic, &lines, &name);
    let base = format!("/sys/class/net/{name}");
    let master = fact(root.link(&format!("{base}/master")));
    let kind = fact(root.value(&format!("{base}/uevent"))).and_then(|text| {
        let kind = text.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
        Fact::of(kind.map(Into::into), "a device without a type")
    });
    let flags = fact(root.value(&format!("{base}/flags"))).and_then(|text| {
        let flags = u32::from_str_radix(text.trim_start_matches("0x"), 16);
        Fact::of(flags.ok(), "flags are not hexadecimal")
    });
    Device {
        hardware_type: fact(root.number(&format!("{base}/type"))),
        flags,
        has_hardware: root.exists(&format!("{base}/device")),
        kind,
        master: master.map(|to| to.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        irqs: irq::of(root, &name, shared, &queues),
        queues,
        nic,
        sysfs,
        name,
    }
}
