//! Which processes hold a socket open: `/proc/PID/fd/*` are links to `socket:[INODE]` (fs/proc/fd.c, net/socket.c
//! `sockfs_dname`).
//!
//! A socket diagnosis names inodes and no processes. Descriptors of others can be read by their user and by root alone:
//! what cannot be read is no owner here.

use std::collections::{BTreeMap, BTreeSet};

use super::task;
use crate::Root;

/// Processes by the inode of each socket of `inodes` that they hold, in order.
///
/// **Cost** a link for each descriptor of the machine that may be read: some 2 us each.
pub fn of(root: &Root, inodes: &BTreeSet<u32>) -> BTreeMap<u32, BTreeSet<i32>> {
    let mut owners: BTreeMap<u32, BTreeSet<i32>> = BTreeMap::new();
    for pid in task::processes(root).unwrap_or_default() {
        let dir = format!("/proc/{pid}/fd");
        // Ended since, or somebody else's.
        for fd in root.list(&dir).unwrap_or_default() {
            let Ok(target) = root.link(&format!("{dir}/{fd}")) else { continue };
            if let Some(inode) = inode(&target.to_string_lossy()).filter(|it| inodes.contains(it)) {
                owners.entry(inode).or_default().insert(pid);
            }
        }
    }
    owners
}

fn inode(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_socket_of_this_process_is_ours() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket));
        let inode = std::fs::metadata(path).unwrap().ino() as u32;
        let owners = of(&Root::host(), &[inode, u32::MAX].into());
        assert_eq!(owners, [(inode, [std::process::id() as i32].into())].into());
    }

    #[test]
    fn other_links_are_no_sockets() {
        for target in ["pipe:[12]", "socket:[]", "socket:[x]", "/dev/null", "socket:[12"] {
            assert_eq!(inode(target), None, "{target}");
        }
        assert_eq!(inode("socket:[12]"), Some(12));
    }
}
