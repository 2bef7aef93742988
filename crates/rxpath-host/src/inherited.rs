//! Descriptors that the program which started this one passed on, such as a socket of systemd (sd_listen_fds(3)).

use std::os::fd::{FromRawFd, OwnedFd};

use crate::HostError;

/// The first of the sockets that systemd passes on. **Source** sd_listen_fds(3), `SD_LISTEN_FDS_START`.
pub const FIRST_SOCKET: u16 = 3;

/// How many sockets systemd passed on to this very process; 0 without a `.socket` unit.
///
/// **Source** sd_listen_fds(3): `LISTEN_PID` and `LISTEN_FDS`.
pub fn sockets() -> u16 {
    let text = |name| std::env::var(name).ok();
    count(text("LISTEN_PID").as_deref(), text("LISTEN_FDS").as_deref(), std::process::id())
}

/// A program that inherits the variables from another one was passed nothing.
fn count(pid: Option<&str>, sockets: Option<&str>, own: u32) -> u16 {
    let is_own = pid.and_then(|pid| pid.parse().ok()) == Some(own);
    sockets.filter(|_| is_own).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// A descriptor of its own for what was passed on with this number.
///
/// **Errors** `Kernel` with `EBADF` when nothing was.
pub fn descriptor(number: u16) -> Result<OwnedFd, HostError> {
    // SAFETY: takes numbers, touches no memory of ours; any number is allowed, of an open descriptor or not.
    let own = unsafe { libc::fcntl(i32::from(number), libc::F_DUPFD_CLOEXEC, 3) };
    if own < 0 {
        return Err(HostError::last_os(format_args!("use descriptor {number}")));
    }
    // SAFETY: just opened, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(own) })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_was_passed_on_is_found_and_a_free_number_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let number = u16::try_from(file.as_raw_fd()).unwrap();
        let own = descriptor(number).unwrap();
        assert!(own.as_raw_fd() != file.as_raw_fd());
        assert!(descriptor(65_535).unwrap_err().to_string().contains("descriptor 65535"));
    }

    #[test]
    fn sockets_for_another_process_and_nonsense_are_none() {
        assert_eq!(count(Some("7"), Some("2"), 7), 2);
        for (pid, sockets) in [
            (Some("8"), Some("2")),
            (None, Some("2")),
            (Some("7"), None),
            (Some("7"), Some("-1")),
            (Some("7"), Some("x")),
            (Some(""), Some("1")),
        ] {
            assert_eq!(count(pid, sockets, 7), 0, "{pid:?} {sockets:?}");
        }
    }
}
