//! `rxpath trace --dev`, `--port`, `--cpu` on the traffic of two devices, four ports and two CPUs at once: each keeps its own and
//! leaves out the other's, in drops, latencies, polls and events.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use rxpath_host::lab::netns::Namespace;
use rxpath_host::read::netlink::SkMemInfo;
use rxpath_host::read::thread;
use rxpath_host::write::sched;
use serde_json::Value;

use crate::alone::probes::{number, probe, probe_in, rows};
use crate::bed::{Bed, RX_IP, TX_IP, until};
use crate::skip::skip;

const OTHER_TX_IP: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const OTHER_RX_IP: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

/// What goes through one device, from one CPU.
struct Way {
    from: Ipv4Addr,
    to: Ipv4Addr,
    /// A socket that is full: what comes is dropped.
    full: u16,
    /// A socket that has room for what comes.
    free: u16,
    drops: u32,
    queued: u32,
}

const ONE: Way = Way { from: TX_IP, to: RX_IP, full: 4801, free: 4802, drops: 1000, queued: 100 };
const OTHER: Way =
    Way { from: OTHER_TX_IP, to: OTHER_RX_IP, full: 4803, free: 4804, drops: 700, queued: 60 };

/// Two devices with a NAPI each, and the two CPUs that send to them.
struct Ways {
    tx: Namespace,
    rx: Namespace,
    cpus: [u32; 2],
    /// The receivers: nobody reads them.
    sockets: Vec<UdpSocket>,
    _bed: Bed,
}

impl Ways {
    fn new() -> Option<Self> {
        let bed = Bed::with_bpf()?;
        let [first, .., last] = thread::allowed_cpus().unwrap().0[..] else {
            skip("second_cpu", "one CPU: the two devices can't have one each");
            return None;
        };
        let (tx, rx) = bed.pair(1);
        tx.veth_to("other", &rx, "other", 1).unwrap();
        let ends = [(&tx, OTHER_TX_IP, [2, 0, 0, 0, 1, 1]), (&rx, OTHER_RX_IP, [2, 0, 0, 0, 1, 2])];
        for (ns, ip, mac) in ends {
            ns.set_mac("other", mac).unwrap();
            ns.add_address("other", ip.into(), 24).unwrap();
            ns.set_up("other", true).unwrap();
        }
        // No question for an address is among the packets that are counted.
        tx.add_neighbour("other", OTHER_RX_IP.into(), ends[1].2).unwrap();
        rx.add_neighbour("other", OTHER_TX_IP.into(), ends[0].2).unwrap();
        for dev in ["veth", "other"] {
            // With GRO, and segments from a sender without TSO, a veth polls by itself; otherwise the backlog does it for all.
            rx.set_features(dev, &[("gro", true)]).unwrap();
            tx.set_features(dev, &[("tso", false)]).unwrap();
        }
        let mut ways = Self { tx, rx, cpus: [first, last], sockets: Vec::new(), _bed: bed };
        for way in [&ONE, &OTHER] {
            for port in [way.full, way.free] {
                let to = (way.to, port);
                ways.sockets.push(ways.rx.run(move |_| UdpSocket::bind(to).unwrap()).unwrap());
            }
            ways.send(way, first, way.full, 3000);
        }
        // What is still in flight then, in ksoftirqd, would be counted by the first trace.
        for dev in ["veth", "other"] {
            let arrived = format!("ethtool.{dev}.rx_queue_0_xdp_packets");
            until("all have arrived", || ways.rx.counters().unwrap()[&arrived] >= 3000);
        }
        Some(ways)
    }

    /// A thread that sends datagrams from this CPU; the softirqs that receive them run there.
    fn sender(&self, way: &Way, cpu: u32, port: u16, count: u32) -> impl FnOnce() + Send + 'static {
        let (from, to) = (way.from, way.to);
        let socket = self.tx.run(move |_| UdpSocket::bind((from, 0)).unwrap()).unwrap();
        move || {
            sched::pin(cpu).unwrap();
            for _ in 0..count {
                socket.send_to(&[7; 32], (to, port)).unwrap();
            }
        }
    }

    fn send(&self, way: &Way, cpu: u32, port: u16, count: u32) {
        std::thread::spawn(self.sender(way, cpu, port, count)).join().unwrap();
    }

    /// What a socket has dropped.
    fn dropped(&self, at: usize) -> u32 {
        SkMemInfo::of(self.sockets[at].as_fd()).unwrap().drops
    }

    /// Sends on both ways at once, and empties the sockets that have room. What was sent may still be in flight then, in ksoftirqd:
    /// waits until all of it is there.
    fn traffic(&self) {
        let before = [0, 2].map(|at| self.dropped(at));
        let mut threads = Vec::new();
        for (way, cpu) in [(&ONE, self.cpus[0]), (&OTHER, self.cpus[1])] {
            for (port, count) in [(way.full, way.drops), (way.free, way.queued)] {
                threads.push(std::thread::spawn(self.sender(way, cpu, port, count)));
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        for (at, way) in [(1, &ONE), (3, &OTHER)] {
            let socket = &self.sockets[at];
            let mut got = 0;
            socket.set_nonblocking(true).unwrap();
            until("all that has room is there", || {
                got += std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count();
                got == way.queued as usize
            });
        }
        for (at, all) in [(0, before[0] + ONE.drops), (2, before[1] + OTHER.drops)] {
            until("all that has no room is dropped", || self.dropped(at) == all);
        }
    }

    /// What a trace of the receiver's namespace with these words says of that traffic.
    fn seen(&self, words: &[&str]) -> Value {
        let all = [&["trace", "-d", "10m", "--every-packet", "--timeline"], words].concat();
        let inside = words.contains(&"--dev");
        let trace = if inside { probe_in(&self.rx, &all) } else { probe(&all) };
        self.traffic();
        trace.end()
    }
}

/// Drops on the full ports of both ways, and packets that became ready in any socket.
fn counts(result: &Value) -> [u32; 3] {
    let dropped = |way: &Way| {
        let drops = rows(result, "drops").iter().filter(|drop| drop["port"] == way.full);
        drops.map(|drop| number(drop, "packets") as u32).sum()
    };
    let mut stages = rows(result, "stages").iter();
    let ready = stages.find(|stage| stage["stage"] == "receive-to-socket").unwrap();
    [dropped(&ONE), dropped(&OTHER), number(ready, "latencies_count") as u32]
}

/// Packets of the polls of a device.
fn polled(result: &Value, dev: &str) -> u32 {
    let devices = rows(result, "devices").iter().filter(|device| device["dev"] == dev);
    devices.map(|device| number(device, "packets") as u32).sum()
}

/// Each value of a key in these rows, once.
fn values(rows: &[Value], key: &str) -> Vec<u64> {
    let mut values: Vec<u64> = rows.iter().map(|row| row[key].as_u64().unwrap()).collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[test]
fn a_device_is_told_from_another() {
    let Some(ways) = Ways::new() else { return };
    let result = ways.seen(&["--dev", "veth"]);
    assert_eq!(counts(&result), [ONE.drops, 0, ONE.queued]);
    assert_eq!(polled(&result, "veth"), ONE.drops + ONE.queued);
    assert_eq!(rows(&result, "devices").len(), 1, "{}", result["devices"]);
    let result = ways.seen(&["--dev", "other"]);
    assert_eq!(counts(&result), [0, OTHER.drops, OTHER.queued]);
    assert_eq!(polled(&result, "other"), OTHER.drops + OTHER.queued);
    let both = ways.seen(&["--netns", ways.rx.name()]);
    assert_eq!(counts(&both), [ONE.drops, OTHER.drops, ONE.queued + OTHER.queued]);
}

/// A port is one of sockets: polls don't know it, and are counted whole.
#[test]
fn a_port_is_told_from_another() {
    let Some(ways) = Ways::new() else { return };
    let netns = ways.rx.name();
    for (port, expected) in [
        (ONE.full, [ONE.drops, 0, 0]),
        (ONE.free, [0, 0, ONE.queued]),
        (OTHER.full, [0, OTHER.drops, 0]),
        (OTHER.free, [0, 0, OTHER.queued]),
    ] {
        let result = ways.seen(&["--netns", netns, "--port", &port.to_string()]);
        assert_eq!(counts(&result), expected, "port {port}");
        // What came last is seen if a look came after it; what waited before is seen by each.
        let seen = values(rows(&result, "sockets"), "port");
        assert!(seen.iter().all(|of| *of == u64::from(port)), "{seen:?}, port {port}");
        assert!(expected[2] > 0 || !seen.is_empty(), "port {port}");
        for (dev, way) in [("veth", &ONE), ("other", &OTHER)] {
            assert_eq!(polled(&result, dev), way.drops + way.queued, "{dev}, port {port}");
        }
    }
}

#[test]
fn a_cpu_is_told_from_another() {
    let Some(ways) = Ways::new() else { return };
    let [first, last] = ways.cpus;
    for (cpu, dev, expected) in [
        (first, "veth", [ONE.drops, 0, ONE.queued]),
        (last, "other", [0, OTHER.drops, OTHER.queued]),
    ] {
        let result = ways.seen(&["--netns", ways.rx.name(), "--cpu", &cpu.to_string()]);
        assert_eq!(counts(&result), expected, "CPU {cpu}");
        assert_eq!(polled(&result, dev), expected.iter().sum::<u32>(), "CPU {cpu}");
        assert_eq!(rows(&result, "devices").len(), 1, "CPU {cpu}: {}", result["devices"]);
        for list in ["cpus", "napis", "timeline"] {
            assert_eq!(values(rows(&result, list), "cpu"), [u64::from(cpu)], "{list}");
        }
        assert!(values(rows(&result, "irqs"), "cpu").iter().all(|of| *of == u64::from(cpu)));
    }
}
