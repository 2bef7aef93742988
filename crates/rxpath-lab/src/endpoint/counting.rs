//! The counters of this host as one side of an experiment: protocols, softnet, one device, and what the others received.

use std::time::{Duration, Instant};

use rxpath_host::netlink::Netlink;
use rxpath_host::read::ioctl;
use rxpath_host::read::netlink::ethtool::COALESCE;
use rxpath_host::read::netlink::netdev::QueueStats;
use rxpath_host::read::netlink::{DeviceQdisc, NetworkLink};
use rxpath_host::read::nic::losses::{self, CardCounters};
use rxpath_host::read::nic::shared_port;
use rxpath_host::read::snapshot::Reader;
use rxpath_host::{HostError, Root};
use rxpath_live::lowest::{self, is_over_others};
use rxpath_record::counters::{Snapshot, name};
use serde::{Deserialize, Serialize};

use crate::clock::monotonic_ns;

/// What a host calls the drops of a device's root queueing disciplines, behind the device.
pub const ROOT_DROPS: &str = "root.drops";

/// What filters of tc dropped at a device, in both directions, behind `tc.` and the device.
pub const FILTER_DROPS: &str = "clsact.drops";

/// Two readings this far apart must be equal for counters to count as stable.
const APART: Duration = Duration::from_millis(30);

/// The counters after a wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rested {
    /// The last reading.
    pub counters: Snapshot,
    /// Whether it was equal to the one before.
    pub is_quiescent: bool,
}

/// The open sources of the counters.
pub struct Counting {
    reader: Reader,
    route: Netlink,
    /// For the statistics that the standards define.
    generic: Option<Netlink>,
    /// The device.
    device: Device,
    /// Those below it that carry its packets.
    below: Vec<Device>,
}

/// A device that is read.
struct Device {
    name: String,
    /// Its driver, or the kind of a virtual device, of those below.
    driver: String,
    /// Whether it has statistics that the standards define.
    is_standard: bool,
    /// Whether no device above it counts what its queueing discipline drops. A VLAN does (net/8021q/vlan_dev.c
    /// `vlan_dev_hard_start_xmit`), a bond or team does not.
    queues_alone: bool,
}

impl Counting {
    /// Opens them in the network namespace of the process.
    pub fn open(device: &str) -> Result<Self, HostError> {
        let root = Root::host();
        let reader = Reader::all(&root).with_energy(&root);
        let mut route = Netlink::route()?;
        let mut generic = Netlink::generic().ok();
        let mut of = |name: &str, driver: String, queues_alone: bool| {
            let standard = generic.as_mut().and_then(|it| it.standard_stats(name).ok());
            let is_standard = standard.is_some_and(|it| !it.is_empty());
            Device { name: name.to_owned(), driver, is_standard, queues_alone }
        };
        let (mut below, own) = (Vec::new(), of(device, String::new(), true));
        if route.link(device).is_ok_and(|link| is_over_others(link.kind.as_deref())) {
            let links = route.links()?;
            let named = lowest::below(&links, device).into_iter();
            below.extend(named.map(|link| of(&link.name, driver_of(link), link.master.is_some())));
        }
        Ok(Self { reader, route, generic, device: own, below })
    }

    /// Which counters say what the rings lost and what was on the wire: those of the device, or of the ones below it.
    pub fn card(&mut self, driver: &str) -> CardCounters {
        let snapshot = self.read();
        let generic = &mut self.generic;
        let mut card = |name: &str, driver: &str| {
            let written = generic.as_mut().and_then(|generic| stats_block_usecs(generic, name));
            card_of(&snapshot, name, driver).written_every(written).on_shared_port(shared_by(name))
        };
        if self.below.is_empty() {
            return card(&self.device.name, driver);
        }
        let of = |device: &Device| (device.name.clone(), card(&device.name, &device.driver));
        CardCounters::joined(self.below.iter().map(of))
    }

    /// The devices whose queues have the packets: those below the device, or itself.
    pub fn lowest(&self) -> Vec<&str> {
        let own = self.below.is_empty().then_some(&self.device);
        self.below.iter().chain(own).map(|device| device.name.as_str()).collect()
    }

    /// Reads all of them; what cannot be read is a gap.
    pub fn read(&mut self) -> Snapshot {
        let read = self.reader.read();
        let mut snapshot = Snapshot { values: read.values, gaps: read.gaps, t_ns: 0 };
        let (mut queues, mut own) = (Vec::new(), None);
        // The device is the last one.
        for device in self.below.iter().chain([&self.device]) {
            let index = read_link(&mut self.route, &device.name, &mut snapshot);
            if let Some((generic, index)) = self.generic.as_mut().zip(index) {
                read_queues(generic, (&device.name, index), &mut snapshot);
            }
            queues.extend(index.filter(|_| device.queues_alone));
            own = index;
            // A device without driver counters has none to miss.
            let of_driver = ioctl::driver_stats(&device.name).unwrap_or_default();
            let name = |name| format!("ethtool.{}.{name}", device.name);
            snapshot.values.extend(of_driver.into_iter().map(|(it, value)| (name(it), value)));
            if let Some(generic) = self.generic.as_mut().filter(|_| device.is_standard) {
                read_standard(generic, &device.name, &mut snapshot);
            }
        }
        read_qdiscs(&mut self.route, (&self.device.name, own), &queues, &mut snapshot);
        let measured: Vec<&str> =
            self.below.iter().chain([&self.device]).map(|it| it.name.as_str()).collect();
        let others = self.route.links().map(|links| received_by_others(&links, &measured));
        snapshot.put(name::OTHER_DEVICES.into(), others);
        snapshot.t_ns = monotonic_ns() as i64;
        snapshot
    }

    /// Reads until two readings in a row are equal in what the workload moves, or for `limit`.
    pub fn rest(&mut self, limit: Duration) -> Rested {
        let deadline = Instant::now() + limit;
        let mut before = self.read();
        loop {
            // why: the distance of two readings; what must not move between them is counted, not waited for.
            std::thread::sleep(APART);
            let counters = self.read();
            let device = &self.device.name;
            let is_quiescent = own(&before, device).eq(own(&counters, device));
            if is_quiescent || Instant::now() >= deadline {
                return Rested { counters, is_quiescent };
            }
            before = counters;
        }
    }
}

/// The driver of a device; of one without hardware its kind.
pub(super) fn driver_of(link: &NetworkLink) -> String {
    let of_hardware = || ioctl::driver_info(&link.name).map(|info| info.driver);
    link.kind.clone().unwrap_or_else(|| of_hardware().unwrap_or_default())
}

/// How often a card writes its counters into memory, if it says so.
fn stats_block_usecs(generic: &mut Netlink, device: &str) -> Option<u32> {
    generic.ethtool(&COALESCE, device).ok()?.rare.get("stats-block-usecs").copied()
}

/// Who shares the port of a device, in words.
fn shared_by(device: &str) -> Option<String> {
    shared_port::why(&Root::host(), &ioctl::driver_info(device).ok()?.bus)
}

/// The counters of one device in a snapshot that say what its ring lost and what was on the wire, by their names there.
fn card_of(snapshot: &Snapshot, device: &str, driver: &str) -> CardCounters {
    let of_device = |name: &String| {
        let (source, rest) = name.split_once('.')?;
        let counter = rest.strip_prefix(device)?.strip_prefix('.')?;
        Some(format!("{source}.{counter}"))
    };
    let offered: Vec<String> = snapshot.values.keys().filter_map(of_device).collect();
    let mut card = losses::counters(driver, &offered);
    let named = [
        &mut card.ring,
        &mut card.received,
        &mut card.perhaps_received,
        &mut card.sent,
        &mut card.damaged,
    ];
    for name in named.into_iter().flatten() {
        if let Some((source, counter)) = name.split_once('.') {
            *name = format!("{source}.{device}.{counter}");
        }
    }
    card
}

/// The index of the device, if there is one.
fn read_link(route: &mut Netlink, device: &str, snapshot: &mut Snapshot) -> Option<u32> {
    let link = route.link(device);
    let index = link.as_ref().ok().map(|link| link.index);
    let named = |(name, value)| (format!("link.{device}.{name}"), value);
    snapshot.put("link".into(), link.map(|link| link.stats.into_iter().map(named)));
    let number = index.map(|index| (format!("link.{device}{}", name::INDEX), index.into()));
    snapshot.values.extend(number);
    index
}

/// What the queues lost, where the driver counts it by the kernel's name; a driver without it has none to miss.
fn read_queues(generic: &mut Netlink, (device, index): (&str, u32), snapshot: &mut Snapshot) {
    let queues = generic.queue_stats(index).unwrap_or_default();
    let lost = queues.iter().filter_map(QueueStats::overruns);
    let name = |name: String| format!("queue.{device}.{name}");
    snapshot.values.extend(lost.map(|(it, value)| (name(it), value)));
}

/// Under the name of the device what its filters dropped, and what its packets' queueing disciplines did: on it and on these
/// devices.
fn read_qdiscs(
    route: &mut Netlink,
    (device, index): (&str, Option<u32>),
    queues: &[u32],
    snapshot: &mut Snapshot,
) {
    match route.qdiscs() {
        Ok(all) => {
            let dropped = [
                (format!("qdisc.{device}.{ROOT_DROPS}"), root_drops(&all, queues)),
                (format!("tc.{device}.{FILTER_DROPS}"), filter_drops(&all, index)),
            ];
            snapshot.values.extend(dropped);
        }
        Err(error) => {
            let sources = ["qdisc", "tc"].map(|source| format!("{source}.{device}"));
            snapshot.gaps.extend(sources.map(|source| (source, error.to_string())));
        }
    }
}

/// What filters of a device's `clsact` dropped, also programs of BPF there (net/core/dev.c `tc_run`). What programs of tcx drop
/// has no counter.
fn filter_drops(all: &[DeviceQdisc], device: Option<u32>) -> u64 {
    let is_own = |one: &&DeviceQdisc| one.kind == "clsact" && Some(one.index) == device;
    all.iter().filter(is_own).filter_map(|one| one.stat("drops")).sum()
}

/// What the root queueing disciplines of these devices dropped. A root counts the drops of its children too
/// (include/net/sch_generic.h `qdisc_qstats_drop`, net/sched/sch_mq.c `mq_dump`).
fn root_drops(all: &[DeviceQdisc], devices: &[u32]) -> u64 {
    let is_root = |one: &&DeviceQdisc| one.parent == u32::MAX && devices.contains(&one.index);
    all.iter().filter(is_root).filter_map(|one| one.stat("drops")).sum()
}

/// What all devices but these received: IP counts their packets too.
fn received_by_others(links: &[NetworkLink], own: &[&str]) -> Vec<(String, u64)> {
    let others = links.iter().filter(|link| !own.contains(&link.name.as_str()));
    let received = others.filter_map(|link| {
        let name = format!("{}.{}.rx.packets", name::OTHER_DEVICES, link.name);
        Some((name, link.stat("rx.packets")?))
    });
    received.collect()
}

fn read_standard(generic: &mut Netlink, device: &str, snapshot: &mut Snapshot) {
    let named = |(name, value)| (format!("standard.{device}.{name}"), value);
    let stats = generic.standard_stats(device).map(|stats| stats.into_iter().map(named));
    snapshot.put(format!("standard.{device}"), stats);
}

/// The device of the experiment, and datagrams that sockets take. The host's IP and TCP counters move with the connection that
/// asks; softnet belongs to the whole machine, devices below it may carry other traffic, and drivers refresh their counters
/// when they please.
fn own<'a>(
    snapshot: &'a Snapshot,
    device: &str,
) -> impl Iterator<Item = (&'a String, &'a u64)> + use<'a> {
    let link = format!("link.{device}.");
    snapshot
        .values
        .iter()
        .filter(move |(name, _)| name.starts_with(&link) || name.starts_with("Udp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_devices_received_stands_under_their_names() {
        let link = |name: &str, packets| NetworkLink {
            name: name.into(),
            stats: vec![("rx.packets", packets), ("tx.packets", 9)],
            ..NetworkLink::default()
        };
        let all = [link("lo", 5), link("bond0", 70), link("ens1", 70), link("eno1", 3)];
        let wanted = [("lo", 5u64), ("eno1", 3)];
        let wanted = wanted.map(|(it, by)| (format!("other-devices.{it}.rx.packets"), by));
        assert_eq!(received_by_others(&all, &["ens1", "bond0"]), wanted);
    }

    #[test]
    fn a_reading_has_the_index_of_the_device() {
        let read = Counting::open("lo").unwrap().read();
        assert!(read.values["link.lo.index"] > 0, "{read:?}");
        assert!(read.values.contains_key("link.lo.rx.packets"), "{read:?}");
    }

    #[test]
    fn what_children_dropped_counts_once_and_other_devices_are_left_out() {
        let qdisc = |index, parent, drops| DeviceQdisc {
            index,
            parent,
            stats: vec![("packets", 90), ("drops", drops)],
            ..DeviceQdisc::default()
        };
        let (root, ingress) = (u32::MAX, 0xFFFF_FFF1);
        let all = [
            qdisc(2, root, 7),
            qdisc(2, 0x8001_0001, 7),
            qdisc(2, ingress, 100),
            qdisc(3, root, 5),
            qdisc(4, root, 60),
            DeviceQdisc { index: 5, parent: root, ..DeviceQdisc::default() },
        ];
        assert_eq!(root_drops(&all, &[2]), 7);
        assert_eq!(root_drops(&all, &[2, 3, 5]), 12, "the members of a bond");
    }

    #[test]
    fn what_filters_dropped_is_that_of_the_device_alone() {
        let qdisc = |index, kind: &str, drops| DeviceQdisc {
            index,
            kind: kind.into(),
            stats: vec![("drops", drops)],
            ..DeviceQdisc::default()
        };
        let all = [qdisc(2, "fq", 7), qdisc(2, "clsact", 100), qdisc(3, "clsact", 5)];
        assert_eq!(filter_drops(&all, Some(2)), 100);
        assert_eq!((filter_drops(&all, Some(4)), filter_drops(&all, None)), (0, 0));
    }
}
