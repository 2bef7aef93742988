//! All control groups of version 2 with their ids, by a walk of their file system.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt;

use crate::Root;

/// Where the hierarchy is, alone or next to those of version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Ids and paths of groups, those near the root first, `most` of them at most.
///
/// **Source** inodes of `/sys/fs/cgroup`: the id of a group is its inode (fs/kernfs/dir.c `kernfs_ino`, 64-bit kernels since 5.5).
///
/// **Cost** the list of the folder of each group.
pub(super) fn groups(root: &Root, most: usize) -> Vec<(u64, String)> {
    let is_it = |mount: &&str| root.exists(&format!("{mount}/cgroup.controllers"));
    let Some(mount) = MOUNTS.into_iter().find(is_it) else { return Vec::new() };
    let mut found = Vec::new();
    let mut next = VecDeque::from([String::new()]);
    while let Some(group) = next.pop_front() {
        // Groups come and go while they are read.
        let folder = root.path(&format!("{mount}{group}"));
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let is_group = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        for entry in entries.flatten().filter(is_group) {
            let Ok(meta) = entry.metadata() else { continue };
            if found.len() >= most {
                return found;
            }
            let path = format!("{group}/{}", entry.file_name().to_string_lossy());
            found.push((meta.ino(), path.clone()));
            next.push_back(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_their_inodes_and_those_near_the_root_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let mount = dir.path().join("sys/fs/cgroup");
        std::fs::create_dir_all(mount.join("a.slice/b.service")).unwrap();
        std::fs::create_dir_all(mount.join("c.slice")).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        assert!(groups(&root, 9).is_empty(), "no hierarchy of version 2 is there");
        std::fs::write(mount.join("cgroup.controllers"), "").unwrap();
        let found = groups(&root, 9);
        let paths: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!((paths.len(), paths[2]), (3, "/a.slice/b.service"), "{paths:?}");
        for (id, path) in &found {
            assert_eq!(*id, mount.join(path.trim_start_matches('/')).metadata().unwrap().ino());
        }
        assert_eq!(groups(&root, 2).len(), 2);
    }
}
