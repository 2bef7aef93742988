//! Which processes hold a socket open: `/proc/PID/fd/*` are links to `socket:[INODE]` (fs/proc/fd.c, net/socket.c
//! `sockfs_dname`).
//!
//! A socket diagnosis names inodes and no processes. Descriptors of others can be read by their user and by root alone:
//! what cannot be read is no owner here, and is counted. Some processes show them to nobody, as those of a user namespace
//! above this one (kernel/ptrace.c `__ptrace_may_access`).

use std::collections::{BTreeMap, BTreeSet};

use caps::Capability;

use super::task;
use crate::caps::has;
use crate::{HostError, Root};

/// What shows the descriptors of other users' processes: the first lists them (the directory is its owner's), the second
/// follows the links (fs/proc/base.c `proc_fd_access_allowed`).
pub const NEEDED: &str = "CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE";

/// Whether this process has what is [`NEEDED`].
pub fn may_see_all() -> bool {
    let lists = has(Capability::CAP_DAC_READ_SEARCH) || has(Capability::CAP_DAC_OVERRIDE);
    lists && has(Capability::CAP_SYS_PTRACE)
}

/// Who holds sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOwners {
    /// Processes by the inode of each socket that they hold, in order.
    pub by_inode: BTreeMap<u32, BTreeSet<i32>>,
    /// Processes whose descriptors were not shown ([`NEEDED`]).
    pub hidden_processes: usize,
}

/// Processes by the inode of each socket of `inodes` that they hold, in order.
///
/// **Cost** a link for each descriptor of the machine that may be read: some 2 us each.
pub fn of(root: &Root, inodes: &BTreeSet<u32>) -> BTreeMap<u32, BTreeSet<i32>> {
    seen(root, inodes).by_inode
}

/// As [`of`], with how many processes did not show what they hold.
pub fn seen(root: &Root, inodes: &BTreeSet<u32>) -> SocketOwners {
    seen_in(root, inodes, task::processes(root).unwrap_or_default())
}

/// The same of these processes alone.
pub fn seen_in(
    root: &Root,
    inodes: &BTreeSet<u32>,
    pids: impl IntoIterator<Item = i32>,
) -> SocketOwners {
    let mut owners = SocketOwners::default();
    for pid in pids {
        match held(root, pid) {
            Ok(held) => {
                for inode in held.into_iter().filter(|inode| inodes.contains(inode)) {
                    owners.by_inode.entry(inode).or_default().insert(pid);
                }
            }
            Err(HostError::Denied { .. }) => owners.hidden_processes += 1,
            // Ended since.
            Err(_) => {}
        }
    }
    owners
}

/// Inodes of the sockets that a process has open now.
///
/// **Errors** `Missing` when the process is gone, `Denied` when it does not show what it holds ([`NEEDED`]).
/// **Cost** a link for each of its descriptors: some 2 us each.
pub fn held(root: &Root, pid: i32) -> Result<Vec<u32>, HostError> {
    let dir = format!("/proc/{pid}/fd");
    let mut inodes = Vec::new();
    for fd in root.list(&dir)? {
        match root.link(&format!("{dir}/{fd}")) {
            Ok(target) => inodes.extend(inode(&target.to_string_lossy())),
            Err(error @ HostError::Denied { .. }) => return Err(error),
            // Closed since.
            Err(_) => {}
        }
    }
    Ok(inodes)
}

/// Inode in the target of a descriptor's link, when it is a socket.
pub(super) fn inode(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, Instant};

    #[test]
    fn a_socket_of_this_process_is_ours() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket));
        let inode = std::fs::metadata(path).unwrap().ino() as u32;
        let wanted: BTreeMap<_, BTreeSet<_>> = [(inode, [std::process::id() as i32].into())].into();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let owners = of(&Root::host(), &[inode, u32::MAX].into());
            if owners == wanted {
                break;
            }
            // A child that another test starts has all open files until it becomes its program.
            assert!(Instant::now() < deadline, "{owners:?}");
        }
        assert!(held(&Root::host(), std::process::id() as i32).unwrap().contains(&inode));
        assert!(matches!(held(&Root::host(), -1), Err(HostError::Missing { .. })));
    }

    #[test]
    fn a_process_that_does_not_show_what_it_holds_is_counted() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let tree = tempfile::tempdir().unwrap();
        let fd = |pid: u32| tree.path().join(format!("proc/{pid}/fd"));
        for pid in [7, 8] {
            std::fs::create_dir_all(fd(pid)).unwrap();
            symlink("socket:[12]", fd(pid).join("3")).unwrap();
        }
        let hide = |mode| std::fs::set_permissions(fd(8), PermissionsExt::from_mode(mode)).unwrap();
        hide(0);
        let root = Root::tree(tree.path()).unwrap();
        // Of this thread alone: root may read everything with them.
        let asked = std::thread::spawn(move || {
            for all in [caps::Capability::CAP_DAC_OVERRIDE, caps::Capability::CAP_DAC_READ_SEARCH] {
                caps::drop(None, caps::CapSet::Effective, all).unwrap();
            }
            seen(&root, &[12].into())
        });
        let owners = asked.join().unwrap();
        hide(0o700);
        assert_eq!(owners.by_inode, [(12, [7].into())].into());
        assert_eq!(owners.hidden_processes, 1);
    }

    #[test]
    fn other_links_are_no_sockets() {
        for target in ["pipe:[12]", "socket:[]", "socket:[x]", "/dev/null", "socket:[12"] {
            assert_eq!(inode(target), None, "{target}");
        }
        assert_eq!(inode("socket:[12]"), Some(12));
    }
}
