//! Programs that wait for packets, and the CPUs that their threads may run on.
//!
//! Owners of UDP sockets and of listening TCP sockets of this namespace. Descriptors of other users' programs are shown
//! to root alone: without it only one's own programs are readers here, and the sockets of the others are counted.

use std::collections::BTreeSet;

use rxpath_core::{CpuList, Fact};
use rxpath_host::Root;
use rxpath_host::read::procfs::{listeners, socket_owner, task, udp};

use super::HostFacts;

/// Threads of one program that are looked at: more are pools of the same kind.
const MOST_THREADS: usize = 256;

/// A thread of a program that reads packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketReader {
    /// The program's process id.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// CPUs that some of its threads may run on.
    pub allowed_cpus: CpuList,
}

/// The visible readers, and the hidden ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readers {
    /// By program and by the CPUs of their threads; one entry for threads with the same CPUs.
    pub seen: Vec<PacketReader>,
    /// Receiving sockets whose programs were not shown; 0 when every process showed what it holds.
    pub hidden_sockets: usize,
    /// Whether nothing that this process could be given would show them.
    pub is_hidden_from_all: bool,
}

impl HostFacts {
    /// Who reads packets.
    ///
    /// **Cost** a link for each descriptor that may be read, about 2 us each, the first time.
    pub fn readers(&self) -> Fact<Readers> {
        self.readers.get_or_init(|| self.find_readers()).clone()
    }

    fn find_readers(&self) -> Fact<Readers> {
        let inodes = match inodes(&self.root) {
            Ok(inodes) => inodes,
            Err(gap) => return gap,
        };
        let own = std::process::id().cast_signed();
        let owners = match &self.scope.processes {
            Some(processes) => {
                socket_owner::seen_in(&self.root, &inodes, processes.iter().copied())
            }
            None => socket_owner::seen(&self.root, &inodes),
        };
        // The kernel's own sockets have no process either: hidden are some only where processes are.
        let unowned = inodes.len().saturating_sub(owners.by_inode.len());
        let hidden_sockets = if owners.hidden_processes == 0 { 0 } else { unowned };
        let pids: BTreeSet<i32> = owners
            .by_inode
            .into_values()
            .flatten()
            .filter(|pid| !self.root.is_live() || *pid != own)
            .collect();
        if pids.is_empty() && hidden_sockets == 0 {
            return Fact::absent("no program with a receiving socket is visible from here");
        }
        let seen = pids.into_iter().flat_map(|pid| of(&self.root, pid)).collect();
        let is_hidden_from_all = self.root.is_live() && socket_owner::may_see_all();
        Fact::ok(Readers { seen, hidden_sockets, is_hidden_from_all })
    }

    /// CPUs that the first process may run on: those of the host, or of the container.
    pub(crate) fn readers_baseline(&self) -> Option<CpuList> {
        allowed(&self.root.text("/proc/1/status").ok()?)
    }
}

/// Sockets that receive; a gap when no table can be read.
fn inodes(root: &Root) -> Result<BTreeSet<u32>, Fact<Readers>> {
    let mut inodes = BTreeSet::new();
    let mut gap = None;
    for path in [udp::UDP, udp::UDP6] {
        match root.parsed(path, udp::parse) {
            Ok(sockets) => inodes.extend(sockets.iter().map(|it| it.inode)),
            Err(error) => gap = Some(error),
        }
    }
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match root.text(path) {
            Ok(table) => inodes.extend(listeners::inodes(&table)),
            Err(error) => gap = Some(error),
        }
    }
    match gap {
        Some(error) if inodes.is_empty() => Err(error.into_gap()),
        _ => Ok(inodes),
    }
}

/// The program's threads, one entry for each set of CPUs.
fn of(root: &Root, pid: i32) -> Vec<PacketReader> {
    let comm = root.value(&format!("/proc/{pid}/comm")).unwrap_or_default();
    // A program that ended since has no threads.
    let threads = task::threads(root, pid).unwrap_or_default();
    let mut kinds: BTreeSet<Vec<u32>> = BTreeSet::new();
    for tid in threads.into_iter().take(MOST_THREADS) {
        let status = root.text(&format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
        kinds.extend(allowed(&status).map(|cpus| cpus.0));
    }
    let reader = |cpus| PacketReader { pid, comm: comm.clone(), allowed_cpus: CpuList(cpus) };
    kinds.into_iter().map(reader).collect()
}

/// The line `Cpus_allowed_list` (fs/proc/array.c `task_cpus_allowed`).
fn allowed(status: &str) -> Option<CpuList> {
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()
}
