//! Whether a child has ended, without taking its status: until somebody does, its pid, and the id of the process group that
//! it leads, are no other's, so that a signal to them can't reach a stranger.

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// Where a child is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Running,
    /// It has ended, and nobody has taken its status.
    Ended,
    /// Its status was taken: the pid may be another process' by now.
    Reaped,
}

/// Where the child with this pid is in its life. **Source** waitid(2) `WNOWAIT`.
pub fn life(pid: u32) -> Life {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(Pid::from_raw(pid as i32)), flags) {
        Ok(WaitStatus::StillAlive) => Life::Running,
        Ok(_) => Life::Ended,
        Err(_) => Life::Reaped,
    }
}

/// Waits for the end of a child; its status stays where it is.
pub fn wait_for_end(pid: u32) {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(Pid::from_raw(pid as i32)), flags) == Err(nix::errno::Errno::EINTR) {}
}

/// Sends a signal to the process group that this child leads, while its pid is its own.
pub fn signal_group(pid: u32, signal: Signal) {
    if life(pid) != Life::Reaped {
        // An error means that it is gone, which is what was wanted.
        let _ = killpg(Pid::from_raw(pid as i32), signal);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_ended_child_keeps_its_pid_until_its_status_is_taken() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).process_group(0).spawn().unwrap();
        let pid = child.id();
        assert_eq!(life(pid), Life::Running);
        signal_group(pid, Signal::SIGKILL);
        while life(pid) == Life::Running {
            std::thread::yield_now();
        }
        assert_eq!(life(pid), Life::Ended);
        assert!(!child.wait().unwrap().success());
        assert_eq!(life(pid), Life::Reaped);
    }
}
