//! Which part of the host a probe traces.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rxpath_host::read::procfs::socket_owner;
use rxpath_host::{HostError, Root};

use crate::object::{Loaded, WANTED};

/// Sockets of a process that have room.
const SOCKETS: u32 = 16_384;

/// The selected part; an empty filter selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these CPUs, unless empty.
    pub cpus: Vec<u32>,
    /// Only this device, unless 0.
    pub ifindex: u32,
    /// Only this network namespace, by its inode, unless 0; that of the device when there is one.
    pub netns: u32,
    /// A file of that namespace, for what has to go there.
    pub netns_path: Option<PathBuf>,
    /// Only this local port, unless 0: of sockets, and of packets without one by their destination.
    pub port: u16,
    /// Only sockets of this control group.
    pub cgroup: Option<Cgroup>,
    /// Only sockets that this process has open.
    pub process: Option<u32>,
}

/// A control group of version 2; those below it are part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its id: the inode of its directory (fs/kernfs/mount.c).
    pub id: u64,
    /// How many groups lie above it.
    pub level: u32,
}

impl Cgroup {
    /// The group of a directory, or of a path below the mount point of the hierarchy.
    ///
    /// **Errors** `Unsupported` without a version 2 hierarchy, `Missing` when there is no such group.
    pub fn find(root: &Root, name: &Path) -> Result<Self, HostError> {
        place(root, name).map(|(_, group)| group)
    }

    /// The directory of that group.
    ///
    /// **Errors** as [`Cgroup::find`].
    pub fn directory(root: &Root, name: &Path) -> Result<PathBuf, HostError> {
        place(root, name).map(|(path, _)| path)
    }
}

/// The directory of a group, and the group.
fn place(root: &Root, name: &Path) -> Result<(PathBuf, Cgroup), HostError> {
    let mount = mount_point(&root.text("/proc/self/mounts")?).ok_or_else(|| {
        let what = format!("find the cgroup {}", name.display());
        HostError::unsupported(what, "a mounted cgroup2 file system")
    })?;
    let below = name.strip_prefix(&mount).unwrap_or(name);
    let below = below.strip_prefix("/").unwrap_or(below);
    let path = mount.join(below);
    let about = std::fs::metadata(&path).map_err(|e| HostError::from_io("read", &path, e))?;
    if !path.join("cgroup.controllers").exists() {
        return Err(HostError::malformed(path, 0, "no control group of version 2"));
    }
    Ok((path, Cgroup { id: about.ino(), level: below.components().count() as u32 }))
}

/// Where the version 2 hierarchy is mounted (`/proc/self/mounts`).
fn mount_point(mounts: &str) -> Option<PathBuf> {
    let mut lines = mounts.lines().map(|line| line.split(' '));
    lines.find_map(|mut words| match (words.next(), words.next(), words.next()) {
        (Some(_), Some(path), Some("cgroup2")) => Some(PathBuf::from(path)),
        _ => None,
    })
}

impl Filter {
    /// `struct cpus_wanted` of the programs.
    pub(crate) fn wanted_cpus(&self) -> Vec<u8> {
        let mut mask = [0u64; 16];
        for cpu in &self.cpus {
            if let Some(word) = mask.get_mut(*cpu as usize / 64) {
                *word |= 1 << (cpu % 64);
            }
        }
        let some = u64::from(!self.cpus.is_empty());
        std::iter::once(some).chain(mask).flat_map(u64::to_ne_bytes).collect()
    }

    /// `struct owner` of the programs.
    pub(crate) fn owner(&self) -> Vec<u8> {
        let cgroup = self.cgroup.unwrap_or(Cgroup { id: 0, level: 0 });
        let mut bytes = cgroup.id.to_ne_bytes().to_vec();
        bytes.extend(cgroup.level.to_ne_bytes());
        bytes.extend(u32::from(self.process.is_some()).to_ne_bytes());
        bytes
    }

    /// Room for the process's sockets, in the objects that have the map.
    pub(crate) fn room(&self) -> (&'static str, u32) {
        (WANTED.name, if self.process.is_some() { SOCKETS } else { 1 })
    }

    /// Passes the process's open sockets to the programs. To be called again while it may open more.
    ///
    /// **Errors** `Missing` when the process is gone. **Cost** a link for each of its descriptors.
    pub(crate) fn admit(&self, loaded: &Loaded) -> Result<(), HostError> {
        let Some(pid) = self.process else { return Ok(()) };
        for inode in socket_owner::held(&Root::host(), pid as i32)? {
            loaded.put("wanted", &u64::from(inode).to_ne_bytes(), &1u32.to_ne_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_2_hierarchy_is_found_beside_the_old_one() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_point("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn a_group_that_is_not_there_is_told() {
        let found = Cgroup::find(&Root::host(), Path::new("no/such/group"));
        assert!(found.is_err(), "{found:?}");
    }

    #[test]
    fn the_programs_get_what_they_read() {
        let filter = Filter {
            cgroup: Some(Cgroup { id: 7, level: 2 }),
            process: Some(1),
            ..Filter::default()
        };
        let bytes = filter.owner();
        assert_eq!(bytes.len(), 16);
        assert_eq!((bytes[0], bytes[8], bytes[12]), (7, 2, 1));
        let none = filter.wanted_cpus();
        assert!(none.len() == 17 * 8 && none.iter().all(|byte| *byte == 0));
        let some = Filter { cpus: vec![1, 64], ..Filter::default() }.wanted_cpus();
        let words: Vec<&[u8]> = some.chunks_exact(8).collect();
        let word = |n: u64| n.to_ne_bytes();
        assert_eq!(words[..4], [word(1), word(2), word(1), word(0)]);
    }
}
