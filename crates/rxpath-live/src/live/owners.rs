//! Who has the sockets open, and who waits for them.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_host::Root;
use rxpath_host::read::procfs::task;
use rxpath_record::evidence::SocketOwner;

/// Processes by the inode of each socket that they have open.
pub(crate) type Owners = BTreeMap<u32, BTreeSet<i32>>;

/// Threads that wait for a socket, by its inode: none of a socket for which nobody waits, no entry where that is not known.
pub(crate) type Waiters = BTreeMap<u32, BTreeSet<i32>>;

/// Processes that are named of many sockets, at most.
const NAMED: usize = 4;

/// Who has a socket open, with names.
pub(super) fn owners_of(inode: u32, owners: &Owners) -> Vec<SocketOwner> {
    named(owners.get(&inode).into_iter().flatten().copied())
}

/// Who has any of these sockets open, with names: the first few.
pub(super) fn owners_of_all(inodes: &BTreeSet<u32>, owners: &Owners) -> Vec<SocketOwner> {
    let pids: BTreeSet<i32> =
        inodes.iter().filter_map(|inode| owners.get(inode)).flatten().copied().collect();
    named(pids.into_iter().take(NAMED))
}

fn named(pids: impl Iterator<Item = i32>) -> Vec<SocketOwner> {
    let root = Root::host();
    let name = |pid: i32| task::read(&root, pid, None).map_or_else(|_| "?".into(), |it| it.comm);
    pids.map(|pid| SocketOwner { pid, name: name(pid) }).collect()
}
