//! What keeps appliers of one host apart when each keeps its journals in a directory of its own.
//!
//! The question it answers: *who else has changed this setting, and may undo it?* The lock belongs to the network
//! namespace, whatever the directory; a second one to what all namespaces share. Each directory in which a journal was begun is known by a link below [`RUN_DIR`],
//! which a restart empties as it undoes the changes. It must not write a journal of another directory.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rxpath_host::lab::lock::LabLock;
use rxpath_host::read::identity::network_namespace;
use rxpath_host::{HostError, Target};
use sha2::{Digest, Sha256};

use super::Store;

/// Where the locks of appliers lie, and the links to their directories; on a tmpfs, so of this boot alone.
pub const RUN_DIR: &str = "/run/rxpath-tune";
/// How the links begin.
const LINK: &str = "journals-";

/// A change of another directory that is in force, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other directory.
    pub dir: PathBuf,
    /// Its journal.
    pub id: u32,
    /// The setting that both change.
    pub target: Target,
}

/// What another directory holds that nobody can read: what it changed is not known.
#[derive(Debug)]
pub struct Unknown {
    /// The other directory.
    pub dir: PathBuf,
    /// Why its journals, or one of them, can't be read.
    pub why: HostError,
}

/// Takes the locks of this network namespace: a file below `run`, which says who holds it, and the namespace itself.
///
/// The second one decides, as a process that can't write below `run` (root of a user namespace, a unit with a read-only `/run`)
/// has it alone. Nobody but root and those inside can open the namespace.
pub(super) fn lock(run: &Path, patience: Duration) -> Result<Vec<LabLock>, HostError> {
    // If a directory can't be created, the following open reports it.
    let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(run);
    let named = below(&run.join(format!("net-{}.lock", network_namespace()?)), patience)?;
    let itself = LabLock::take_for("tune", Path::new("/proc/thread-self/ns/net"), patience)?;
    Ok(named.into_iter().chain([itself]).collect())
}

/// Takes a lock below `run`; `None` for a process that can't write there.
fn below(file: &Path, patience: Duration) -> Result<Option<LabLock>, HostError> {
    match LabLock::take_for("tune", file, patience) {
        Err(HostError::Denied { .. } | HostError::Missing { .. } | HostError::Io { .. }) => {
            Ok(None)
        }
        taken => taken.map(Some),
    }
}

impl Store {
    /// The right to change these settings too, which all network namespaces share, where one of them is of that kind.
    ///
    /// Taken after [`Store::lock`], and held with it. A process that can't write below [`RUN_DIR`] has the lock of its
    /// namespace alone. One that shares no `/run` is not seen.
    ///
    /// **Errors** `Kernel` with `EBUSY` that names the holder.
    pub fn lock_shared<'a>(
        &self,
        mut targets: impl Iterator<Item = &'a Target>,
        patience: Duration,
    ) -> Result<Option<LabLock>, HostError> {
        if targets.all(is_of_namespace) {
            return Ok(None);
        }
        below(&self.run.join("host.lock"), patience)
    }

    /// Makes this directory known to the others, and lets go of those that are gone.
    ///
    /// Best effort where `run` can't be written: the lock holds there too.
    pub(super) fn register(&self) {
        let Ok(dir) = self.dir.canonicalize() else { return };
        let digest = Sha256::digest(dir.as_os_str().as_encoded_bytes());
        let name = digest.iter().take(8).fold(String::from(LINK), |n, b| n + &format!("{b:02x}"));
        let _ = symlink(&dir, self.run.join(name));
        for (link, dir) in self.links() {
            if !dir.is_dir() {
                let _ = fs::remove_file(link);
            }
        }
    }

    fn links(&self) -> Vec<(PathBuf, PathBuf)> {
        let entries = fs::read_dir(&self.run).into_iter().flatten().flatten();
        let links = entries.filter(|e| e.file_name().to_string_lossy().starts_with(LINK));
        links.filter_map(|e| Some((e.path(), fs::read_link(e.path()).ok()?))).collect()
    }

    /// A change of one of these settings that a journal of another directory holds, and what there can't be read.
    ///
    /// `ours` are settings with those that they take along. Two directories that hold the same setting would undo over
    /// each other: neither knows the value from before the other. The caller holds the lock.
    pub fn conflict(
        &self,
        ours: &[(Target, Vec<Target>)],
    ) -> Result<(Option<Conflict>, Vec<Unknown>), HostError> {
        let here = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        let (boot, netns) = (rxpath_host::read::identity::boot_id()?, network_namespace()?);
        let mut unknown = Vec::new();
        for (_, dir) in self.links().into_iter().filter(|(_, dir)| *dir != here && dir.is_dir()) {
            let mut unread = |why| unknown.push(Unknown { dir: dir.clone(), why });
            let Ok(listed) = Store::at(&dir).list().map_err(&mut unread) else { continue };
            for one in listed {
                let Ok(contents) = one.contents.map_err(&mut unread) else { continue };
                if !contents.is_open() || contents.boot_id != boot {
                    continue;
                }
                let is_theirs = |target: &Target, coupled: &[Target]| {
                    (contents.netns == netns || !is_of_namespace(target))
                        && (contents.may_restore(target)
                            || coupled.iter().any(|coupled| contents.changes(coupled)))
                };
                if let Some((target, _)) = ours.iter().find(|(t, coupled)| is_theirs(t, coupled)) {
                    let conflict = Conflict { dir, id: one.id, target: target.clone() };
                    return Ok((Some(conflict), unknown));
                }
            }
        }
        Ok((None, unknown))
    }
}

/// Whether each network namespace has a setting of its own by this name.
pub(super) fn is_of_namespace(target: &Target) -> bool {
    match target {
        Target::Sysctl { key } => key.starts_with("net.") || key.starts_with("net/"),
        other => other.device().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RMEM: &str = "net.core.rmem_max";
    /// The namespace is that of all tests: each waits for the others.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn target(name: &str) -> Target {
        name.parse().unwrap()
    }

    fn journal(store: &Store, target: &str, undone: bool) {
        let (id, journal) = store.begin().unwrap();
        let begin = format!(
            "{{\"step\":\"begin\",\"n\":0,\"target\":\"{target}\",\"before\":\"1\",\"asked\":\"2\"}}\n"
        );
        let end = if undone { "{\"step\":\"undone\",\"n\":0}\n" } else { "" };
        drop(journal);
        let head = fs::read_to_string(store.path(id)).unwrap();
        fs::write(store.path(id), head + &begin + end).unwrap();
    }

    fn found(store: &Store, name: &str, coupled: &[&str]) -> Option<Conflict> {
        let coupled = coupled.iter().map(|name| target(name)).collect();
        let (conflict, unknown) = store.conflict(&[(target(name), coupled)]).unwrap();
        assert!(unknown.is_empty(), "{unknown:?}");
        conflict
    }

    #[test]
    fn what_another_directory_has_changed_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let store = |name: &str| Store::open(&dir.path().join(name)).unwrap().with_run_dir(&run);
        let (one, other) = (store("one"), store("other"));
        drop(one.lock(PATIENCE).unwrap());
        journal(&one, RMEM, false);
        journal(&one, "net.core.wmem_max", true);
        assert_eq!(found(&one, RMEM, &[]), None, "its own journals are in its own order");
        let conflict = found(&other, RMEM, &[]).unwrap();
        assert_eq!((conflict.id, conflict.target), (1, target(RMEM)));
        assert!(conflict.dir.ends_with("one"), "{:?}", conflict.dir);
        assert_eq!(found(&other, "net.core.wmem_max", &[]), None, "that was undone");
        assert!(found(&other, "net.core.busy_poll", &[RMEM]).is_some(), "taken along counts too");

        fs::write(one.path(9), "garbage\n").unwrap();
        let (conflict, unknown) = other.conflict(&[(target("irq/9"), Vec::new())]).unwrap();
        assert_eq!((conflict, unknown.len()), (None, 1));
        fs::remove_dir_all(dir.path().join("one")).unwrap();
        assert_eq!(found(&other, RMEM, &[]), None);
        journal(&other, RMEM, false);
        assert_eq!(other.links().len(), 1, "a directory that is gone is let go");
    }

    #[test]
    fn the_lock_is_the_same_for_all_directories() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let store = |name: &str| Store::open(&dir.path().join(name)).unwrap().with_run_dir(&run);
        let held = store("one").lock(PATIENCE).unwrap();
        let error = store("other").lock(Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        store("other").lock(PATIENCE).unwrap();
    }

    #[test]
    fn what_namespaces_share_is_changed_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path()).with_run_dir(dir.path());
        let take = |names: &[&str]| {
            let targets: Vec<Target> = names.iter().map(|name| target(name)).collect();
            store.lock_shared(targets.iter(), Duration::ZERO)
        };
        assert!(take(&[RMEM, "eth0/rings"]).unwrap().is_none(), "each namespace has its own");
        let held = take(&[RMEM, "irq/9"]).unwrap();
        assert!(held.is_some());
        let error = take(&["kernel.numa_balancing"]).unwrap_err().to_string();
        assert!(error.contains("host.lock"), "{error}");
        take(&[RMEM]).unwrap();
        drop(held);
        assert!(take(&["irq/9"]).unwrap().is_some());
    }

    #[test]
    fn without_a_place_for_it_the_namespace_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        // A file in its place: nothing can be made below it.
        let run = dir.path().join("file");
        fs::write(&run, "").unwrap();
        let held = lock(&run, PATIENCE).unwrap();
        assert!(lock(&run, Duration::ZERO).is_err());
        // Nor does one that can write there get past it.
        assert!(lock(dir.path(), Duration::ZERO).is_err());
        drop(held);
        lock(&run, PATIENCE).unwrap();
    }
}
