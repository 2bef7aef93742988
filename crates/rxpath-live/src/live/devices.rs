//! The devices at both ends of a window: which of them carried the traffic, and what their rings lost.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_core::number::grouped;
use rxpath_host::Root;
use rxpath_host::read::netlink::NetworkLink;
use rxpath_host::read::sysfs::device::{self, Steering};
use rxpath_record::counters::{Moved, name};
use rxpath_record::evidence::{AnyProtocol, CpuDistribution, SoftirqPlace};
use rxpath_record::ledger::{Drop, Place};

use crate::counted::packets_by_cpu;
use crate::lowest::lowest;

/// A device that took less than this share of all packets carried the traffic of others.
const CARRIES_RATIO: f64 = 0.05;
/// What the devices did in a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// Devices with nothing below them that took a significant part of the packets.
    pub(crate) names: Vec<String>,
    /// Packets that devices with nothing below them took.
    pub(crate) took: u64,
    /// Lost in their rings.
    pub(crate) ring: Option<AnyProtocol>,
    /// Dropped by XDP programs, by the driver's own count, of each device.
    pub(crate) xdp: Vec<(String, u64)>,
    /// What devices refused, and their names: too long for their MTU, or of a protocol that nobody takes.
    pub(crate) refused: (Vec<String>, u64),
    /// Devices (ifb) through which what comes in is led to be shaped: their queueing disciplines are on the way in.
    pub(crate) shaping: Vec<String>,
}

/// Fewer frames that devices refused than this are strays: announcements of switches, other hosts' broadcasts.
const REFUSED_PACKETS: u64 = 100;

impl Carried {
    /// That devices refused frames, where it is not known whether somebody wanted them.
    pub(super) fn refused(&self) -> Option<String> {
        let (names, packets) = &self.refused;
        (*packets >= REFUSED_PACKETS).then(|| {
            format!(
                "whether anybody wanted the {} frames that {} refused (rx_dropped): longer than its MTU, or of a protocol that nobody here takes",
                grouped(*packets),
                names.join(", ")
            )
        })
    }
}

/// From the devices at both ends.
pub(crate) fn carried(before: &[NetworkLink], now: &[NetworkLink]) -> Carried {
    let lowest = lowest(now);
    let lowest: Vec<&NetworkLink> =
        now.iter().filter(|link| lowest.contains(&link.index)).collect();
    let old: BTreeMap<u32, &NetworkLink> = before.iter().map(|link| (link.index, link)).into_map();
    let moved = |link: &NetworkLink, name: &str| {
        let then = old.get(&link.index).and_then(|old| old.stat(name));
        // A driver that was reset counts from 0 again.
        link.stat(name).zip(then).and_then(|(now, then)| now.checked_sub(then)).unwrap_or(0)
    };
    let took: u64 = lowest.iter().map(|link| moved(link, "rx.packets")).sum();
    let carries = |link: &&&NetworkLink| {
        let packets = moved(link, "rx.packets");
        packets > 0 && packets as f64 >= CARRIES_RATIO * took as f64
    };
    let names = lowest.iter().filter(carries).map(|link| link.name.clone()).collect();
    let lost =
        |link: &NetworkLink| name::RING.iter().map(|name| moved(link, name)).max().unwrap_or(0);
    let losing: Vec<&str> =
        lowest.iter().filter(|link| lost(link) > 0).map(|link| link.name.as_str()).collect();
    let packets: u64 = lowest.iter().map(|link| lost(link)).sum();
    let ring = (packets > 0).then(|| {
        let counter = format!(
            "rtnetlink stats64, the largest of rx_missed_errors, rx_fifo_errors and rx_over_errors, of {}",
            losing.join(", ")
        );
        let drop = Drop::counted(Place::Ring, counter, packets);
        AnyProtocol { drop, of_packets: took + packets }
    });
    let refused: Vec<&&NetworkLink> =
        lowest.iter().filter(|link| moved(link, "rx.dropped") > 0).collect();
    let refused = (
        refused.iter().map(|link| link.name.clone()).collect(),
        refused.iter().map(|link| moved(link, "rx.dropped")).sum(),
    );
    let shaping = now.iter().filter(|link| link.kind.as_deref() == Some("ifb"));
    let shaping = shaping.map(|link| link.name.clone()).collect();
    Carried { names, took, ring, xdp: Vec::new(), refused, shaping }
}

/// Receive queues and RPS masks of the devices that carried the traffic, what each CPU's softirq took, and where these run.
pub(crate) fn spread(
    root: &Root,
    names: &[String],
    moved: &Moved,
) -> (CpuDistribution, SoftirqPlace) {
    let read: Vec<_> = names.iter().filter_map(|name| device::steering(root, name).ok()).collect();
    let queues: Vec<_> = read.iter().flat_map(|device| &device.rx_queues).collect();
    let mut cpus: Vec<u32> = queues
        .iter()
        .filter_map(|queue| queue.rps_cpus.value())
        .flat_map(|list| list.0.clone())
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    let packets = packets_by_cpu(moved);
    let took = packets.iter().filter(|cpu| cpu.packets > 0).map(|cpu| cpu.cpu).collect();
    let in_thread = |device: &Steering| device.threaded.value().is_some_and(|mode| *mode > 0);
    // A thread of a device with RPS only hands the packets on. Where only some devices have threads softirqs do the rest.
    let place = if cpus.is_empty() && !read.is_empty() && read.iter().all(in_thread) {
        SoftirqPlace::NapiThread { cpus: took }
    } else {
        SoftirqPlace::Napi { cpus: took }
    };
    let spread = CpuDistribution {
        queues: (!queues.is_empty()).then_some(queues.len() as u32),
        rps_cpus: (!queues.is_empty()).then_some(cpus),
        flows: None,
        packets,
    };
    (spread, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: Option<&str>, received: u64) -> NetworkLink {
        NetworkLink {
            index,
            name: name.into(),
            kind: kind.map(str::to_owned),
            stats: vec![("rx.packets", received), ("rx.missed_errors", 0), ("rx.fifo_errors", 0)],
            ..NetworkLink::default()
        }
    }

    /// A NIC that took 1,000 packets, and all that may stand on top of it and count them again.
    fn host(received: u64) -> Vec<NetworkLink> {
        let mut loopback = link(1, "lo", None, 7 * received);
        loopback.flags = libc_loopback();
        let mut port = link(2, "eth0", None, received);
        port.master = Some(4);
        let mut vlan = link(5, "eth0.7", Some("vlan"), received);
        vlan.peer_index = Some(2);
        let mut veth = link(6, "veth1", Some("veth"), received / 2);
        veth.peer_index = Some(2);
        let quiet = link(3, "eth1", None, received / 1_000);
        vec![
            loopback,
            port,
            quiet,
            link(4, "br0", Some("bridge"), received),
            vlan,
            veth,
            link(7, "docker0", Some("bridge"), received),
        ]
    }

    fn libc_loopback() -> u32 {
        nix::net::if_::InterfaceFlags::IFF_LOOPBACK.bits() as u32
    }

    #[test]
    fn what_carried_the_traffic_has_no_device_below_it() {
        assert_eq!(carried(&host(0), &host(1_000)).names, ["eth0", "veth1"]);
        assert!(carried(&host(1_000), &host(1_000)).names.is_empty());
    }

    #[test]
    fn softirqs_of_a_device_that_polls_in_threads_are_these_threads_unless_rps_hands_the_packets_on()
     {
        let place = |threaded: &str, mask: &str| {
            let tree = tempfile::tempdir().unwrap();
            let queue = tree.path().join("sys/class/net/eth0/queues/rx-0");
            std::fs::create_dir_all(&queue).unwrap();
            std::fs::write(queue.join("rps_cpus"), mask).unwrap();
            std::fs::write(queue.join("../../threaded"), threaded).unwrap();
            let root = Root::tree(tree.path()).unwrap();
            let values = [("machine/softnet.cpu1.processed".into(), 9)].into();
            let moved = Moved { values, ..Moved::default() };
            spread(&root, &["eth0".into()], &moved).1
        };
        let cpus = || vec![1];
        assert_eq!(place("0", "0"), SoftirqPlace::Napi { cpus: cpus() });
        assert_eq!(place("1", "0"), SoftirqPlace::NapiThread { cpus: cpus() });
        assert_eq!(place("1", "2"), SoftirqPlace::Napi { cpus: cpus() });
    }

    #[test]
    fn a_device_that_shapes_what_comes_in_is_known() {
        let mut now = host(1_000);
        now.push(link(8, "ifb0", Some("ifb"), 500));
        assert_eq!(carried(&host(0), &now).shaping, ["ifb0"]);
    }

    #[test]
    fn a_ring_without_a_free_descriptor_loses_what_the_driver_says() {
        let mut now = host(1_000);
        now[1].stats[1].1 = 90;
        now[1].stats[2].1 = 10;
        // A bridge on top counts the same ones again.
        now[3].stats[1].1 = 100;
        let ring = carried(&host(0), &now).ring.unwrap();
        assert_eq!((ring.drop.place, ring.drop.packets, ring.of_packets), (Place::Ring, 90, 1_591));
        assert!(ring.drop.counter.ends_with("of eth0"), "{}", ring.drop.counter);
        // Reset in the window: nothing is known.
        assert!(carried(&now, &host(2_000)).ring.is_none());
    }
}
