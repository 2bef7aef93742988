//! Ends processes of a lab, and no later one that has got the pid.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::HostError;
use crate::read::process::ProcessId;

impl ProcessId {
    /// Kills it, when it is still the same process; `false` when that is gone.
    ///
    /// Goes through a pidfd, so the pid can't come to mean another process between check and signal.
    pub fn kill(&self) -> Result<bool, HostError> {
        kill(*self)
    }
}

fn kill(id: ProcessId) -> Result<bool, HostError> {
    let pid = id.pid;
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        // Read before anything allocates: an allocation may change errno.
        let error = std::io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ESRCH) => Ok(false),
            _ => Err(HostError::os(format!("open process {pid}"), &error)),
        };
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    if !id.is_alive() {
        return Ok(false);
    }
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open; a null siginfo is allowed.
    let sent = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), libc::SIGKILL, no_info, 0)
    };
    if sent == 0 { Ok(true) } else { Err(HostError::last_os(format_args!("kill process {pid}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_process_with_the_pid_is_left_alone() {
        let own = ProcessId::own().unwrap();
        let other = ProcessId { start_ticks: own.start_ticks + 1, ..own };
        assert!(!other.kill().unwrap(), "must not kill the process that has the pid now");
    }

    #[test]
    fn a_child_is_killed_once() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = ProcessId::of(child.id() as i32).unwrap();
        assert!(id.kill().unwrap());
        assert!(!child.wait().unwrap().success());
        assert!(!id.is_alive());
        assert!(!id.kill().unwrap());
    }
}
