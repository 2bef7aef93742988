//! Which sockets are looked at: those of one process or control group, where one was named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rxpath_host::Root;

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

    /// Inodes of the sockets that they have open now.
    ///
    /// **Cost** a link for each descriptor of these processes: some 2 us each.
    pub(crate) fn inodes(&self) -> BTreeSet<u32> {
        let root = Root::host();
        let of = |pid: i32| {
            let dir = format!("/proc/{pid}/fd");
            let open = root.list(&dir).unwrap_or_default();
            let links = open.into_iter().filter_map(|fd| root.link(&format!("{dir}/{fd}")).ok());
            links.filter_map(|link| inode(&link.to_string_lossy())).collect::<Vec<u32>>()
        };
        self.processes().into_iter().flat_map(of).collect()
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

fn inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_process_has_the_sockets_that_it_opened() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let own = inode(&std::fs::read_link(link).unwrap().to_string_lossy()).unwrap();
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
