//! What limits reception over UDP and TCP on this host now: the evidence of a few seconds, from counters alone.
//!
//! It sends nothing and changes nothing. There is no sender to ask: what arrives at UDP counts as offered, whatever was
//! lost before this host, and each place of loss here by the counter that owns it. The counters are those of this
//! network namespace, of all its sockets together; those that count packets of every protocol stand apart.

mod counting;
mod devices;
mod groups;
pub mod hooks;
mod looks;
mod namespace;
mod owners;
mod places;
mod probes;
mod programs;
mod readers;
mod reads;
pub mod reasoned;
mod reasons;
mod sockets;
mod tcp;
mod unseen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rxpath_bpf::ProbeCost;
use rxpath_core::{IntoMap, PathSide};
use rxpath_host::netlink::Netlink;
use rxpath_host::read::clock::monotonic_ns;
use rxpath_host::read::netlink::{NetworkLink, TcpSocket, netfilter::Conntrack};
use rxpath_host::read::only::Only;
use rxpath_host::read::procfs::socket_owner;
use rxpath_host::read::snapshot::Reader;
use rxpath_host::{HostError, Root};
use rxpath_record::counters::{Moved, Snapshot};
use rxpath_record::evidence::{UdpCounting, WindowEvidence};
use rxpath_record::ledger::{Drop, DropReason, Ledger};

use crate::counted::conntrack;
use crate::observe::{Between, CpuSnapshot};

pub(crate) use groups::ReaderGroups;
pub(crate) use owners::{Owners, Waiters};
pub(crate) use places::{PLACES, RECEIVED, UDP_ERRORS, UDP_NAMED, UDP_REASONS, XDP_DROPS};
pub use probes::NOT_ASKED;
pub(crate) use probes::Probes;
pub use programs::{Programs, ProgramsCpu};
pub(crate) use readers::OWNERS;
pub(crate) use sockets::Socket;
pub(crate) use tcp::TcpLooks;
pub(crate) use unseen::Unseen;

use counting::{counting, taken_by_kernel};
use looks::Looks;
use places::{Beside, of_any_protocol, of_asked, of_udp, sum};
use reads::Readings;

/// The gap of a window in which UDP's sockets could not be listed.
pub const UDP_SOCKETS: &str = "UDP sockets";

/// What was seen.
#[derive(Debug)]
pub struct Seen {
    /// For the diagnosis.
    pub evidence: WindowEvidence,
    /// UDP sockets that were sampled.
    pub sockets_count: usize,
    /// Of these: those whose process could be found.
    pub owned_count: usize,
    /// Processes that have UDP sockets, and of these those whose threads were measured.
    pub owners_count: [usize; 2],
    /// What could not be read, with the reason.
    pub gaps: BTreeMap<String, String>,
    /// What looking cost.
    pub probe_cost: ProbeCost,
    /// When the window began.
    pub began: WindowStart,
}

/// When a window began.
#[derive(Clone, Copy, Debug)]
pub struct WindowStart {
    /// By the clock on the wall.
    pub at: Timestamp,
    /// Since it was asked for.
    pub after: Duration,
}

/// What is to be watched.
#[derive(Clone, Debug)]
pub struct LiveRequest {
    /// For how long.
    pub length: Duration,
    /// Only the sockets of this port.
    pub port: Option<u16>,
    /// Measure CPU time and lock waits by tracepoints as well (BPF; needs root).
    pub probes: bool,
    /// Only the sockets of these processes.
    pub only: Option<Only>,
    /// A list of UDP's sockets is followed by a pause of this many times what it took, and of 20 ms at least.
    pub udp_pause: u32,
}

impl LiveRequest {
    /// Whether a socket of TCP was asked for: the processes' descriptors are read once, now.
    fn covers(&self) -> impl Fn(&TcpSocket) -> bool {
        let (port, inodes) = (self.port, self.only.as_ref().map(Only::inodes));
        move |socket| {
            port.is_none_or(|port| socket.local.port() == port)
                && inodes.as_ref().is_none_or(|inodes| inodes.contains(&socket.inode))
        }
    }
}

/// Watches this host for that long, or until `stop`. `begun` is called once everything that happens from then on counts.
///
/// # Errors
/// What keeps the counters from being read at all.
pub fn watch(
    ask: &LiveRequest,
    stop: &AtomicBool,
    begun: impl FnOnce(),
) -> Result<Seen, HostError> {
    watch_with(ask, &mut Probes::new(ask.probes), stop, begun)
}

/// The same with these probes.
pub(crate) fn watch_with(
    ask: &LiveRequest,
    probes: &mut Probes,
    stop: &AtomicBool,
    begun: impl FnOnce(),
) -> Result<Seen, HostError> {
    let (called, root) = (Instant::now(), Root::host());
    let mut counters = Reader::all(&root);
    let mut looks = Looks::start(ask)?;
    // Who holds TCP's sockets is part of the path too: softirqs work for them as well.
    let inodes = looks.inodes();
    let mut owners = socket_owner::of(&root, &inodes);
    probes.add_readers(&mut owners);
    let (ours, owners_count) = readers::measured(&looks.sockets, &owners);
    let connected = readers::of_connections(&looks.tcp.inodes(), &owners);
    probes.start();
    let around = Around::now();
    let groups_before = groups::read(&ours.pids);
    let (from_tcp, from) = (CpuSnapshot::of_ours(&connected), CpuSnapshot::take(&ours));
    probes.begin(ask.length);
    let before = snapshot(&mut counters);
    countable(&before)?;
    // Finding the owners took its time: sockets count from here on, inside the span of the counters.
    looks.begin();
    let window = WindowStart { at: Timestamp::now(), after: called.elapsed() };
    begun();
    looks.until(before.t_ns as u64 + ask.length.as_nanos() as u64, stop, probes);
    let after = snapshot(&mut counters);
    let reads = probes.end_window();
    let between = Between::marks(&from, &CpuSnapshot::of_ours(&ours), &ours);
    looks.end();
    let of_connections = Between::marks(&from_tcp, &CpuSnapshot::of_ours(&connected), &connected);
    let groups = ReaderGroups { ends: [groups_before, groups::read(&ours.pids)] };
    let around = [&around, &Around::now()];
    // What takes time comes after the window: counts are divided by its length.
    probes.close();
    let (moved, reasons) = (after.since(&before), probes.reasons());
    owners.extend(looks.owners_since(&around[1].listeners, &inodes));
    owners.extend(readers::of_closed(&between, &looks.sockets, &owners, reads.as_ref()));
    let waiters = readers::waiters(&between, &looks.sockets, &owners, reads.as_ref());
    let nameless = reasons.as_deref().map(reasoned::nameless_rows);
    let unseen = unseen(&mut Unseen::default(), around, nameless.as_ref());
    let sockets = &looks.sockets;
    let read = Read {
        between: &between,
        moved: &moved,
        counted_s: (after.t_ns - before.t_ns) as f64 / 1e9,
        around,
        sockets,
        owners: &owners,
        reasons: reasons.as_deref(),
        unseen: &unseen,
        reads: reads.as_ref(),
        waiters: &waiters,
        tcp: &looks.tcp,
        asked: Some(ask).filter(|ask| ask.port.is_some() || ask.only.is_some()),
        of_connections: &of_connections,
        groups: &groups,
    };
    let (by_probes, probe_cost) = probes.end(sockets, &owners);
    Ok(Seen {
        sockets_count: sockets.len(),
        owned_count: sockets.keys().filter(|inode| owners.contains_key(inode)).count(),
        owners_count,
        gaps: looks.gaps(&moved.gaps),
        probe_cost,
        began: window,
        evidence: WindowEvidence { probed: by_probes, ..evidence(&read) },
    })
}

/// Without the counters of UDP nothing can be said: that they did not move would be read out of their absence.
fn countable(read: &Snapshot) -> Result<(), HostError> {
    let has = |name: &str| read.values.contains_key(&format!("{}/{name}", PathSide::Machine));
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

/// What stands around the sockets and is read once at each end of a window.
#[derive(Debug)]
pub(crate) struct Around {
    /// The devices, or why they could not be listed.
    pub(crate) links: Result<Vec<NetworkLink>, String>,
    /// When they were.
    pub(crate) at: Instant,
    /// Connection tracking of this namespace.
    tracked: Option<Conntrack>,
    listeners: Vec<TcpSocket>,
    /// What drivers count of their XDP programs' drops, by device.
    xdp_drops: BTreeMap<String, u64>,
}

impl Around {
    pub(crate) fn now() -> Self {
        let links = Netlink::route().and_then(|mut route| route.links());
        Self {
            xdp_drops: links.as_deref().map(hooks::xdp_drops).unwrap_or_default(),
            links: links.map_err(|error| error.to_string()),
            at: Instant::now(),
            tracked: rxpath_host::read::conntrack::read().ok(),
            listeners: tcp::listeners(),
        }
    }
}

pub(crate) fn snapshot(reader: &mut Reader) -> Snapshot {
    let read = reader.read();
    let named = |name: &str| format!("{}/{name}", PathSide::Machine);
    Snapshot {
        t_ns: monotonic_ns() as i64,
        values: read.values.into_iter().map(|(name, value)| (named(&name), value)).into_map(),
        gaps: read.gaps,
    }
}

/// All that the evidence of a watched host is made from.
pub(crate) struct Read<'a> {
    /// CPU time.
    pub(crate) between: &'a Between,
    /// Protocol and softnet counters.
    pub(crate) moved: &'a Moved,
    /// Time between their two readings.
    pub(crate) counted_s: f64,
    /// What was read at both ends.
    pub(crate) around: [&'a Around; 2],
    /// The UDP sockets.
    pub(crate) sockets: &'a BTreeMap<u32, Socket>,
    /// Who has which socket open.
    pub(crate) owners: &'a Owners,
    /// The kernel's drop reasons in this namespace, where they were watched.
    pub(crate) reasons: Option<&'a [DropReason]>,
    /// Places of loss that no counter has.
    pub(crate) unseen: &'a [String],
    /// Which threads read what, where that was watched.
    pub(crate) reads: Option<&'a Readings>,
    /// Who waits for sockets that got nothing, where that was asked.
    pub(crate) waiters: &'a Waiters,
    /// TCP's sockets, sampled.
    pub(crate) tcp: &'a TcpLooks,
    /// Whose sockets alone were asked for.
    pub(crate) asked: Option<&'a LiveRequest>,
    /// CPU time of the threads of programs with connections.
    pub(crate) of_connections: &'a Between,
    /// What their control groups kept the readers from, where it was read.
    pub(crate) groups: &'a ReaderGroups,
}

/// From what was read at both ends, and of the sockets in between.
pub(crate) fn evidence(read: &Read<'_>) -> WindowEvidence {
    let Read { between, moved, sockets, owners, .. } = *read;
    let (delivered, drops, taken_by_kernel) = of_sockets(read);
    let offered = delivered + drops.iter().map(|drop| drop.packets).sum::<u64>();
    let seconds = read.counted_s.max(1e-9);
    let [before, now] = read.around;
    let links = before.links.as_deref().ok().zip(now.links.as_deref().ok());
    let mut carried = links.map(|(before, now)| devices::carried(before, now)).unwrap_or_default();
    let by_ip = sum(moved, &RECEIVED).unwrap_or(0);
    carried.xdp = hooks::dropped([&before.xdp_drops, &now.xdp_drops]);
    let (spread, softirq) = devices::spread(&Root::host(), &carried.names, moved);
    let processed = spread.packets.iter().map(|cpu| cpu.packets).fold(0, u64::saturating_add);
    let tracked = before.tracked.as_ref().zip(now.tracked.as_ref());
    let tracked = tracked.map(|(before, now)| conntrack(before, now));
    let (by_cpu, reasons) = (&spread.packets, read.reasons);
    let beside = Beside { carried: &carried, by_cpu, tracked: tracked.as_ref(), reasons };
    let ledger = Ledger {
        offered_packets: offered,
        sent_packets: offered,
        delivered_packets: delivered,
        reasons: read.reasons.map(<[DropReason]>::to_vec).unwrap_or_default(),
        drops,
        ..Ledger::default()
    };
    WindowEvidence {
        window_s: seconds,
        // Nobody is asked here: what comes is what was wanted.
        target_pps: Some(offered as f64 / seconds),
        offered_pps: offered as f64 / seconds,
        delivered_pps: delivered as f64 / seconds,
        watched: true,
        narrowed: read.asked.is_some(),
        // Where nothing was read and nothing waits nobody is a reader: a sender of this host would pass for one.
        receiver_threads: if delivered == 0 && !sockets.values().any(Socket::was_used) {
            Vec::new()
        } else {
            let inodes = sockets::busy(sockets);
            let known = readers::known(&inodes, read.reads, read.waiters);
            readers::readers(between, &inodes, owners, &known, read.groups)
        },
        cpus: between.cpus.clone(),
        sockets: sockets::uses(sockets, owners, read.reads, read.waiters),
        softirq,
        backlog_limit_packets: Root::host().number("/proc/sys/net/core/netdev_max_backlog").ok(),
        any_protocol: of_any_protocol(moved, &beside),
        tcp: tcp::used(read),
        namespace: namespace::name(),
        elsewhere_pps: namespace::elsewhere([processed, by_ip], links, seconds),
        unread: unread(read, &carried),
        udp_counting: Some(counting(moved, offered + taken_by_kernel, taken_by_kernel))
            .filter(|it| *it != UdpCounting::default()),
        conntrack: tracked,
        spread: Some(spread),
        ledger,
        ..WindowEvidence::default()
    }
}

/// Datagrams that were read, and lost by UDP: all, or those of the sockets that were asked for. And those that the kernel took.
fn of_sockets(read: &Read<'_>) -> (u64, Vec<Drop>, u64) {
    let Read { moved, sockets, reads, reasons, .. } = *read;
    let delivered = sum(moved, &["Udp.InDatagrams", "Udp6.InDatagrams"]).unwrap_or(0);
    let at_sockets = sockets.values().map(Socket::dropped).sum();
    let drops = of_udp(moved, at_sockets, reasons);
    let taken = taken_by_kernel(delivered, reads);
    let Some(asked) = read.asked else { return (delivered - taken, drops, taken) };
    let own = |reads: &Readings| {
        let of = sockets.keys().filter_map(|inode| reads.get(inode));
        of.flat_map(BTreeMap::values).sum()
    };
    let drops = of_asked(&drops, at_sockets, !sockets.is_empty(), asked.port, reasons);
    (reads.map_or(delivered, own), drops, taken)
}

/// What is missing where only some sockets were asked for and nobody counted what was read from them.
const OTHERS: &str = "how much of what was delivered went to the sockets asked for: shares are of all that UDP received";

/// Places of loss that could not be read.
fn unread(read: &Read<'_>, carried: &devices::Carried) -> Vec<String> {
    let root = Root::host();
    let sources = ["snmp", "snmp6", "netstat", "softnet"];
    let missing = sources.iter().filter_map(|source| {
        // A kernel without IPv6 has nothing to lose there.
        let none = *source == "snmp6" && !root.exists("/proc/net/if_inet6");
        let why = read.moved.gaps.get(*source).filter(|_| !none)?;
        Some(format!("what /proc/net/{source} counts: {why}"))
    });
    let refused = carried.refused().filter(|_| read.reasons.is_none());
    let others = read.asked.filter(|_| read.reads.is_none()).map(|_| OTHERS.to_owned());
    let missing = missing.chain(others);
    let all = missing.chain(read.unseen.iter().cloned());
    all.chain(refused).chain(places::waiting_fragments(read.moved)).collect()
}

/// Places of loss that no counter here has, as far as the devices at both ends tell; `nameless` as in [`Unseen::between`].
pub(crate) fn unseen(
    known: &mut Unseen,
    around: [&Around; 2],
    nameless: Option<&BTreeSet<String>>,
) -> Vec<String> {
    match around.map(|around| around.links.as_ref()) {
        [Ok(before), Ok(now)] => known.between(before, now, nameless),
        [Err(why), _] | [_, Err(why)] => {
            vec![format!("what the rings of devices and hooks in front of IP drop: {why}")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_record::ledger::{Drop, Place};
    use std::net::UdpSocket;
    use std::sync::atomic::Ordering;

    /// Counters are the namespace's: other tests may add to them, and never take away.
    #[test]
    fn a_socket_that_nobody_reads_shows_its_drops_and_its_owner() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let seen_stop = std::sync::Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let watching = std::thread::spawn(move || {
            let ask = LiveRequest {
                length: Duration::from_secs(60),
                port: Some(to.port()),
                probes: false,
                only: None,
                udp_pause: 0,
            };
            watch(&ask, &seen_stop, || tell.send(()).unwrap()).unwrap()
        });
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut diag = Netlink::sock_diag().unwrap();
        let mut drops = || {
            let sockets = diag.udp_sockets(Some(to.port())).unwrap();
            sockets.iter().filter_map(|s| s.memory).map(|memory| memory.drops).max().unwrap_or(0)
        };
        // What it lost before is not what is added.
        told.recv().unwrap();
        let deadline = monotonic_ns() + 60_000_000_000;
        while drops() < 200_000 && monotonic_ns() < deadline {
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
