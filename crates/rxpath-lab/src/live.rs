//! What limits UDP reception on this host now: the evidence of a few seconds, from counters alone.
//!
//! It sends nothing and changes nothing. There is no sender to ask: what arrives at UDP counts as offered, whatever was
//! lost before this host, and each place of loss here by the counter that owns it. The counters are those of this
//! network namespace, of all its sockets together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxpath_core::Side;
use rxpath_host::netlink::netfilter::Conntrack;
use rxpath_host::netlink::{Netlink, SkMemInfo};
use rxpath_host::procfs::socket_owner;
use rxpath_host::snapshot::Reader;
use rxpath_host::sysfs::device::{self, RxQueue};
use rxpath_host::{HostError, Root};
use rxpath_record::counters::{Moved, Snapshot};
use rxpath_record::evidence::{ConntrackUse, Evidence, SocketUse, SoftirqPlace, Spread, ThreadUse};
use rxpath_record::ledger::{Drop, Ledger, Place};

use crate::clock::monotonic_ns;
use crate::trial::evidence::{conntrack, packets_by_cpu};
use crate::trial::observe::{Between, Mark, Ours};
use crate::trial::witness::{Traffic, Witness};

/// Time between two looks at the sockets.
const LOOK: Duration = Duration::from_millis(20);
/// A thread that runs or waits for less than this share of the time reads no noteworthy traffic: programs have others.
const READS_RATIO: f64 = 0.05;
/// Processes whose threads are measured, at most.
pub(crate) const OWNERS: usize = 64;

/// Places of loss, each with the counter that owns it, of UDP over IPv4 and IPv6 together.
pub(crate) const PLACES: [(Place, &[&str]); 7] = [
    (
        Place::Ip,
        &[
            "Ip.InHdrErrors",
            "Ip.InAddrErrors",
            "Ip.InDiscards",
            "Ip6.InHdrErrors",
            "Ip6.InAddrErrors",
            "Ip6.InDiscards",
        ],
    ),
    (Place::ReversePath, &["TcpExt.IPReversePathFilter"]),
    (Place::NoListener, &["Udp.NoPorts", "Udp6.NoPorts"]),
    (Place::Checksum, &["Udp.InCsumErrors", "Udp6.InCsumErrors"]),
    (Place::SocketBuffer, &["Udp.RcvbufErrors", "Udp6.RcvbufErrors"]),
    (Place::UdpMemory, &["Udp.MemErrors", "Udp6.MemErrors"]),
    (Place::Backlog, &[]),
];
/// Counters of TCP that tell of the same path; no verdict rests on them.
pub(crate) const BESIDE: [&str; 7] = [
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.RcvPruned",
    "TcpExt.TCPOFODrop",
    "TcpExt.TCPZeroWindowDrop",
];

/// What was seen.
#[derive(Debug)]
pub struct Seen {
    /// For the diagnosis.
    pub evidence: Evidence,
    /// TCP's counters that moved, by name.
    pub beside: BTreeMap<String, u64>,
    /// UDP sockets that were looked at.
    pub sockets_count: usize,
    /// Of these: those whose process could be found.
    pub owned_count: usize,
    /// What could not be read, with the reason.
    pub gaps: BTreeMap<String, String>,
}

/// A UDP socket over the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Socket {
    /// Local port.
    pub(crate) port: u16,
    pub(crate) rcvbuf: u32,
    /// Of its first and of its last look.
    pub(crate) drops: [u32; 2],
    pub(crate) sum_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) samples: u64,
}

impl Socket {
    /// Whether something waited in it or was dropped at it.
    fn was_used(&self) -> bool {
        self.max_bytes > 0 || self.drops[0] != self.drops[1]
    }

    /// Takes one look.
    pub(crate) fn look(&mut self, memory: &SkMemInfo) {
        if self.samples == 0 {
            self.drops[0] = memory.drops;
        }
        (self.drops[1], self.rcvbuf) = (memory.drops, memory.rcvbuf);
        self.sum_bytes += u64::from(memory.rmem);
        self.max_bytes = self.max_bytes.max(memory.rmem.into());
        self.samples += 1;
    }
}

/// What is to be watched.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// For how long.
    pub length: Duration,
    /// Only the sockets of this port.
    pub port: Option<u16>,
    /// Measure CPU time and lock waits by tracepoints as well (BPF; needs root).
    pub probes: bool,
}

/// Looks at this host for that long, or until `stop`; at the sockets of one port when it is given.
///
/// # Errors
/// What keeps the counters from being read at all.
pub fn watch(ask: &Ask, stop: &AtomicBool) -> Result<Seen, HostError> {
    let Ask { length, port, probes } = *ask;
    let root = Root::host();
    let mut counters = Reader::all(&root);
    let mut diag = Netlink::sock_diag()?;
    let mut sockets: BTreeMap<u32, Socket> = BTreeMap::new();
    look(&mut diag, port, &mut sockets)?;
    let inodes: BTreeSet<u32> = sockets.keys().copied().filter(|inode| *inode != 0).collect();
    let owners = socket_owner::of(&root, &inodes);
    let pids: BTreeSet<i32> = owners.values().flatten().copied().take(OWNERS).collect();
    let ours = Ours { pids: pids.into_iter().collect(), ..Ours::default() };
    let mut witness = probes.then(Witness::start);
    let tracked = tracked();
    let from = Mark::take(&ours);
    if let Some(witness) = &mut witness {
        witness.begin();
    }
    let before = snapshot(&mut counters);
    countable(&before)?;
    // Finding the owners took its time: sockets count from here on, inside the span of the counters.
    sockets.clear();
    look(&mut diag, port, &mut sockets)?;
    let end_ns = from.t_ns + length.as_nanos() as u64;
    while monotonic_ns() < end_ns && !stop.load(Ordering::Relaxed) {
        // why: the pacing of the looks at the sockets.
        std::thread::sleep(LOOK.min(Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()))));
        look(&mut diag, port, &mut sockets)?;
    }
    let moved = snapshot(&mut counters).since(&before);
    let tracked_now = self::tracked();
    let between = Between::marks(&from, &Mark::take(&ours), &ours);
    let mut evidence = evidence(&between, &moved, &sockets, &owners);
    evidence.spread = Some(spread(&root, &moved));
    evidence.probed = witness.map(|witness| {
        let holders = |chosen: &BTreeSet<u32>| -> Vec<i32> {
            chosen.iter().filter_map(|inode| owners.get(inode)).flatten().copied().collect()
        };
        let readers = holders(&sockets.keys().copied().collect());
        let workloads = [&readers[..], &[std::process::id() as i32]].concat();
        witness.end(&Traffic { workloads: &workloads, readers: &readers })
    });
    if let (Some(before), Some(after)) = (tracked, tracked_now) {
        add_conntrack(&mut evidence, &conntrack(&before, &after));
    }
    let beside = BESIDE.iter().filter_map(|name| Some(((*name).to_owned(), sum(&moved, &[name])?)));
    Ok(Seen {
        sockets_count: sockets.len(),
        owned_count: sockets.keys().filter(|inode| owners.contains_key(inode)).count(),
        beside: beside.filter(|(_, count)| *count > 0).collect(),
        gaps: moved.gaps.clone(),
        evidence,
    })
}

/// Without the counters of UDP nothing can be said: that they did not move would be read out of their absence.
fn countable(read: &Snapshot) -> Result<(), HostError> {
    let has = |name: &str| read.values.contains_key(&format!("{}/{name}", Side::Machine));
    if has("Udp.InDatagrams") || has("Udp6.InDatagrams") {
        return Ok(());
    }
    let why = read.gaps.iter().find(|(what, _)| what.contains("snmp"));
    let why = why.map_or_else(String::new, |(what, why)| format!(" ({what}: {why})"));
    Err(HostError::Unsupported {
        what: "judge how UDP is received".into(),
        needs: format!("the counters of UDP in /proc/net/snmp{why}"),
    })
}

/// Connection tracking of this namespace; root's to read.
fn tracked() -> Option<Conntrack> {
    Netlink::netfilter().ok()?.conntrack().ok()
}

/// What connection tracking dropped is lost in netfilter. It counts packets of every protocol: datagrams of UDP are
/// among them, how many is not told.
fn add_conntrack(evidence: &mut Evidence, tracked: &ConntrackUse) {
    evidence.conntrack = Some(*tracked);
    if tracked.drops_packets == 0 {
        return;
    }
    let ledger = &mut evidence.ledger;
    ledger.offered_packets += tracked.drops_packets;
    ledger.sent_packets = ledger.offered_packets;
    ledger.drops.push(Drop {
        place: Place::Netfilter,
        counter: "nf_conntrack drop, all protocols".into(),
        packets: tracked.drops_packets,
        derived: false,
        exact: true,
        cross_checks: Vec::new(),
    });
    let pps = ledger.offered_packets as f64 / evidence.window_s.max(1e-9);
    (evidence.offered_pps, evidence.asked_pps) = (pps, Some(pps));
}

/// Receive queues and RPS masks of all devices that are up, and what each CPU's softirq took.
fn spread(root: &Root, moved: &Moved) -> Spread {
    let devices = device::names(root).unwrap_or_default();
    let read = devices.iter().filter_map(|name| device::read(root, name).ok());
    let queues: Vec<RxQueue> = read.filter(|d| d.name != "lo").flat_map(|d| d.rx_queues).collect();
    let mut cpus: Vec<u32> = queues
        .iter()
        .filter_map(|queue| queue.rps_cpus.value())
        .flat_map(|list| list.0.clone())
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    Spread {
        queues: (!queues.is_empty()).then_some(queues.len() as u32),
        rps_cpus: (!queues.is_empty()).then_some(cpus),
        flows: None,
        packets: packets_by_cpu(moved),
    }
}

pub(crate) fn snapshot(reader: &mut Reader) -> Snapshot {
    let read = reader.read();
    let named = |name: &str| format!("{}/{name}", Side::Machine);
    Snapshot {
        t_ns: monotonic_ns() as i64,
        values: read.values.into_iter().map(|(name, value)| (named(&name), value)).collect(),
        gaps: read.gaps,
    }
}

fn look(
    diag: &mut Netlink,
    port: Option<u16>,
    sockets: &mut BTreeMap<u32, Socket>,
) -> Result<(), HostError> {
    for found in diag.udp_sockets(port)? {
        let Some(memory) = found.memory else { continue };
        let socket = sockets.entry(found.inode).or_default();
        socket.port = found.local.port();
        socket.look(&memory);
    }
    Ok(())
}

/// How far these counters moved together; `None` when none of them is there.
pub(crate) fn sum(moved: &Moved, names: &[&str]) -> Option<u64> {
    let one = |name: &&str| moved.values.get(&format!("{}/{name}", Side::Machine)).copied();
    let found: Vec<i64> = names.iter().filter_map(one).collect();
    (!found.is_empty()).then(|| found.iter().map(|n| u64::try_from(*n).unwrap_or(0)).sum())
}

/// The backlogs of all CPUs, and the CPUs whose softirq took packets.
fn softnet(moved: &Moved) -> (u64, Vec<u32>) {
    let prefix = format!("{}/softnet.cpu", Side::Machine);
    let (mut dropped, mut cpus) = (0, Vec::new());
    for (name, count) in &moved.values {
        let Some((cpu, counter)) = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        match counter {
            // 32 bits that wrap.
            "dropped" => dropped += u64::from(*count as u32),
            "processed" if *count != 0 => cpus.extend(cpu.parse::<u32>().ok()),
            _ => {}
        }
    }
    (dropped, cpus)
}

/// From what was read at both ends, and of the sockets in between.
pub(crate) fn evidence(
    between: &Between,
    moved: &Moved,
    sockets: &BTreeMap<u32, Socket>,
    owners: &BTreeMap<u32, BTreeSet<i32>>,
) -> Evidence {
    let (backlog, cpus) = softnet(moved);
    let delivered = sum(moved, &["Udp.InDatagrams", "Udp6.InDatagrams"]).unwrap_or(0);
    let drops: Vec<Drop> = PLACES
        .iter()
        .filter_map(|(place, names)| {
            let (packets, counter) = match place {
                Place::Backlog => (backlog, "softnet dropped, all CPUs".to_owned()),
                _ => (sum(moved, names)?, names.join(" + ")),
            };
            let (derived, exact) = (false, true);
            let cross_checks = Vec::new();
            (packets > 0).then_some(Drop {
                place: *place,
                counter,
                packets,
                derived,
                exact,
                cross_checks,
            })
        })
        .collect();
    let offered = delivered + drops.iter().map(|drop| drop.packets).sum::<u64>();
    let seconds = between.seconds().max(1e-9);
    let ledger = Ledger {
        offered_packets: offered,
        sent_packets: offered,
        delivered_packets: delivered,
        drops,
        ..Ledger::default()
    };
    Evidence {
        window_s: between.seconds(),
        // Nobody is asked here: what comes is what was wanted.
        asked_pps: Some(offered as f64 / seconds),
        offered_pps: offered as f64 / seconds,
        delivered_pps: delivered as f64 / seconds,
        watched: true,
        // Where nothing was read and nothing waits nobody is a reader: a sender of this host would pass for one.
        receiver_threads: if delivered == 0 && !sockets.values().any(Socket::was_used) {
            Vec::new()
        } else {
            readers(between, &busy(sockets), owners)
        },
        cpus: between.cpus.clone(),
        sockets: uses(sockets),
        softirq: SoftirqPlace::Napi { cpus },
        backlog_limit_packets: Root::host().number("/proc/sys/net/core/netdev_max_backlog").ok(),
        ledger,
        ..Evidence::default()
    }
}

/// Sockets of ports that dropped something; when none did, those in which something waited; else all.
fn busy(sockets: &BTreeMap<u32, Socket>) -> BTreeSet<u32> {
    let of = |is: &dyn Fn(&Socket) -> bool| -> BTreeSet<u32> {
        sockets.iter().filter(|(_, socket)| is(socket)).map(|(inode, _)| *inode).collect()
    };
    let drops = |socket: &&Socket| socket.drops[0] != socket.drops[1];
    let ports: BTreeSet<u16> = sockets.values().filter(drops).map(|socket| socket.port).collect();
    if !ports.is_empty() {
        // With those of the same port that drop nothing: whether the load is uneven shows only beside them.
        return of(&|socket| ports.contains(&socket.port));
    }
    let waiting = of(&|socket| socket.max_bytes > 0);
    if waiting.is_empty() { of(&|_| true) } else { waiting }
}

/// Threads of the processes that own these sockets and that ran, or wanted to.
fn readers(
    between: &Between,
    inodes: &BTreeSet<u32>,
    owners: &BTreeMap<u32, BTreeSet<i32>>,
) -> Vec<ThreadUse> {
    let pids: BTreeSet<i32> =
        inodes.iter().filter_map(|inode| owners.get(inode)).flatten().copied().collect();
    let root = Root::host();
    let window_ns = between.seconds().max(1e-9) * 1e9;
    let of_process =
        |pid: &i32| rxpath_host::procfs::task::threads(&root, *pid).unwrap_or_default();
    let tids = pids.iter().flat_map(of_process);
    tids.filter_map(|tid| {
        let time = between.threads.get(&tid)?;
        let wanted = (time.run_ns + time.wait_ns) as f64 / window_ns;
        (wanted >= READS_RATIO).then(|| ThreadUse {
            tid,
            name: time.name.clone(),
            seen_cpus: vec![time.last_cpu],
            running_ratio: time.run_ns as f64 / window_ns,
            waiting_ratio: time.wait_ns as f64 / window_ns,
            ..ThreadUse::default()
        })
    })
    .collect()
}

fn uses(sockets: &BTreeMap<u32, Socket>) -> Vec<SocketUse> {
    let chosen = busy(sockets);
    let of = |(index, (_, socket)): (usize, (&u32, &Socket))| SocketUse {
        index: index as u32,
        rcvbuf_bytes: socket.rcvbuf.into(),
        queue_mean_bytes: socket.sum_bytes as f64 / socket.samples.max(1) as f64,
        queue_max_bytes: socket.max_bytes,
        samples: socket.samples,
        drops_packets: u64::from(socket.drops[1].wrapping_sub(socket.drops[0])),
        ..SocketUse::default()
    };
    sockets.iter().filter(|(inode, _)| chosen.contains(inode)).enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// Counters are the namespace's: other tests may add to them, and never take away.
    #[test]
    fn a_socket_that_nobody_reads_shows_its_drops_and_its_owner() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let seen_stop = std::sync::Arc::clone(&stop);
        let watching = std::thread::spawn(move || {
            let ask = Ask { length: Duration::from_secs(60), port: Some(to.port()), probes: false };
            watch(&ask, &seen_stop).unwrap()
        });
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut diag = Netlink::sock_diag().unwrap();
        let mut drops = || {
            let sockets = diag.udp_sockets(Some(to.port())).unwrap();
            sockets.iter().filter_map(|s| s.memory).map(|memory| memory.drops).max().unwrap_or(0)
        };
        // The watcher has to have seen the socket before: it reports what is added.
        let deadline = monotonic_ns() + 60_000_000_000;
        let begun = monotonic_ns();
        // On a slow machine it takes its time to look for the first time.
        while (drops() < 200_000 || monotonic_ns() < begun + 2_000_000_000)
            && monotonic_ns() < deadline
        {
            for _ in 0..500 {
                sender.send_to(&[0; 64], to).unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
        let seen = watching.join().unwrap();
        let evidence = &seen.evidence;
        let [socket] = evidence.sockets.as_slice() else { panic!("{:?}", evidence.sockets) };
        assert!(socket.drops_packets > 0 && socket.queue_max_bytes > socket.rcvbuf_bytes / 2);
        let lost = |place| evidence.ledger.drops.iter().find(|d: &&Drop| d.place == place);
        assert!(lost(Place::SocketBuffer).unwrap().packets >= socket.drops_packets);
        assert!(evidence.receiver_threads.iter().any(|thread| thread.running_ratio > 0.0));
        let whole = evidence.ledger.delivered_packets + evidence.ledger.lost_packets();
        assert_eq!(evidence.ledger.offered_packets, whole);
    }
}
