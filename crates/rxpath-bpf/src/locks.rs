//! Which threads wait for the locks of a UDP socket's queues: the cost of several threads on one socket.
//!
//! `lock:contention_begin` and `lock:contention_end` (Linux 5.19, 16edd9b511a1) frame the slow path of a spinlock. A
//! lock is an address: it belongs to a socket if it lies inside one of the sockets that were read meanwhile.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_host::{HostError, Root};

use crate::bytes::Fields;
use crate::can::require_host_pids;
use crate::cost::COSTS;
use crate::object::{LOST, Loaded, ObjectSpec, clear, compiled, forget_lost, map, program};
use crate::probe::Probe;

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    maps: &[map("begun", 16, 8), map("waits", 16, 16), map("sockets", 8, 24), LOST, COSTS],
    programs: &[
        // Attached in this order: the end of each wait that was seen to begin is seen.
        program("lock/contention_end", "waits for locks", true),
        program("lock/contention_begin", "waits for locks", true),
        program("sock/sock_recv_length", "which socket a lock belongs to", true),
    ],
    ..compiled!("locks")
};

/// The running probe.
#[derive(Debug)]
pub struct Locks {
    loaded: Loaded,
}

/// Waits for one lock of one socket, by one thread.
///
/// **Caveat** a softirq that waits on top of a thread counts as the thread's wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waits {
    /// Address of the socket: only distinguishes sockets.
    pub socket: u64,
    /// The field that holds the lock.
    pub lock: &'static str,
    /// The socket's local port.
    pub port: u16,
    /// Inode of its network namespace.
    pub netns: u32,
    /// Who waited: thread id in the initial pid namespace; 0 = an idle CPU's softirq.
    pub tid: u32,
    /// Times.
    pub waits: u64,
    /// Sum, in ns.
    pub ns: u64,
}

/// Where the locks of a socket lie in it: `struct socket_row`.
#[derive(Clone, Copy, Debug)]
struct Layout {
    size: u64,
    receive_queue: u64,
    reader_queue: u64,
    queue_size: u64,
    port: u16,
    netns: u32,
}

impl Layout {
    fn read(value: &[u8]) -> Self {
        let mut f = Fields::of(value);
        let mut next = || f.u32();
        Self {
            size: next().into(),
            receive_queue: next().into(),
            reader_queue: next().into(),
            queue_size: next().into(),
            port: next() as u16,
            netns: next(),
        }
    }

    fn lock_at(&self, offset: u64) -> &'static str {
        let within = |from: u64| (from..from + self.queue_size).contains(&offset);
        if within(self.receive_queue) {
            "sk_receive_queue.lock"
        } else if within(self.reader_queue) {
            "reader_queue.lock"
        } else {
            "another lock of the socket"
        }
    }
}

impl Probe for Locks {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }
}

impl Locks {
    /// Loads and attaches.
    ///
    /// **Errors** `Denied` without CAP_BPF and CAP_PERFMON, `Unsupported` where a tracepoint is missing, and in a pid namespace of
    /// its own: nobody there would be known to wait.
    pub fn start() -> Result<Self, HostError> {
        let mut locks = Self::load()?;
        locks.attach()?;
        Ok(locks)
    }

    /// Loads without attaching.
    ///
    /// **Errors** as those of [`Locks::start`].
    pub fn load() -> Result<Self, HostError> {
        let (root, what) = (Root::host(), "watch locks");
        crate::can_run(&root).require(what)?;
        require_host_pids(&root, what)?;
        Ok(Self { loaded: Loaded::load(&SPEC, &[], &[])? })
    }

    /// Puts the programs into their places, also again: what they counted and lost before is forgotten. A wait that they saw begin
    /// then would end now.
    ///
    /// **Errors** when one is refused; then none is in its place.
    pub fn attach(&mut self) -> Result<(), HostError> {
        for map in ["begun", "waits", "sockets"] {
            clear(&self.loaded, map)?;
        }
        forget_lost(&self.loaded)?;
        self.loaded.attach().inspect_err(|_| self.detach())
    }

    /// Takes the programs from their places. They stay loaded.
    pub fn detach(&mut self) {
        let names = ["contention_begin", "contention_end", "sock_recv_length"];
        self.loaded.detach_some(&names);
    }

    /// Waits for locks of UDP sockets since the start. Sockets that were not read in that time are left out.
    pub fn read(&self) -> Result<Vec<Waits>, HostError> {
        let sockets: BTreeMap<u64, Layout> = (self.loaded.entries("sockets")?.iter())
            .map(|(key, value)| (Fields::of(key).u64(), Layout::read(value)))
            .into_map();
        let entries = self.loaded.entries("waits")?;
        let mut all: Vec<Waits> =
            entries.iter().filter_map(|(key, value)| waits(key, value, &sockets)).collect();
        all.sort();
        Ok(all)
    }
}

/// `struct wait_key` and `struct wait_row`; `None` when the lock lies in no known socket.
fn waits(key: &[u8], value: &[u8], sockets: &BTreeMap<u64, Layout>) -> Option<Waits> {
    let mut k = Fields::of(key);
    let (lock, tid) = (k.u64(), k.u32());
    let (socket, layout) = sockets.range(..=lock).next_back()?;
    let offset = lock - socket;
    if offset >= layout.size {
        return None;
    }
    let [waits, ns] = Fields::of(value).array::<2>();
    let (port, netns) = (layout.port, layout.netns);
    Some(Waits { socket: *socket, lock: layout.lock_at(offset), port, netns, tid, waits, ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_lock_belongs_to_the_socket_that_it_lies_in() {
        let base = 0xffff_8880_0000_1000_u64;
        let layout = Layout::read(&words(&[1000, 200, 800, 24, 4321, 7]));
        let sockets = BTreeMap::from([(base, layout)]);
        let value = [3u64.to_ne_bytes(), 900u64.to_ne_bytes()].concat();
        let at = |lock: u64| {
            let key = [lock.to_ne_bytes().to_vec(), words(&[42, 0])].concat();
            waits(&key, &value, &sockets)
        };
        let found = at(base + 216).unwrap();
        assert_eq!((found.lock, found.port, found.netns), ("sk_receive_queue.lock", 4321, 7));
        assert_eq!((found.tid, found.waits, found.ns), (42, 3, 900));
        assert_eq!(at(base + 816).unwrap().lock, "reader_queue.lock");
        assert_eq!(at(base + 824).unwrap().lock, "another lock of the socket");
        assert_eq!(at(base + 1000), None);
        assert_eq!(at(base - 1), None);
    }
}
