//! Whose sockets are looked at: those of one process or control group, where one was named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Root;
use crate::read::procfs::socket_owner;

/// Whose sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// One process's.
    Process(i32),
    /// Those of the processes of a control group and of those below it: its directory.
    Cgroup(PathBuf),
}

impl Only {
    /// Its processes now.
    pub fn processes(&self) -> BTreeSet<i32> {
        match self {
            Self::Process(pid) => BTreeSet::from([*pid]),
            Self::Cgroup(path) => {
                let mut all = BTreeSet::new();
                members(path, &mut all);
                all
            }
        }
    }

    /// Inodes of the sockets that they have open now, as far as they are shown.
    ///
    /// **Cost** a link for each descriptor of these processes: some 2 us each.
    pub fn inodes(&self) -> BTreeSet<u32> {
        let held = |pid| socket_owner::held(&Root::host(), pid).unwrap_or_default();
        self.processes().into_iter().flat_map(held).collect()
    }
}

fn members(path: &Path, all: &mut BTreeSet<i32>) {
    let procs = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    all.extend(procs.lines().filter_map(|line| line.parse::<i32>().ok()));
    let below = std::fs::read_dir(path).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        members(&entry.path(), all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_process_has_the_sockets_that_it_opened() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let own = std::fs::metadata(path).unwrap().ino() as u32;
        assert!(Only::Process(std::process::id() as i32).inodes().contains(&own));
        assert!(!Only::Process(1).inodes().contains(&own));
    }

    #[test]
    fn a_control_group_has_the_processes_of_those_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("below");
        std::fs::create_dir(&below).unwrap();
        std::fs::write(dir.path().join("cgroup.procs"), "7\n8\n").unwrap();
        std::fs::write(below.join("cgroup.procs"), "9\n").unwrap();
        let all = Only::Cgroup(dir.path().into()).processes();
        assert_eq!(all, BTreeSet::from([7, 8, 9]));
    }
}
