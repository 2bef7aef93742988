//! How much waits in sockets, over time: BPF iterators over the UDP and TCP sockets of one network namespace.
//!
//! A thread in that namespace runs each every [`INTERVAL`], and more seldom where a look takes long: both together use at
//! most a twentieth of a CPU. Of TCP a look takes milliseconds however few sockets there are, because its table is the
//! whole machine's. The thread has the lowest weight that a thread can have: where no CPU has time left it looks more
//! seldom, and takes a seventieth of a CPU. What is between two looks is not seen.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rxpath_host::root::Root;
use rxpath_host::{HostError, netns, thread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::clock::monotonic_ns;
use crate::bytes::Fields;
use crate::cost::own_cpu;
use crate::filter::Filter;
use crate::names::socket_owners;
use crate::object::{
    self, LOST, Loaded, ObjectSpec, ProgramState, WANTED, map, program, read_iterator,
};
use crate::probe::Probe;

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    name: "queues",
    #[cfg(feature = "bpf")]
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/queues.bpf.o")),
    #[cfg(not(feature = "bpf"))]
    bytes: &[],
    per_cpu_map: None,
    maps: &[map("queues", 8, 48), LOST, WANTED],
    programs: &[
        // Since 5.9 (5788b3a07fe5, 52d87d5f6418).
        program("udp", "iter/udp", "the receive queues of UDP sockets", false),
        program("tcp", "iter/tcp", "the receive queues of TCP sockets", false),
    ],
};

/// Time between two looks.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// A look is followed by a pause of at least this many times the CPU time that it took.
const PAUSE: u32 = 39;

/// Weight 15 beside the 1,024 of nice 0 (kernel/sched/core.c `sched_prio_to_weight`).
const NICE: i32 = 19;

/// The running probe.
#[derive(Debug)]
pub struct Queues {
    loaded: Loaded,
    looker: Option<JoinHandle<Result<(), HostError>>>,
    shared: Arc<Shared>,
}

/// What the thread that looks and the reader share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    udp: Looks,
    tcp: Looks,
    cpu_ns: AtomicU64,
}

/// Looks at the sockets of one protocol.
#[derive(Debug, Default)]
struct Looks {
    count: AtomicU64,
    /// When the last whole one began, CLOCK_MONOTONIC.
    begun_ns: AtomicU64,
}

impl Looks {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// What waited in one socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketQueue {
    /// `udp` or `tcp`.
    pub protocol: String,
    /// Local port.
    pub port: u16,
    /// Inode, as in `/proc/PID/fd`; 0 when no process had it open.
    pub inode: u64,
    /// Processes that have the socket, as `name (pid)`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub processes: Vec<String>,
    /// Looks at which something waited, of `looks_count`.
    pub waiting_count: u64,
    /// Looks at the sockets of its protocol.
    #[serde(default)]
    pub looks_count: u64,
    /// Memory of the receive queue over all looks, truesize. **Source** `sk_rmem_alloc`.
    pub mean_bytes: f64,
    /// The largest that was seen.
    pub max_bytes: u64,
    /// At the last look; 0 when it was not there any more.
    pub now_bytes: u64,
    /// Limit of it (`sk_rcvbuf`), when the most waited.
    pub limit_bytes: u64,
}

/// All sockets in which something waited, and how often was looked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waited {
    /// Those that came nearest to their limit first.
    pub sockets: Vec<SocketQueue>,
    /// Looks at UDP's sockets.
    pub looks_count: u64,
    /// Looks at TCP's.
    pub tcp_looks_count: u64,
    /// CPU time of looking.
    pub cpu: Duration,
}

impl Probe for Queues {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    fn lost(&self) -> u64 {
        object::lost(&self.loaded)
    }
}

impl Queues {
    /// Loads, attaches, and begins to look.
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
            return Err(HostError::Unsupported {
                what: "read the queues of sockets".into(),
                needs: gap.unwrap_or_else(|| "a kernel with iter/udp".into()),
            });
        }
        let shared = Arc::new(Shared::default());
        let (told, place) = (Arc::clone(&shared), namespace_of(filter));
        let looker = std::thread::Builder::new()
            .name("rxpath-queues".into())
            .spawn(move || look(&links, place, &told))
            .map_err(|e| HostError::kernel("start a thread", e.raw_os_error().unwrap_or(0)))?;
        Ok(Self { loaded, looker: Some(looker), shared })
    }

    /// What became of each program.
    pub fn programs(&self) -> &[ProgramState] {
        self.loaded.programs()
    }

    /// What waited since the start.
    ///
    /// **Errors** what ended the looking early. **Cost** the descriptors of all processes, when there are sockets.
    pub fn read(&mut self) -> Result<Waited, HostError> {
        if self.looker.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(ended)) = self.looker.take().map(JoinHandle::join)
        {
            ended?;
        }
        // Before the rows: a look that ends meanwhile must not make a row look old.
        let begun = Begun {
            udp_ns: self.shared.udp.begun_ns.load(Ordering::Relaxed),
            tcp_ns: self.shared.tcp.begun_ns.load(Ordering::Relaxed),
        };
        let entries = self.loaded.entries("queues")?;
        let mut sockets: Vec<SocketQueue> =
            entries.iter().map(|(_, value)| row(value, &self.shared, &begun)).collect();
        let inodes: Vec<u64> = sockets.iter().map(|socket| socket.inode).collect();
        if !inodes.is_empty() {
            let mut owners = socket_owners(&Root::host(), &inodes);
            for socket in &mut sockets {
                socket.processes = owners.remove(&socket.inode).unwrap_or_default();
            }
        }
        let full =
            |socket: &SocketQueue| socket.max_bytes as f64 / socket.limit_bytes.max(1) as f64;
        sockets.sort_by(|a, b| full(b).total_cmp(&full(a)).then(a.port.cmp(&b.port)));
        Ok(Waited {
            sockets,
            looks_count: self.shared.udp.count(),
            tcp_looks_count: self.shared.tcp.count(),
            cpu: Duration::from_nanos(self.shared.cpu_ns.load(Ordering::Relaxed)),
        })
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(looker) = self.looker.take() {
            looker.thread().unpark();
            let _ = looker.join();
        }
    }
}

/// The namespace to look into: that which was named, that of the process, or this one.
fn namespace_of(filter: &Filter) -> Option<PathBuf> {
    let process = || filter.process.map(|pid| format!("/proc/{pid}/ns/net").into());
    filter.netns_path.clone().or_else(process)
}

fn look(
    links: &[(&str, OwnedFd)],
    place: Option<PathBuf>,
    shared: &Shared,
) -> Result<(), HostError> {
    if let Some(place) = place {
        netns::enter(&place)?;
    }
    // To go without it costs others some time, and no result.
    let _ = thread::set_nice(0, NICE);
    let mut due: Vec<Instant> = links.iter().map(|_| Instant::now()).collect();
    while !shared.stop.load(Ordering::Relaxed) {
        for ((name, link), due) in links.iter().zip(&mut due) {
            if Instant::now() < *due {
                continue;
            }
            let (begun_ns, cpu) = (monotonic_ns(), own_cpu());
            // They write nothing; what they see goes into the map.
            read_iterator(link.as_fd())?;
            let looks = if *name == "tcp" { &shared.tcp } else { &shared.udp };
            looks.begun_ns.store(begun_ns, Ordering::Relaxed);
            looks.count.fetch_add(1, Ordering::Relaxed);
            *due = Instant::now() + INTERVAL.max(own_cpu().saturating_sub(cpu) * PAUSE);
        }
        shared.cpu_ns.store(own_cpu().as_nanos() as u64, Ordering::Relaxed);
        let next = due.iter().min().map_or(INTERVAL, |due| due.duration_since(Instant::now()));
        // Until the next look, or until it is told to stop.
        std::thread::park_timeout(next);
    }
    Ok(())
}

/// When the last look at each protocol's sockets began.
struct Begun {
    udp_ns: u64,
    tcp_ns: u64,
}

/// `struct queue_row`.
fn row(value: &[u8], shared: &Shared, begun: &Begun) -> SocketQueue {
    let mut f = Fields::of(value);
    let [inode, seen_ns, waiting_count, sum] = f.array::<4>();
    let (now, most, limit) = (f.u32(), f.u32(), f.u32());
    let (protocol, port) = (f.u16(), f.u16());
    let (protocol, looks, begun_ns) = match protocol {
        6 => ("tcp", &shared.tcp, begun.tcp_ns),
        _ => ("udp", &shared.udp, begun.udp_ns),
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
        let queue = row(&value, &shared, &Begun { udp_ns: 900, tcp_ns: 950 });
        assert_eq!((queue.protocol.as_str(), queue.port, queue.inode), ("udp", 4321, 77));
        assert_eq!((queue.now_bytes, queue.max_bytes, queue.limit_bytes), (30, 400, 212_992));
        assert!((queue.mean_bytes - 100.0).abs() < 1e-9);
        assert_eq!((queue.waiting_count, queue.looks_count), (5, 10));
        let later = Begun { udp_ns: 901, tcp_ns: 0 };
        assert_eq!(row(&value, &shared, &later).now_bytes, 0, "the last look did not find it");
    }
}
