//! Opening a file of a captured tree so that no link in it can lead out of it.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::HostError;

const FLAGS: libc::c_int = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;

/// Opens `relative` below `base`.
///
/// The kernel holds the walk below `base` (openat2(2), `RESOLVE_BENEATH`, 5.6): one call, where looking at each link
/// of the path first takes one for each part of it. Older kernels get the slow way.
///
/// **Errors** `EXDEV` when a link leads out.
pub(super) fn open(base: &Path, relative: &str) -> io::Result<File> {
    match openat2(base, relative) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => by_hand(base, relative),
        other => other,
    }
}

fn openat2(base: &Path, relative: &str) -> io::Result<File> {
    let dir = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(base)?;
    let path = std::ffi::CString::new(Path::new(relative).as_os_str().as_bytes())
        .map_err(|_| io::Error::from_raw_os_error(libc::ENOENT))?;
    // SAFETY: an open_how of zeros is a valid one.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = FLAGS as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: the path ends with a NUL and `how` is as long as told; both live through the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            std::os::fd::AsRawFd::as_raw_fd(&dir),
            path.as_ptr(),
            &raw mut how,
            size_of::<libc::open_how>(),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor and nobody else has it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

fn by_hand(base: &Path, relative: &str) -> io::Result<File> {
    let real = base.join(relative).canonicalize()?;
    if !real.starts_with(base) {
        return Err(io::Error::from_raw_os_error(libc::EXDEV));
    }
    std::fs::OpenOptions::new().read(true).custom_flags(FLAGS).open(real)
}

/// The error of a refused walk.
pub(super) fn refusal(op: &'static str, path: &Path, error: io::Error) -> HostError {
    match error.raw_os_error() {
        Some(libc::EXDEV) => {
            HostError::malformed(path, 0, "leads out of the captured tree, refused")
        }
        Some(libc::ELOOP) => HostError::malformed(path, 0, "links of it lead in a circle"),
        _ => HostError::from_io(op, path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn both_ways_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("sys/devices/net")).unwrap();
        std::fs::write(base.join("sys/devices/net/mtu"), "1500\n").unwrap();
        symlink("devices/net", base.join("sys/eth0")).unwrap();
        symlink("../../outside", base.join("sys/out")).unwrap();
        symlink("/etc/hostname", base.join("sys/absolute")).unwrap();
        symlink("self", base.join("sys/self")).unwrap();
        for open in [open, by_hand] {
            assert!(open(&base, "sys/eth0/mtu").is_ok());
            assert!(open(&base, "sys/eth0/../net/mtu").is_ok());
            for path in ["sys/out", "sys/absolute", "sys/self", "../../../etc/hostname", "sys/no"] {
                assert!(open(&base, path).is_err(), "{path}");
            }
        }
    }
}
