//! What a rule may read: the facts of a host, each ok, absent with its reason, or denied.
//!
//! Everything comes through `rxpath-host` and works alike on the running host and on a captured tree. Devices,
//! CPUs, interrupts and processes are read when the facts are made; single files when the first rule asks, and
//! then never again, so that all rules judge the same values.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rxpath_core::{CpuList, Fact};
use rxpath_host::error::fact;
use rxpath_host::kernel_config::{self, KernelConfig};
use rxpath_host::procfs::interrupts::{self, Interrupts};
use rxpath_host::procfs::softnet::{self, CpuLine};
use rxpath_host::procfs::sysctl;
use rxpath_host::root::Root;
use rxpath_host::topology::{self, Topology};

mod device;
mod irq;
mod kernel;
mod known;
mod nic;
mod processes;

pub use device::Device;
pub use irq::Irq;
pub use kernel::{Kernel, Version};
pub use known::Known;
pub use nic::{Coalesce, Driver, Eee, Nic, Pause, Rss};
pub use processes::Processes;

/// A host's facts.
#[derive(Debug)]
pub struct HostFacts {
    root: Root,
    files: RefCell<BTreeMap<String, Fact<String>>>,
    /// The kernel.
    pub kernel: Kernel,
    /// How it was built; absent on hosts that keep no config.
    pub config: Fact<KernelConfig>,
    /// CPUs and what they share.
    pub topology: Fact<Topology>,
    /// Network devices of this namespace, by name.
    pub devices: Vec<Device>,
    /// `/proc/interrupts`.
    pub interrupts: Fact<Interrupts>,
    /// `/proc/net/softnet_stat` by CPU.
    pub softnet: Fact<Vec<(u32, CpuLine)>>,
    /// Programs that run.
    pub processes: Fact<Processes>,
    /// Devices that went away or could not be read while they were read, with the reason.
    pub lost_devices: Vec<(String, String)>,
}

impl HostFacts {
    /// Reads the facts; `only` keeps to these devices.
    ///
    /// **Cost** some milliseconds for each device; nothing is written and nothing waits.
    pub fn collect(root: &Root, only: &[String]) -> Self {
        let interrupts = fact(root.parsed(interrupts::PATH, interrupts::parse));
        let config = fact(kernel_config::read(root));
        let (devices, lost_devices) = device::all(root, only, &interrupts);
        Self {
            files: RefCell::default(),
            kernel: kernel::read(root, config.value()),
            config,
            topology: fact(topology::read(root)),
            devices,
            interrupts,
            softnet: fact(softnet::read(root)),
            processes: processes::read(root),
            lost_devices,
            root: root.clone(),
        }
    }

    /// Whether this is the running host and not a captured tree.
    pub fn is_live(&self) -> bool {
        self.root.is_live()
    }

    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Names of all devices of the host, those that were not asked for included.
    pub fn device_names(&self) -> Vec<String> {
        rxpath_host::sysfs::device::names(&self.root).unwrap_or_default()
    }

    /// A file's text without the white space around it, as the kernel names the path.
    pub fn text(&self, path: &str) -> Fact<String> {
        if let Some(known) = self.files.borrow().get(path) {
            return known.clone();
        }
        let found = fact(self.root.value(path));
        self.files.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// A file's number.
    pub fn number(&self, path: &str) -> Fact<i64> {
        match self.text(path) {
            Fact::Ok { value } => value
                .parse()
                .map_or_else(|_| Fact::absent(format!("{path} does not hold a number")), Fact::ok),
            Fact::Absent { why } => Fact::Absent { why },
            Fact::Denied { needs } => Fact::Denied { needs },
        }
    }

    /// A file's CPU list (`0-3,8`), not a mask.
    pub fn cpus(&self, path: &str) -> Fact<CpuList> {
        match self.text(path) {
            Fact::Ok { value } => value
                .parse()
                .map_or_else(|_| Fact::absent(format!("{path} does not hold CPUs")), Fact::ok),
            Fact::Absent { why } => Fact::Absent { why },
            Fact::Denied { needs } => Fact::Denied { needs },
        }
    }

    /// Names in a directory, sorted.
    pub fn list(&self, path: &str) -> Fact<Vec<String>> {
        fact(self.root.list(path))
    }

    /// Whether a file or directory is there.
    pub fn exists(&self, path: &str) -> bool {
        self.root.exists(path)
    }

    /// Where a symbolic link points to.
    pub fn link(&self, path: &str) -> Fact<String> {
        fact(self.root.link(path)).map(|to| to.to_string_lossy().into_owned())
    }

    /// A sysctl by its dotted name.
    pub fn sysctl(&self, key: &str) -> Fact<sysctl::Value> {
        self.text(&sysctl::path(key)).map(|text| sysctl::parse(&text))
    }

    /// A sysctl that is one number.
    pub fn sysctl_number(&self, key: &str) -> Fact<i64> {
        self.number(&sysctl::path(key))
    }

    /// A sysctl of several numbers, such as `net.ipv4.tcp_rmem`.
    pub fn sysctl_numbers(&self, key: &str) -> Fact<Vec<i64>> {
        match self.sysctl(key) {
            Fact::Ok { value: sysctl::Value::Numbers(numbers) } => Fact::ok(numbers),
            Fact::Ok { value: sysctl::Value::Number(number) } => Fact::ok(vec![number]),
            Fact::Ok { .. } => Fact::absent(format!("{key} does not hold numbers")),
            Fact::Absent { why } => Fact::Absent { why },
            Fact::Denied { needs } => Fact::Denied { needs },
        }
    }

    /// A kernel option (`HZ`, `RPS`); absent where the host keeps no config, `n` when it is not set.
    pub fn option(&self, name: &str) -> Fact<String> {
        self.config.clone().map(|config| config.get(name).unwrap_or("n").to_owned())
    }

    /// Devices with hardware behind them, virtual hardware included.
    pub fn nics(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| device.is_nic())
    }

    /// Whether packets of some device pass a CPU's backlog: RPS is on, or a device has no NAPI of its own.
    ///
    /// **Source** net/core/dev.c `netif_receive_skb_internal` (RPS) and `netif_rx_internal`.
    pub fn uses_backlog(&self) -> bool {
        self.devices.iter().any(|device| {
            device.has_rps() || (device.is_up() && !device.is_nic() && !device.is_loopback())
        })
    }
}
