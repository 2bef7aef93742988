//! Which thread reads which UDP socket, and how many datagrams.
//!
//! A process has many threads and `/proc` does not show which of them read: `sock:sock_recv_length` (Linux 6.3,
//! 6e6eda44b939) fires in the thread that does. A read that returns a datagram counts. A peek (MSG_PEEK) and a read of
//! the socket's error queue do not.

use rxpath_host::{HostError, Root};

use crate::bytes::Fields;
use crate::can::require_host_pids;
use crate::cost::COSTS;
use crate::object::{LOST, Loaded, ObjectSpec, clear, compiled, forget_lost, map, program};
use crate::probe::Probe;

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    maps: &[map("reads", 16, 8), LOST, COSTS],
    programs: &[program("sock/sock_recv_length", "which thread reads a socket", true)],
    ..compiled!("reads")
};

/// Readers that there is room for unless told otherwise: a resolver reads thousands of sockets a second once each.
const ROOM: u32 = 131_072;

/// The running probe.
#[derive(Debug)]
pub struct Reads {
    loaded: Loaded,
}

/// What one thread read from one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadBy {
    /// The socket: its inode, as in `/proc/PID/fd`.
    pub inode: u64,
    /// The thread.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Datagrams since the start.
    pub datagrams: u64,
}

impl Probe for Reads {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }
}

impl Reads {
    /// Watches the UDP sockets of the network namespace with this inode.
    ///
    /// **Errors** `Denied` without CAP_BPF and CAP_PERFMON, `Unsupported` where the tracepoint is missing, and in a pid
    /// namespace of its own, where threads have other numbers than the kernel tells. **Cost** some 100 ns for each
    /// datagram that is read.
    pub fn start(netns: u32) -> Result<Self, HostError> {
        let mut reads = Self::load(netns, ROOM)?;
        reads.attach()?;
        Ok(reads)
    }

    /// Loads without attaching, with room for so many readers: each thread counts once for each socket that it reads. A reader takes
    /// 72 bytes of kernel memory from its first read until the program is detached (`htab_map_mem_usage`,
    /// kernel/bpf/hashtab.c, 6.18).
    ///
    /// **Errors** as those of [`Reads::start`].
    pub fn load(netns: u32, room: u32) -> Result<Self, HostError> {
        let (host, what) = (Root::host(), "watch who reads sockets");
        crate::can_run(&host).require(what)?;
        require_host_pids(&host, what)?;
        let constants = [netns, 0].map(u32::to_ne_bytes).concat();
        Ok(Self { loaded: Loaded::load(&SPEC, &constants, &[("reads", room)])? })
    }

    /// Puts the program into its place, also again: what it counted and lost before is forgotten.
    ///
    /// **Errors** when it is refused.
    pub fn attach(&mut self) -> Result<(), HostError> {
        clear(&self.loaded, "reads")?;
        forget_lost(&self.loaded)?;
        self.loaded.attach()
    }

    /// Takes the program from its place, and frees the memory of what it counted. It stays loaded.
    pub fn detach(&mut self) {
        self.loaded.detach_some(&["sock_recv_length"]);
        // What stays is removed before the program counts again.
        let _ = clear(&self.loaded, "reads");
    }

    /// Everything since the start.
    pub fn read(&self) -> Result<Vec<ReadBy>, HostError> {
        let entries = self.loaded.entries("reads")?;
        let mut all: Vec<ReadBy> = entries.iter().map(|(key, value)| row(key, value)).collect();
        all.sort_unstable();
        Ok(all)
    }
}

/// `struct read_key` and the count.
fn row(key: &[u8], value: &[u8]) -> ReadBy {
    let mut k = Fields::of(key);
    let (inode, tid, pid) = (k.u64(), k.u32(), k.u32());
    let datagrams = Fields::of(value).u64();
    ReadBy { inode, tid: tid.cast_signed(), pid: pid.cast_signed(), datagrams }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_read_by_place() {
        let mut key = 77u64.to_ne_bytes().to_vec();
        key.extend([12u32, 10].iter().flat_map(|n| n.to_ne_bytes()));
        let read = row(&key, &9u64.to_ne_bytes());
        assert_eq!(read, ReadBy { inode: 77, tid: 12, pid: 10, datagrams: 9 });
    }
}
