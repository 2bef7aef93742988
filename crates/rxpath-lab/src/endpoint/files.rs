//! The directory of a third-party program on an endpoint's host. It goes with the program; what a killed endpoint left is
//! removed by the next one of the same user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::getuid;
use rxpath_host::owner::ProcessId;

use crate::error::LabError;

/// Begin of the names: then pid and start of the endpoint, and the program's number.
const PREFIX: &str = "rxpath-files-";

/// The directory; dropping it removes it.
pub struct FilesOfProgram(PathBuf);

impl FilesOfProgram {
    /// That of a program of this process; it is not made yet.
    pub fn of(program: u32) -> Result<Self, LabError> {
        let ProcessId { pid, start_ticks } = ProcessId::own()?;
        Ok(Self(std::env::temp_dir().join(format!("{PREFIX}{pid}-{start_ticks}-{program}"))))
    }

    /// Its path.
    pub fn dir(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for FilesOfProgram {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes directories of endpoints of this user that are no more.
pub fn sweep() {
    sweep_in(&std::env::temp_dir());
}

fn sweep_in(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let Some(owner) = entry.file_name().to_str().and_then(owner_of) else { continue };
        // Not followed: a link of another user's is no directory of ours.
        let is_ours = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == getuid().as_raw());
        if is_ours && !owner.is_alive() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The endpoint that a directory's name names.
fn owner_of(name: &str) -> Option<ProcessId> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let pid = parts.next()?.parse().ok()?;
    let start_ticks = parts.next()?.parse().ok()?;
    Some(ProcessId { pid, start_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_dead_endpoints_left_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let here = ProcessId::own().unwrap();
        let live = format!("{PREFIX}{}-{}-1", here.pid, here.start_ticks);
        let dead = format!("{PREFIX}{}-{}-1", here.pid, here.start_ticks + 1);
        for name in [&live, &dead, "rxpath-files-x", "other"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        sweep_in(parent.path());
        let there = |name: &str| parent.path().join(name).exists();
        assert!(there(&live) && there("rxpath-files-x") && there("other") && !there(&dead));
    }
}
