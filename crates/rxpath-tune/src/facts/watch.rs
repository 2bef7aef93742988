//! Reading counters twice: from the running host, or from a capture that took both readings.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rxpath_core::{Fact, IntoMap};
use rxpath_host::Root;
use rxpath_host::error::fact;
use rxpath_host::read::counter::Width;
use rxpath_host::read::nic::{self, HostAnswers, Nic};
use rxpath_host::read::procfs::softnet::{self, CpuLine};
use rxpath_host::read::procfs::{self};
use rxpath_host::read::{snapshot, sysfs};

use super::counted::{Count, Later, LaterDevice, Watched};
use super::{Device, Gap, HostFacts, RequiredFact};

/// What each CPU's receive softirq counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftnetCount {
    /// Packets.
    pub processed: Count,
    /// Packets that found the backlog full.
    pub dropped: Count,
    /// Times that budget or time was used up.
    pub time_squeeze: Count,
}

/// Where the kernel counts the times that a core's clock was cut.
pub fn throttle_path(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count")
}

impl HostFacts {
    /// Reads the counters of the running host a second time, `window` from now. A captured tree has what it has.
    ///
    /// **Cost** waits for `window`.
    pub fn watch(&mut self, window: Duration) {
        if !self.is_live() {
            return;
        }
        let paths = self.counter_files();
        for path in &paths {
            self.text(path);
        }
        let start = Instant::now();
        thread::sleep(window);
        let files = paths.into_iter().map(|path| (path.clone(), fact(self.root.value(&path))));
        let files = files.into_map();
        let (devices, answers) = self.asked_again();
        self.later = Some(Later {
            counters: snapshot::read(&self.root),
            softnet: fact(softnet::read(&self.root)),
            answers,
            devices,
            files,
            tree: None,
        });
        self.watched =
            Watched { window: Some(start.elapsed()), uptime: procfs::uptime(&self.root).ok() };
    }

    /// Files that hold nothing but counters and that rules read.
    fn counter_files(&self) -> Vec<String> {
        let online = self.topology.value().map(|topology| topology.online.as_slice().to_vec());
        let mut files: Vec<String> =
            online.unwrap_or_default().into_iter().map(throttle_path).collect();
        files.push("/proc/stat".into());
        files.extend(self.cgroup_stat_files());
        files
    }

    /// The counters of the devices that are up, and those of the namespace.
    fn asked_again(&self) -> (BTreeMap<String, LaterDevice>, HostAnswers) {
        let Ok(mut reader) = nic::Reader::open() else {
            return (BTreeMap::new(), HostAnswers::default());
        };
        let qdiscs = reader.qdiscs();
        let up = self.devices.iter().filter(|device| device.is_up() && !device.is_loopback());
        let devices = up.map(|device| {
            let statistics = sysfs::device::statistics_of(&self.root, &device.name);
            let nic = reader.counted(&device.name, &device.nic);
            let nic = Nic { qdiscs: qdiscs.of(&device.nic), ..nic };
            (device.name.clone(), LaterDevice { statistics, nic })
        });
        (devices.into_map(), reader.host_counted())
    }

    /// A protocol counter by its name (`TcpExt.ListenOverflows`).
    pub fn count(&self, name: &str) -> Fact<Count> {
        let later = self.later.as_ref().and_then(|later| later.counters.values.get(name).copied());
        self.counter(name).map(|first| Count::of(Width::U64, first, later))
    }

    /// A statistic of a device (`rx_dropped`), as sysfs names it.
    pub(crate) fn device_count(&self, device: &Device, name: &str) -> Fact<Count> {
        let later = self.later_device(device).and_then(|later| later.statistics.get(name).copied());
        match device.sysfs.statistics.get(name) {
            Some(first) => Fact::ok(Count::of(Width::U64, *first, later)),
            None => Fact::absent(format!("the kernel does not report {name} of {}", device.name)),
        }
    }

    /// A statistic of a device's driver; `None` if the driver does not count it.
    pub(crate) fn driver_count(&self, device: &Device, name: &str) -> Result<Option<Count>, Gap> {
        let find = |stats: &[(String, u64)]| {
            stats.iter().find(|(known, _)| known == name).map(|(_, count)| *count)
        };
        let later = self.later_device(device).and_then(|it| find(it.nic.driver_stats.value()?));
        let first = find((&device.nic.driver_stats).known()?);
        Ok(first.map(|first| Count::of(Width::U64, first, later)))
    }

    /// A counter that `find` finds in a file's text.
    pub(crate) fn count_in(
        &self,
        path: &str,
        find: impl Fn(&str) -> Option<u64>,
    ) -> Fact<Option<Count>> {
        let later = self.later.as_ref().and_then(|later| find(&later.text(path)?));
        self.text(path).map(|text| Some(Count::of(Width::U64, find(&text)?, later)))
    }

    /// What the CPUs' receive softirqs counted.
    pub(crate) fn softnet_counts(&self) -> Fact<Vec<(u32, SoftnetCount)>> {
        let later = self.later.as_ref().and_then(|later| later.softnet.value());
        let one = |cpu: u32, first: CpuLine| {
            let later =
                later.and_then(|lines| lines.iter().find(|(of, _)| *of == cpu)).map(|(_, it)| it);
            let count = |of: fn(&CpuLine) -> u32| {
                Count::of(Width::U32, of(&first).into(), later.map(|line| of(line).into()))
            };
            SoftnetCount {
                processed: count(|line| line.processed),
                dropped: count(|line| line.dropped),
                time_squeeze: count(|line| line.time_squeeze),
            }
        };
        let lines = self.softnet.clone();
        lines.map(|lines| lines.into_iter().map(|(cpu, line)| (cpu, one(cpu, line))).collect())
    }

    /// Packets that found a backlog full, and packets of all receive softirqs.
    pub fn backlog_drops(&self) -> Fact<(Count, Count)> {
        self.softnet_counts().map(|lines| {
            let sum =
                |of: fn(&SoftnetCount) -> Count| Count::sum(lines.iter().map(|(_, it)| of(it)));
            (sum(|it| it.dropped), sum(|it| it.processed))
        })
    }

    /// The second reading of a device's counters.
    pub(crate) fn later_device(&self, device: &Device) -> Option<&LaterDevice> {
        self.later.as_ref()?.devices.get(&device.name)
    }

    /// The second reading of the namespace's counters.
    pub(crate) fn later_answers(&self) -> Option<&HostAnswers> {
        self.later.as_ref().map(|later| &later.answers)
    }
}

impl Later {
    /// A file's second text.
    fn text(&self, path: &str) -> Option<String> {
        match &self.tree {
            Some(tree) => tree.value(path).ok(),
            None => self.files.get(path)?.value().cloned(),
        }
    }
}

/// The second reading of a captured tree, where it has one.
pub(super) fn of_tree(root: &Root, devices: &[Device]) -> (Option<Later>, Watched) {
    let first = procfs::uptime(root).ok();
    let Some(tree) = root.later() else {
        return (None, Watched { window: None, uptime: first });
    };
    let second = procfs::uptime(&tree).ok();
    let device = |device: &Device| {
        let statistics = sysfs::device::statistics_of(&tree, &device.name);
        let nic = nic::load(&tree, &device.name)
            .unwrap_or_else(|error| Nic::all_gaps(&error.to_string()));
        (device.name.clone(), LaterDevice { statistics, nic })
    };
    let later = Later {
        counters: snapshot::read(&tree),
        softnet: fact(softnet::read(&tree)),
        answers: nic::load_host(&tree).unwrap_or_default(),
        devices: devices.iter().filter(|device| !device.is_loopback()).map(device).into_map(),
        files: BTreeMap::new(),
        tree: Some(tree),
    };
    let window = second.zip(first).and_then(|(second, first)| second.checked_sub(first));
    (Some(later), Watched { window, uptime: second.or(first) })
}
