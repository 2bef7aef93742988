//! Opening a file of a captured tree so that no link in it can lead out of it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;

use crate::HostError;

/// Any rename on the machine while the kernel follows a `..` makes openat2(2) give up with `EAGAIN`
/// (fs/namei.c, `handle_dots`); then it is asked again, so often at most.
const RETRIES: u32 = 1000;

/// A directory out of which nothing leads.
#[derive(Clone, Debug)]
pub(super) struct Beneath {
    pub base: PathBuf,
    dir: Arc<File>,
}

impl Beneath {
    /// Of a directory without links in its own path.
    pub fn new(base: PathBuf) -> io::Result<Self> {
        let dir = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&base)?;
        Ok(Self { base, dir: Arc::new(dir) })
    }

    /// Opens `relative` below it.
    ///
    /// The kernel holds the walk (openat2(2), `RESOLVE_BENEATH`, 5.6): one call, where looking at each link of the path
    /// first takes one for each part of it. Older kernels get the slow way.
    ///
    /// **Errors** `EXDEV` when a link leads out.
    pub fn open(&self, relative: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_CLOEXEC;
        for _ in 0..RETRIES {
            match self.at_once(relative, flags) {
                Ok(file) => return Ok(file),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => {}
                    Some(libc::ENOSYS) => return self.by_hand(relative, flags),
                    _ => return Err(error),
                },
            }
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }

    fn at_once(&self, relative: &str, flags: OFlag) -> io::Result<File> {
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        let how = OpenHow::new().flags(flags).mode(Mode::empty()).resolve(resolve);
        // Nothing but the tree itself has an empty way to it.
        let relative = if relative.is_empty() { "." } else { relative };
        Ok(openat2(&self.dir, relative, how)?.into())
    }

    fn by_hand(&self, relative: &str, flags: OFlag) -> io::Result<File> {
        let real = self.base.join(relative).canonicalize()?;
        if !real.starts_with(&self.base) {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        OpenOptions::new().read(true).custom_flags(flags.bits()).open(real)
    }
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
        let beneath = Beneath::new(base).unwrap();
        for open in [Beneath::open, Beneath::by_hand] {
            let open = |path| open(&beneath, path, OFlag::O_RDONLY);
            assert!(open("sys/eth0/mtu").is_ok());
            assert!(open("sys/eth0/../net/mtu").is_ok());
            assert!(open("").is_ok());
            for path in ["sys/out", "sys/absolute", "sys/self", "../../../etc/hostname", "sys/no"] {
                assert!(open(path).is_err(), "{path}");
            }
        }
    }

    #[test]
    fn a_rename_elsewhere_hides_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("sys/devices/net")).unwrap();
        std::fs::write(base.join("sys/mtu"), "1500\n").unwrap();
        let beneath = Beneath::new(base).unwrap();
        let ends = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
                std::fs::write(&a, "").unwrap();
                while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                    std::fs::rename(&a, &b).unwrap();
                    std::fs::rename(&b, &a).unwrap();
                }
            });
            let open = || beneath.open("sys/devices/net/../../mtu", OFlag::O_RDONLY);
            let failed = (0..20_000).find_map(|_| open().err());
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(failed.is_none(), "{failed:?}");
        });
    }
}
