//! Whether two processes are on one machine, whatever their namespaces: one holds an open file named by a secret of the run,
//! and the other sees it. A boot id says less: clones of a virtual machine share it.
//!
//! Only root and the owner see the open files of a process. For others a thread has a name that follows from the secret.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::LabError;

/// Begin of the file's name.
const PREFIX: &str = "rxpath-";

/// The open file, and the thread.
#[derive(Debug)]
pub struct MachineToken {
    _file: OwnedFd,
    /// Closed, it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MachineToken {
    /// Shows this process to those of its machine that know the secret.
    ///
    /// # Errors
    /// If the file or the thread cannot be made.
    pub fn show(secret: &str) -> Result<Self, LabError> {
        let made = memfd_create(format!("{PREFIX}{secret}").as_str(), MFdFlags::MFD_CLOEXEC);
        let failed = |errno: Errno| LabError::io("make a file in memory", errno.into());
        let file = made.map_err(failed)?;
        let (end, is_over) = channel::<()>();
        let (named, is_named) = channel::<()>();
        let thread = std::thread::Builder::new().name(thread_name(secret)).spawn(move || {
            // It has its name by now.
            drop(named);
            let _ = is_over.recv();
        });
        let thread = thread.map_err(|error| LabError::io("start a thread", error))?;
        let _ = is_named.recv();
        Ok(Self { _file: file, end: Some(end), thread: Some(thread) })
    }
}

impl Drop for MachineToken {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// At most 15 bytes, as the kernel keeps them (`TASK_COMM_LEN`, include/linux/sched.h). Everybody may read it: the secret does
/// not follow from it.
fn thread_name(secret: &str) -> String {
    let mut hasher = DefaultHasher::new();
    secret.hash(&mut hasher);
    format!("rxp-{:011x}", hasher.finish() >> 20)
}

/// Whether this process sees the file of the process `pid`, or its thread, and so is on its machine.
pub fn is_seen(pid: i32, secret: &str) -> bool {
    has_file(pid, secret) || has_thread(pid, secret)
}

fn has_file(pid: i32, secret: &str) -> bool {
    let name = format!("/memfd:{PREFIX}{secret}");
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| target.to_string_lossy().trim_end_matches(" (deleted)") == name)
}

fn has_thread(pid: i32, secret: &str) -> bool {
    let name = thread_name(secret);
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
        .any(|comm| comm.trim_end() == name)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_is_seen_by_its_secret_while_it_shows_it() {
        let own = std::process::id() as i32;
        let token = MachineToken::show("a1b2").unwrap();
        assert!(is_seen(own, "a1b2") && !is_seen(own, "a1b") && !is_seen(1, "a1b2"));
        // Another user sees the thread alone.
        assert!(has_file(own, "a1b2") && has_thread(own, "a1b2") && !has_thread(own, "a1b"));
        assert!(!thread_name("a1b2").contains("a1b2") && thread_name("a1b2").len() == 15);
        drop(token);
        assert!(!has_file(own, "a1b2"));
        // /proc may list a thread for a moment after its end.
        let deadline = Instant::now() + Duration::from_secs(60);
        while has_thread(own, "a1b2") {
            assert!(Instant::now() < deadline, "the thread ends");
            std::thread::yield_now();
        }
    }
}
