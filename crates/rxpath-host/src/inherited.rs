//! Descriptors that the program which started this one passed on, such as a socket of systemd (sd_listen_fds(3)).

use std::os::fd::{FromRawFd, OwnedFd};

use crate::HostError;

/// A descriptor of its own for what was passed on with this number.
///
/// **Errors** `Kernel` with `EBADF` when nothing was.
pub fn descriptor(number: u16) -> Result<OwnedFd, HostError> {
    // SAFETY: takes numbers, touches no memory of ours; any number is allowed, of an open descriptor or not.
    let own = unsafe { libc::fcntl(i32::from(number), libc::F_DUPFD_CLOEXEC, 3) };
    if own < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EBADF);
        return Err(HostError::kernel(format!("use descriptor {number}"), errno));
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
}
