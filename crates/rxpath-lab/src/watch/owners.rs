//! Which processes hold the sockets, learnt when new sockets show up: asking costs a link for each descriptor of the
//! machine.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_host::Root;
use rxpath_host::procfs::{socket_owner, task};

use super::sockets::Looks;
use crate::live::OWNERS;

/// Sockets whose owners were not found are asked about again after so many windows.
const AGAIN: u32 = 10;

#[derive(Debug, Default)]
pub struct Owners {
    by_inode: BTreeMap<u32, BTreeSet<i32>>,
    names: BTreeMap<i32, String>,
    windows: u32,
}

impl Owners {
    /// Asks for the owners of sockets that are new, and forgets those that are gone.
    pub fn learn(&mut self, root: &Root, looks: &Looks) {
        let wanted: BTreeSet<u32> = looks.inodes().collect();
        self.by_inode.retain(|inode, _| wanted.contains(inode));
        self.windows += 1;
        let again = self.windows.is_multiple_of(AGAIN);
        let unknown = |inode: &u32| match self.by_inode.get(inode) {
            None => true,
            Some(owners) => again && owners.is_empty(),
        };
        let new: BTreeSet<u32> = wanted.iter().copied().filter(unknown).collect();
        if new.is_empty() {
            return;
        }
        let mut found = socket_owner::of(root, &new);
        for inode in new {
            let owners = found.remove(&inode).unwrap_or_default();
            for pid in &owners {
                let name =
                    || task::read(root, *pid, None).map_or_else(|_| "?".into(), |it| it.comm);
                self.names.entry(*pid).or_insert_with(name);
            }
            self.by_inode.insert(inode, owners);
        }
        let held: BTreeSet<i32> = self.by_inode.values().flatten().copied().collect();
        self.names.retain(|pid, _| held.contains(pid));
    }

    pub fn by_inode(&self) -> &BTreeMap<u32, BTreeSet<i32>> {
        &self.by_inode
    }

    /// As `name (pid)`.
    pub fn named(&self, inode: u32) -> Vec<String> {
        let pids = self.by_inode.get(&inode).into_iter().flatten();
        pids.map(|pid| format!("{} ({pid})", self.names.get(pid).map_or("?", String::as_str)))
            .collect()
    }

    /// Processes whose threads are measured.
    pub fn pids(&self) -> Vec<i32> {
        let pids: BTreeSet<i32> = self.by_inode.values().flatten().copied().collect();
        pids.into_iter().take(OWNERS).collect()
    }
}
