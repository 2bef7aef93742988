//! How much data is queued in sockets, over time: BPF iterators over the UDP and TCP sockets of one network namespace.
//!
//! A thread in that namespace runs each iterator every [`INTERVAL`], and less often where a scan takes long: both
//! together use at most 1/20 of a CPU. A TCP scan takes milliseconds even with few sockets, because the TCP table
//! covers the whole machine. The thread has the lowest possible weight: where no CPU is idle it scans less often, and
//! takes 1/70 of a CPU. Queues between two scans are not seen.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rxpath_core::SortFew;
use rxpath_host::lab::netns;
use rxpath_host::write::sched;
use rxpath_host::{HostError, Root};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::clock::monotonic_ns;
use crate::bytes::Fields;
use crate::cost::own_cpu;
use crate::filter::Filter;
use crate::names::socket_owners;
use crate::object::{LOST, Loaded, ObjectSpec, WANTED, compiled, map, program, read_iterator};
use crate::probe::Probe;

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    maps: &[map("queues", 8, 48), LOST, WANTED],
    programs: &[
        // Since 5.9 (5788b3a07fe5, 52d87d5f6418).
        program("iter/udp", "the receive queues of UDP sockets", false),
        program("iter/tcp", "the receive queues of TCP sockets", false),
    ],
    ..compiled!("queues")
};

/// Time between two scans.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// A scan is followed by a pause of at least this many times its CPU time.
const PAUSE: u32 = 39;

/// Weight 15, compared with 1,024 of nice 0 (kernel/sched/core.c `sched_prio_to_weight`).
const NICE: i32 = 19;

/// The running probe.
#[derive(Debug)]
pub struct SocketQueues {
    loaded: Loaded,
    looker: Option<JoinHandle<Result<(), HostError>>>,
    shared: Arc<Shared>,
}

/// State that the scanning thread and the reader share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    udp: Looks,
    tcp: Looks,
    cpu_ns: AtomicU64,
}

/// Scans of the sockets of one protocol.
#[derive(Debug, Default)]
struct Looks {
    count: AtomicU64,
    /// When the last complete scan began, CLOCK_MONOTONIC.
    begun_ns: AtomicU64,
}

impl Looks {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// The receive queue of one socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketQueue {
    /// `udp` or `tcp`.
    pub protocol: String,
    /// Local port.
    pub port: u16,
    /// Inode, as in `/proc/PID/fd`; 0 when no process had it open.
    pub inode: u64,
    /// Processes that hold the socket, as `name (pid)`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub processes: Vec<String>,
    /// Scans that found queued data, of `looks_count`.
    pub waiting_count: u64,
    /// Scans of the sockets of its protocol.
    #[serde(default)]
    pub looks_count: u64,
    /// Mean memory of the receive queue over all scans, truesize. **Source** `sk_rmem_alloc`.
    pub mean_bytes: f64,
    /// The largest value seen.
    pub max_bytes: u64,
    /// At the last scan; 0 when the socket no longer existed.
    pub now_bytes: u64,
    /// Its limit (`sk_rcvbuf`), at the largest value.
    pub limit_bytes: u64,
}

/// All sockets with queued data, and the number of scans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waited {
    /// Sockets, the one closest to its limit first.
    pub sockets: Vec<SocketQueue>,
    /// Scans of UDP sockets.
    pub looks_count: u64,
    /// Scans of TCP sockets.
    pub tcp_looks_count: u64,
    /// CPU time of the scans.
    pub cpu: Duration,
}

impl Probe for SocketQueues {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }
}

impl SocketQueues {
    /// Loads, attaches, and starts scanning.
    ///
    /// **Errors** when neither iterator loads, or the namespace can't be entered.
    pub fn start(filter: &Filter) -> Result<Self, HostError> {
        crate::can_run(&Root::host()).require("read the queues of sockets")?;
        let mut constants = u32::from(filter.port).to_ne_bytes().to_vec();
        constants.extend(0u32.to_ne_bytes());
        constants.extend(filter.owner());
        let mut loaded = Loaded::load(&SPEC, &constants, &[])?;
        filter.admit(&loaded)?;
        loaded.attach()?;
        let links = loaded.links()?;
        if links.is_empty() {
            let gap = loaded.programs().iter().find_map(|program| program.id.gap());
            let needs = gap.unwrap_or_else(|| "a kernel with iter/udp".into());
            return Err(HostError::unsupported("read the queues of sockets", needs));
        }
        let shared = Arc::new(Shared::default());
        // The named one, the process's, or this one.
        let of_process = || filter.process.map(|pid| format!("/proc/{pid}/ns/net").into());
        let place = filter.netns_path.clone().or_else(of_process);
        let told = Arc::clone(&shared);
        let looker = std::thread::Builder::new()
            .name("rxpath-queues".into())
            .spawn(move || look(&links, place, &told))
            .map_err(|e| HostError::os("start a thread", &e))?;
        Ok(Self { loaded, looker: Some(looker), shared })
    }

    /// Queued data since the start.
    ///
    /// **Errors** what ended the scans early. **Cost** reads the descriptors of all processes, when there are sockets.
    pub fn read(&mut self) -> Result<Waited, HostError> {
        if self.looker.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(ended)) = self.looker.take().map(JoinHandle::join)
        {
            ended?;
        }
        // Before the rows: a scan that ends meanwhile must not make a row appear old.
        let begun_ns = [&self.shared.udp, &self.shared.tcp]
            .map(|looks| looks.begun_ns.load(Ordering::Relaxed));
        let entries = self.loaded.entries("queues")?;
        let mut sockets: Vec<SocketQueue> =
            entries.iter().map(|(_, value)| row(value, &self.shared, begun_ns)).collect();
        let inodes: Vec<u64> = sockets.iter().map(|socket| socket.inode).collect();
        if !inodes.is_empty() {
            let mut owners = socket_owners(&Root::host(), &inodes);
            for socket in &mut sockets {
                socket.processes = owners.remove(&socket.inode).unwrap_or_default();
            }
        }
        let full =
            |socket: &SocketQueue| socket.max_bytes as f64 / socket.limit_bytes.max(1) as f64;
        sockets.sort_few_by(|a, b| full(b).total_cmp(&full(a)).then(a.port.cmp(&b.port)));
        let (udp, tcp) = (self.shared.udp.count(), self.shared.tcp.count());
        let cpu = Duration::from_nanos(self.shared.cpu_ns.load(Ordering::Relaxed));
        Ok(Waited { sockets, looks_count: udp, tcp_looks_count: tcp, cpu })
    }
}

impl Drop for SocketQueues {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(looker) = self.looker.take() {
            looker.thread().unpark();
            let _ = looker.join();
        }
    }
}

fn look(
    links: &[(&str, OwnedFd)],
    place: Option<PathBuf>,
    shared: &Shared,
) -> Result<(), HostError> {
    if let Some(place) = place {
        netns::enter(&place)?;
    }
    // Without it the scans cost other tasks some time; the result is the same.
    let _ = sched::set_nice(0, NICE);
    let mut due: Vec<Instant> = links.iter().map(|_| Instant::now()).collect();
    while !shared.stop.load(Ordering::Relaxed) {
        for ((name, link), due) in links.iter().zip(&mut due) {
            if Instant::now() < *due {
                continue;
            }
            let (begun_ns, cpu) = (monotonic_ns(), own_cpu());
            // The iterators write no output; their data goes into the map.
            read_iterator(link.as_fd())?;
            let looks = if *name == "tcp" { &shared.tcp } else { &shared.udp };
            looks.begun_ns.store(begun_ns, Ordering::Relaxed);
            looks.count.fetch_add(1, Ordering::Relaxed);
            *due = Instant::now() + INTERVAL.max(own_cpu().saturating_sub(cpu) * PAUSE);
        }
        shared.cpu_ns.store(own_cpu().as_nanos() as u64, Ordering::Relaxed);
        let next = due.iter().min().map_or(INTERVAL, |due| due.duration_since(Instant::now()));
        // Until the next scan, or until a stop request.
        std::thread::park_timeout(next);
    }
    Ok(())
}

/// `struct queue_row`; with it, when the last scans of UDP and TCP sockets began.
fn row(value: &[u8], shared: &Shared, [udp_ns, tcp_ns]: [u64; 2]) -> SocketQueue {
    let mut f = Fields::of(value);
    let [inode, seen_ns, waiting_count, sum] = f.array::<4>();
    let (now, most, limit) = (f.u32(), f.u32(), f.u32());
    let (protocol, port) = (f.u16(), f.u16());
    let (protocol, looks, begun_ns) = match protocol {
        6 => ("tcp", &shared.tcp, tcp_ns),
        _ => ("udp", &shared.udp, udp_ns),
    };
    let is_there = seen_ns >= begun_ns;
    SocketQueue {
        protocol: protocol.into(),
        port,
        inode,
        processes: Vec::new(),
        waiting_count,
        looks_count: looks.count(),
        mean_bytes: sum as f64 / looks.count().max(1) as f64,
        max_bytes: most.into(),
        now_bytes: if is_there { now.into() } else { 0 },
        limit_bytes: limit.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_read_by_place_and_empty_once_its_socket_is_gone() {
        let mut value: Vec<u8> =
            [77u64, 900, 5, 1000].iter().flat_map(|n| n.to_ne_bytes()).collect();
        value.extend([30u32, 400, 212_992].iter().flat_map(|n| n.to_ne_bytes()));
        value.extend([17u16, 4321].iter().flat_map(|n| n.to_ne_bytes()));
        let shared = Shared::default();
        shared.udp.count.store(10, Ordering::Relaxed);
        let queue = row(&value, &shared, [900, 950]);
        assert_eq!((queue.protocol.as_str(), queue.port, queue.inode), ("udp", 4321, 77));
        assert_eq!((queue.now_bytes, queue.max_bytes, queue.limit_bytes), (30, 400, 212_992));
        assert!((queue.mean_bytes - 100.0).abs() < 1e-9);
        assert_eq!((queue.waiting_count, queue.looks_count), (5, 10));
        let later = row(&value, &shared, [901, 0]);
        assert_eq!(later.now_bytes, 0, "the last look did not find it");
    }
}
