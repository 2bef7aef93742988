//! What a rule may read: the facts of a host, each ok, absent with its reason, or denied.
//!
//! Everything comes through `rxpath-host` and works alike on the running host and on a captured tree. Devices,
//! CPUs, interrupts and processes are read when the facts are made; single files when the first rule asks, and
//! then never again, so that all rules judge the same values.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use rxpath_core::{CpuList, Fact};
use rxpath_host::Root;
use rxpath_host::error::fact;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::environment::is_first_netns;
use rxpath_host::read::kernel_config::{self, KernelConfig};
use rxpath_host::read::nic::{self, HostAnswers};
use rxpath_host::read::procfs::softnet::{self, CpuLine};
use rxpath_host::read::procfs::{snmp, snmp6, sysctl};
use rxpath_host::read::queue_map::HostTables;
use rxpath_host::read::snapshot::{self, Counters};
use rxpath_host::read::startup::{self, StartupLine};
use rxpath_host::read::topology::CpuTopology;
use serde_json::Value;

mod cgroups;
mod counted;
mod device;
mod fingerprint;
mod irq;
mod kept;
mod kernel;
mod known;
mod link_files;
mod planned;
mod processes;
mod readers;
mod scope;
mod serving;
mod sockets;
mod watch;

pub use cgroups::{MOUNT as CGROUPS, is_outside, stat_file};
pub use counted::{Count, Counted, Evidence, LaterDevice, RARE_RATIO, Watched};
pub use device::{Device, NETLINK, NO_DEVICES};
pub use fingerprint::Fingerprint;
pub use irq::Irq;
pub use kept::{Kept, parse_kept};
pub use kernel::{Kernel, Version};
pub use known::{Gap, OrGap, RequiredFact};
pub(crate) use link_files::path_id;
pub use link_files::{Fits, LinkFile, parse_link_file};
pub use processes::RunningProcesses;
pub use readers::{PacketReader, Readers};
pub use scope::Scope;
pub use serving::{Serving, host_wide};
pub use sockets::UdpPort;
pub use watch::{SoftnetCount, throttle_path};

/// Options that fix the size of a page; the first four since 6.9 on every architecture.
const PAGE_OPTIONS: [(&str, u64); 10] = [
    ("PAGE_SIZE_4KB", 4 << 10),
    ("PAGE_SIZE_16KB", 16 << 10),
    ("PAGE_SIZE_64KB", 64 << 10),
    ("PAGE_SIZE_8KB", 8 << 10),
    ("ARM64_4K_PAGES", 4 << 10),
    ("ARM64_16K_PAGES", 16 << 10),
    ("ARM64_64K_PAGES", 64 << 10),
    ("PPC_4K_PAGES", 4 << 10),
    ("PPC_64K_PAGES", 64 << 10),
    ("X86_64", 4 << 10),
];

/// A host's facts.
#[derive(Clone, Debug)]
pub struct HostFacts {
    root: Root,
    files: RefCell<BTreeMap<String, Fact<String>>>,
    startup: OnceCell<(Vec<StartupLine>, Fact<()>)>,
    readers: OnceCell<Fact<Readers>>,
    surroundings: OnceCell<Vec<(String, Value)>>,
    later: Option<counted::Later>,
    /// How the counters were read: once, unless [`HostFacts::watch`] or the capture took a second reading.
    pub watched: Watched,
    /// The kernel.
    pub kernel: Kernel,
    /// How it was built; absent on hosts that keep no config.
    pub config: Fact<Arc<KernelConfig>>,
    /// CPUs and what they share.
    pub topology: Fact<CpuTopology>,
    /// What of the host is judged.
    pub scope: Scope,
    /// Network devices of this namespace, by name.
    pub devices: Vec<Device>,
    /// `/proc/net/softnet_stat` by CPU.
    pub softnet: Fact<Vec<(u32, CpuLine)>>,
    /// Protocol counters (`Udp.RcvbufErrors`, `TcpExt.ListenOverflows`).
    pub counters: Counters,
    /// UDP sockets by port.
    pub udp_ports: Fact<BTreeMap<u16, UdpPort>>,
    /// Settings that files keep for the next boot, in the order in which they apply.
    pub kept: Vec<Kept>,
    /// Why a file of them could not be read.
    pub kept_gap: Option<Gap>,
    /// What netlink reports of the whole namespace: netfilter's hooks, connection tracking, page pools.
    pub answers: HostAnswers,
    /// Queueing disciplines by device; on the running host alone.
    pub qdiscs: Fact<BTreeMap<String, Vec<String>>>,
    /// Programs that run.
    pub processes: Fact<RunningProcesses>,
    /// Devices that went away or could not be read while they were read, with the reason.
    pub lost_devices: Vec<(String, String)>,
}

impl HostFacts {
    /// Reads the facts.
    ///
    /// Counters are read once; [`HostFacts::watch`] reads those of the running host again.
    /// **Cost** some milliseconds for each device; nothing is written and nothing waits.
    pub fn collect(root: &Root, scope: &Scope) -> Self {
        let shared = HostTables::read(root);
        let config = fact(kernel_config::read(root)).map(Arc::new);
        let (devices, lost_devices) = device::all(root, &shared);
        let (later, watched) = watch::of_tree(root, &devices);
        let (kept, kept_gap) = kept::read(root);
        let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
        Self {
            files: RefCell::default(),
            startup: OnceCell::new(),
            readers: OnceCell::new(),
            surroundings: OnceCell::new(),
            later,
            watched,
            kernel: kernel::read(root, config.value().map(Arc::as_ref)),
            config,
            topology: shared.topology,
            scope: scope.clone(),
            answers: nic::host(root, &names),
            counters: snapshot::read(root),
            udp_ports: sockets::udp_ports(root, scope.processes.as_ref()),
            kept,
            kept_gap,
            qdiscs: qdiscs(root, &devices),
            devices,
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

    /// Devices that device rules are asked about.
    pub fn asked(&self) -> impl Iterator<Item = &Device> {
        let wanted = &self.scope.devices;
        self.devices.iter().filter(|device| wanted.is_empty() || wanted.contains(&device.name))
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
        self.parsed(path, "a number")
    }

    /// A file's CPU list (`0-3,8`), not a mask.
    pub fn cpus(&self, path: &str) -> Fact<CpuList> {
        self.parsed(path, "CPUs")
    }

    fn parsed<T: FromStr>(&self, path: &str, what: &str) -> Fact<T> {
        let parsed =
            |text: String| Fact::of(text.parse::<T>().ok(), format!("{path} does not hold {what}"));
        self.text(path).and_then(parsed)
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
    pub(crate) fn sysctl_number(&self, key: &str) -> Fact<i64> {
        self.number(&sysctl::path(key))
    }

    /// A sysctl of several numbers, such as `net.ipv4.tcp_rmem`.
    pub(crate) fn sysctl_numbers(&self, key: &str) -> Fact<Vec<i64>> {
        self.sysctl(key).and_then(|value| match value {
            sysctl::Value::Numbers(numbers) => Fact::ok(numbers),
            sysctl::Value::Number(number) => Fact::ok(vec![number]),
            sysctl::Value::Text(_) => Fact::absent(format!("{key} does not hold numbers")),
        })
    }

    /// A kernel option (`HZ`, `RPS`); absent where the host keeps no config, `n` when it is not set.
    pub fn option(&self, name: &str) -> Fact<String> {
        self.config.as_ref().map(|config| config.get(name).unwrap_or("n").to_owned())
    }

    /// Whether a kernel option is known to be set.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.option(name).value().is_some_and(|value| value == "y")
    }

    /// A file's bytes.
    pub fn bytes(&self, path: &str) -> Fact<Vec<u8>> {
        fact(self.root.bytes(path))
    }

    /// Size of a page: recorded, or by the kernel's options, or as x86 has it.
    pub fn page_bytes(&self) -> Fact<u64> {
        if self.answers.page_bytes.value().is_some() {
            return self.answers.page_bytes.clone();
        }
        if let Some((_, bytes)) = PAGE_OPTIONS.iter().find(|(name, _)| self.has_option(name)) {
            return Fact::ok(*bytes);
        }
        let is_x86 = |text: &String| text.contains("GenuineIntel") || text.contains("AuthenticAMD");
        if self.has_option("X86") || self.text("/proc/cpuinfo").value().is_some_and(is_x86) {
            return Fact::ok(4096);
        }
        Fact::absent("the page size is neither in the capture nor in the kernel's options")
    }

    /// The host's memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> Fact<u64> {
        let total = |text: String| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
        };
        let text = self.text("/proc/meminfo");
        text.and_then(|text| Fact::of(total(text), "/proc/meminfo has no line MemTotal"))
    }

    /// A protocol counter by its name (`TcpExt.ListenOverflows`).
    pub fn counter(&self, name: &str) -> Fact<u64> {
        let value = self.counters.values.get(name);
        value.map_or_else(|| self.counters_gap(name), |value| Fact::ok(*value))
    }

    /// Why there is no counter of this name: its table's gap, or a kernel that does not count it.
    fn counters_gap(&self, name: &str) -> Fact<u64> {
        let group = name.split_once('.').map_or(name, |(group, _)| group);
        let (source, path) = match group {
            "TcpExt" | "IpExt" | "MPTcpExt" => ("netstat", snmp::NETSTAT),
            group if group.ends_with('6') => ("snmp6", snmp6::PATH),
            _ => ("snmp", snmp::SNMP),
        };
        if let Some(why) = self.counters.gaps.get(source) {
            return Fact::absent(why.clone());
        }
        let start = format!("{group}.");
        if self.counters.values.keys().any(|known| known.starts_with(&start)) {
            Fact::absent(format!("this kernel does not count {name}"))
        } else {
            Fact::absent(format!("{path}: no counters of {group}"))
        }
    }

    /// The port whose socket dropped the most datagrams, and how many; `None` when none did.
    pub(crate) fn worst_udp_socket(&self) -> Option<(u16, u64)> {
        let worst =
            self.udp_ports.value()?.iter().max_by_key(|(_, port)| port.worst_drops_total)?;
        (worst.1.worst_drops_total > 0).then_some((*worst.0, worst.1.worst_drops_total))
    }

    /// Since when protocols count: their counters belong to the network namespace (net/core/net_namespace.c
    /// `setup_net`), and only the first one is known to be as old as the boot.
    pub(crate) fn protocols_began(&self) -> &'static str {
        let is_first = is_first_netns(&self.root) == Some(true);
        if is_first { "boot" } else { "this network namespace was made" }
    }

    /// Devices with hardware behind them, virtual hardware included.
    pub fn nics(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| device.is_nic())
    }

    /// The lines of files of settings that are in force after boot, by path below `/proc/sys`.
    pub(crate) fn kept_in_force(&self) -> BTreeMap<String, &Kept> {
        kept::in_force(&self.kept, |dir| self.list(dir).into_value().unwrap_or_default())
    }

    /// Lines of udev rules and of rc.local that name a setting, in the order in which they act.
    pub fn startup(&self) -> &[StartupLine] {
        &self.startup_read().0
    }

    /// Whether all of these files could be read.
    ///
    /// # Errors
    /// Why the first that could not be read could not.
    pub fn startup_whole(&self) -> Result<(), Gap> {
        (&self.startup_read().1).known().copied()
    }

    fn startup_read(&self) -> &(Vec<StartupLine>, Fact<()>) {
        self.startup.get_or_init(|| startup::read(&self.root))
    }

    /// Every device of the namespace, for rules that say something about all of them: a gap when one was lost.
    pub(crate) fn all_devices(&self) -> Result<&[Device], Gap> {
        if let Some((name, why)) = self.lost_devices.iter().find(|(name, _)| name != NETLINK) {
            let what = if name == NO_DEVICES { "" } else { ": a device that could not be read" };
            return Err(Gap::Absent(format!("{why}{what}")));
        }
        if self.devices.is_empty() {
            return Err(Gap::Absent("no network device is visible".into()));
        }
        Ok(&self.devices)
    }

    /// Whether packets of some device other than loopback pass a CPU's backlog: RPS is on, or a device has no NAPI of
    /// its own. What loopback carries passes it always.
    ///
    /// **Source** net/core/dev.c `netif_receive_skb_internal` (RPS) and `netif_rx_internal`; drivers/net/loopback.c
    /// `loopback_xmit`.
    pub(crate) fn uses_backlog(&self) -> Result<bool, Gap> {
        Ok(self.all_devices()?.iter().any(|device| {
            device.has_rps() || (device.is_up() && !device.is_nic() && !device.is_loopback())
        }))
    }
}

fn qdiscs(root: &Root, devices: &[Device]) -> Fact<BTreeMap<String, Vec<String>>> {
    if !root.is_live() {
        return Fact::absent("not in a captured tree");
    }
    let all = match Netlink::route().and_then(|mut route| route.qdiscs()) {
        Ok(all) => all,
        Err(error) => return error.into_gap(),
    };
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for qdisc in all {
        let owner =
            devices.iter().find(|device| device.sysfs.ifindex.value() == Some(&qdisc.index));
        if let Some(owner) = owner {
            kinds.entry(owner.name.clone()).or_default().push(qdisc.kind);
        }
    }
    Fact::ok(kinds)
}
