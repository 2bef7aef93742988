//! What earlier experiments left on this host: copies of other builds, and settings that are still in force.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rxpath_core::SortFew;
use rxpath_host::read::identity::boot_id;
use serde::{Deserialize, Serialize};

use super::files::pid_namespace;
use super::settings::UnreadJournals;
use crate::error::LabError;

/// Length of a hash in hexadecimal: the name of a copy's directory.
const HASH_LENGTH: usize = 64;

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leftover {
    /// The copy of this build, which stays; copies of other builds are in the same directory.
    Own {
        /// Directory of the copies: each is `DIR/HASH/rxpath`.
        dir: PathBuf,
        /// Its hash.
        hash: String,
    },
    /// The copy of another build that nobody runs.
    Copy {
        /// Its hash.
        hash: String,
        /// **Unit** bytes.
        bytes: u64,
    },
    /// A copy that is running or is being sent: another coordinator's.
    InUse {
        /// Its hash.
        hash: String,
    },
    /// Settings that `rxpath tune` made and that are in force.
    Settings {
        /// Number of the journal.
        journal: u64,
        /// The endpoint that made them was killed: they are to be undone.
        #[serde(default)]
        is_of_killed_run: bool,
    },
    /// Journals of `rxpath tune` of which nothing is known.
    Unread(UnreadJournals),
}

/// This program's own copy, where it is one, then those next to it.
pub fn copies(exe: &Path) -> Vec<Leftover> {
    let Some(own) = exe.parent().filter(|dir| is_copy(dir)) else { return Vec::new() };
    let (Some(dir), Some(hash)) = (own.parent(), own.file_name()) else { return Vec::new() };
    let running = running();
    let siblings = fs::read_dir(dir).into_iter().flatten().flatten();
    let others = siblings.map(|entry| entry.path()).filter(|dir| is_copy(dir) && dir != own);
    let mut found: Vec<Leftover> = others
        .filter_map(|dir| {
            let program = dir.join("rxpath");
            let hash = dir.file_name()?.to_str()?.to_owned();
            let bytes = program.metadata().map_or(0, |file| file.len());
            let is_used = running.contains(&program) || is_being_sent(&dir);
            Some(if is_used { Leftover::InUse { hash } } else { Leftover::Copy { hash, bytes } })
        })
        .collect();
    found.sort_few_by_key(|one| format!("{one:?}"));
    let hash = hash.to_string_lossy().into_owned();
    found.insert(0, Leftover::Own { dir: dir.to_owned(), hash });
    found
}

/// Removes the copy with this hash; whether it did. Hosts may share the directory, and remove it at once. A transfer into it may
/// have begun.
///
/// # Errors
/// If it cannot be removed.
pub fn remove_copy(exe: &Path, hash: &str) -> Result<bool, LabError> {
    let dir = exe.parent().and_then(Path::parent).map(|all| all.join(hash));
    let may_be_copy =
        |dir: &PathBuf| is_hash(hash) && (is_copy(dir) || dir.symlink_metadata().is_err());
    let Some(dir) = dir.filter(may_be_copy) else {
        return Err(LabError::internal(format!("{hash} is no copy of a build")));
    };
    if is_being_sent(&dir) {
        return Ok(false);
    }
    match fs::remove_dir_all(&dir) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(LabError::io(format!("remove {}", dir.display()), error)),
    }
}

/// Whether a directory is that of a copy: named by a hash, a directory itself.
fn is_copy(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    is_hash(name) && dir.symlink_metadata().is_ok_and(|it| it.is_dir())
}

fn is_hash(name: &str) -> bool {
    name.len() == HASH_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a transfer into the directory of a copy runs here: `.incoming.BOOT.PIDNS.PID`, rxpath-remote/src/scripts.rs.
fn is_being_sent(dir: &Path) -> bool {
    let Ok(boot) = boot_id() else { return false };
    let begin = format!(".incoming.{boot}.{}.", pid_namespace());
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut pids =
        names.filter_map(|name| name.to_str()?.strip_prefix(&begin)?.parse::<u32>().ok());
    pids.any(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// Programs that run here, as far as this user may see.
fn running() -> BTreeSet<PathBuf> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| fs::read_link(entry.path().join("exe")).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copies_of_other_builds_are_left_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let [own, other] = ["a", "b"].map(|digit| digit.repeat(HASH_LENGTH));
        for name in [own.as_str(), other.as_str(), "notes"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("rxpath"), "program").unwrap();
        }
        let exe = dir.path().join(&own).join("rxpath");
        let kept = Leftover::Own { dir: dir.path().to_owned(), hash: own.clone() };
        let copy = Leftover::Copy { hash: other.clone(), bytes: 7 };
        assert_eq!(copies(&exe), [kept.clone(), copy]);
        assert!(remove_copy(&exe, "../notes").is_err() && remove_copy(&exe, "notes").is_err());
        assert!(remove_copy(&exe, &other).unwrap());
        assert!(!remove_copy(&exe, &other).unwrap(), "another host of this directory removed it");
        assert!(copies(&exe) == [kept] && exe.exists());
        // A program that was installed has no copies next to it.
        assert!(copies(&dir.path().join("notes/rxpath")).is_empty());
    }

    #[test]
    fn a_copy_that_is_being_sent_stays() {
        let dir = tempfile::tempdir().unwrap();
        let [own, other] = ["a", "b"].map(|digit| digit.repeat(HASH_LENGTH));
        for name in [&own, &other] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let exe = dir.path().join(&own).join("rxpath");
        let incoming = |pid: u32| {
            let name = format!(".incoming.{}.{}.{pid}", boot_id().unwrap(), pid_namespace());
            dir.path().join(&other).join(name)
        };
        fs::write(incoming(std::process::id()), "half").unwrap();
        assert_eq!(copies(&exe)[1], Leftover::InUse { hash: other.clone() });
        assert!(!remove_copy(&exe, &other).unwrap());
        // The highest process id of Linux is 4194304.
        fs::rename(incoming(std::process::id()), incoming(4_194_305)).unwrap();
        assert_eq!(copies(&exe)[1], Leftover::Copy { hash: other.clone(), bytes: 0 });
        assert!(remove_copy(&exe, &other).unwrap());
    }
}
