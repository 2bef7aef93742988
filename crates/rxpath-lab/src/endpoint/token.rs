//! Whether two processes are on one machine, whatever their namespaces: one holds an open file named by a secret of the run,
//! and the other sees it. A boot id says less: clones of a virtual machine share it.

use std::fs;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::LabError;

/// Begin of the file's name.
const PREFIX: &str = "rxpath-";

/// The open file.
#[derive(Debug)]
pub struct Token {
    _file: OwnedFd,
}

impl Token {
    /// Shows this process to those of its machine that know the secret.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn show(secret: &str) -> Result<Self, LabError> {
        let made = memfd_create(format!("{PREFIX}{secret}").as_str(), MFdFlags::MFD_CLOEXEC);
        let failed = |errno: Errno| LabError::io("make a file in memory", errno.into());
        Ok(Self { _file: made.map_err(failed)? })
    }
}

/// Whether this process sees the file of the process `pid`, and so is on its machine.
pub fn is_seen(pid: i32, secret: &str) -> bool {
    let name = format!("/memfd:{PREFIX}{secret}");
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| target.to_string_lossy().trim_end_matches(" (deleted)") == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_seen_by_its_secret_while_it_is_open() {
        let own = std::process::id() as i32;
        let token = Token::show("a1b2").unwrap();
        assert!(is_seen(own, "a1b2") && !is_seen(own, "a1b") && !is_seen(1, "a1b2"));
        drop(token);
        assert!(!is_seen(own, "a1b2"));
    }
}
