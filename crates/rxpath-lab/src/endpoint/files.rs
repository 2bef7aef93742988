//! The directory of a third-party program on an endpoint's host. It goes with the program; what a killed endpoint left is
//! removed by its guard, or by the next endpoint of the same user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::unistd::getuid;
use rxpath_host::read::process::ProcessId;
use tempfile::TempDir;

use crate::error::LabError;

/// Begin of the names: then the pid namespace, pid and start of the endpoint, and what makes it unpredictable.
const PREFIX: &str = "rxpath-files-";

/// Makes the directory, which only this user may enter; dropping it removes it.
///
/// # Errors
/// If it cannot be made.
pub fn make() -> Result<TempDir, LabError> {
    // A name that others could guess could be there before.
    let prefix = format!("{PREFIX}{}-", own_id()?);
    let made = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir();
    made.map_err(|error| LabError::io("make a directory for a program's files", error))
}

/// Removes directories of endpoints of this user that are no more.
pub fn sweep() {
    sweep_in(&std::env::temp_dir(), |_| true);
}

/// Removes those of one endpoint, if it is no more.
pub fn sweep_of(endpoint: ProcessId) {
    sweep_in(&std::env::temp_dir(), |owner| owner == endpoint);
}

fn sweep_in(parent: &Path, is_meant: impl Fn(ProcessId) -> bool) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(owner) = id.and_then(owner_of) else { continue };
        // Not followed: a link of another user's is no directory of ours.
        let is_ours = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == getuid().as_raw());
        if is_ours && is_meant(owner) && !owner.is_alive() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// This process in text: pid namespace, pid and start.
///
/// # Errors
/// If its start cannot be read.
pub(super) fn own_id() -> Result<String, LabError> {
    let ProcessId { pid, start_ticks } = ProcessId::own()?;
    Ok(format!("{}-{pid}-{start_ticks}", pid_namespace()))
}

/// The process that such a text begins with, if it would be seen here while it lives.
pub(super) fn owner_of(id: &str) -> Option<ProcessId> {
    let mut parts = id.split('-');
    if parts.next()?.parse() != Ok(pid_namespace()) {
        return None;
    }
    let pid = parts.next()?.parse().ok()?;
    let start_ticks = parts.next()?.parse().ok()?;
    Some(ProcessId { pid, start_ticks })
}

/// Inode of the pid namespace; 0 where it cannot be read.
pub(super) fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_dead_endpoints_left_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let here = ProcessId::own().unwrap();
        let named = |space: u64, start: u64| format!("{PREFIX}{space}-{}-{start}-x", here.pid);
        let live = named(pid_namespace(), here.start_ticks);
        let dead = named(pid_namespace(), here.start_ticks + 1);
        // Whether it lives cannot be seen here.
        let elsewhere = named(pid_namespace() + 1, here.start_ticks + 1);
        for name in [&live, &dead, &elsewhere, "rxpath-files-x", "other"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        sweep_in(parent.path(), |owner| owner == here);
        assert!(parent.path().join(&dead).exists(), "it is another's");
        sweep_in(parent.path(), |_| true);
        let there = |name: &str| parent.path().join(name).exists();
        assert!(there(&live) && there(&elsewhere) && there("rxpath-files-x") && there("other"));
        assert!(!there(&dead));
    }
}
