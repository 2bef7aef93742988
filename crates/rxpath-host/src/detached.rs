//! A process that outlives the terminal and the program that started it, and a clock that does not stop.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::time::{ClockId, clock_gettime};

use crate::HostError;

/// Starts a process in a session of its own: no terminal's end and no Ctrl-C reaches it.
///
/// Its standard streams are the caller's to choose. **Caveat** a service manager that ends all processes of a login
/// (`KillUserProcesses=yes` in logind.conf) ends this one too.
pub fn spawn(mut command: Command) -> Result<Child, HostError> {
    let leave = || nix::unistd::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: between fork and exec the closure makes one system call, which is async-signal-safe,
    // and allocates nothing.
    unsafe { command.pre_exec(leave) };
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|e| {
        HostError::kernel(format!("start {program}"), e.raw_os_error().unwrap_or(libc::EIO))
    })
}

/// `CLOCK_BOOTTIME`, the same for all processes and going on while the machine sleeps. **Unit** ns.
pub fn boottime_ns() -> Result<u64, HostError> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_err(|errno| HostError::kernel("read CLOCK_BOOTTIME", errno as i32))?;
    Ok(now.tv_sec().unsigned_abs() * 1_000_000_000 + now.tv_nsec().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_process_is_its_own_session() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut child = spawn(command).unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        assert_eq!(nix::unistd::getsid(Some(pid)), Ok(pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_clock_goes_on() {
        let first = boottime_ns().unwrap();
        assert!(first > 0 && boottime_ns().unwrap() >= first);
    }
}
