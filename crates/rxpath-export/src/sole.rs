//! One exporter with probes in a network namespace: a second would cost the same again and measure the first.
//!
//! Who may write below `/run` has a lock there, which no other user can take. Everybody has a name of the network namespace,
//! which any program can take: it decides only among exporters that cannot reach the lock.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use nix::libc;

/// An abstract socket. The kernel gives it back with the process, however that ends, as it does the lock.
const NAME: &str = "rxpath-export";
/// Folder of the lock: root's, or of the user of `rxpath-export.service` (`RuntimeDirectory=`).
const FOLDER: &str = "/run/rxpath-export";

/// The place of the only exporter, held while this lives.
#[derive(Debug)]
pub struct Sole {
    _lock: Option<File>,
    name: Option<UnixDatagram>,
}

impl Sole {
    /// Takes the place in the network namespace of the calling thread, whose inode is `namespace`. With `makes_folder` the
    /// folder of the lock is made where it is missing: on the host. A container that does not share it would have a lock
    /// that nobody else sees.
    ///
    /// # Errors
    /// `AddrInUse` while another exporter has it. For who cannot reach the lock: while any program has the name.
    pub fn claim(namespace: u32, makes_folder: bool) -> io::Result<Self> {
        let folder = Path::new(FOLDER);
        if makes_folder {
            make(folder);
        }
        Self::at(folder, namespace, NAME)
    }

    /// Whether a program has the name that does not have the lock: an exporter in a container or of another user, or a stranger.
    pub fn is_contested(&self) -> bool {
        self.name.is_none()
    }

    fn at(folder: &Path, namespace: u32, name: &str) -> io::Result<Self> {
        let lock = lock(folder, namespace)?;
        let name = match UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?) {
            Ok(socket) => Some(socket),
            Err(error) if lock.is_some() && error.kind() == ErrorKind::AddrInUse => None,
            Err(error) => return Err(error),
        };
        Ok(Self { _lock: lock, name })
    }
}

/// Makes the folder for its user alone: who may read a file may lock it.
fn make(folder: &Path) {
    // It may be there already; whether it can be used is seen later.
    let _ = DirBuilder::new().mode(0o700).create(folder);
}

/// The lock of a namespace; none where the folder cannot be reached.
fn lock(folder: &Path, namespace: u32) -> io::Result<Option<File>> {
    let path = folder.join(format!("probes-{namespace}.lock"));
    // The file is never removed: a lock on a name that others can replace is none.
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    // The folder may be another user's: no link of that user leads elsewhere, and no pipe is waited for.
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let Ok(file) = file else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(ErrorKind::AddrInUse.into()),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder for locks, and what holds it.
    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("run");
        make(&folder);
        (dir, folder)
    }

    fn name(of: &str) -> String {
        format!("rxpath-export-test-{of}-{}", std::process::id())
    }

    fn is_taken(claimed: io::Result<Sole>) -> bool {
        claimed.is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
    }

    #[test]
    fn the_place_is_taken_once_and_free_again_afterwards() {
        let (_dir, folder) = place();
        let name = name("once");
        let first = Sole::at(&folder, 1, &name).unwrap();
        assert!(!first.is_contested());
        assert!(is_taken(Sole::at(&folder, 1, &name)));
        drop(first);
        Sole::at(&folder, 1, &name).unwrap();
    }

    #[test]
    fn a_stranger_with_the_name_keeps_nobody_out_who_has_the_lock() {
        let (_dir, folder) = place();
        let name = name("stranger");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let stranger = UnixDatagram::bind_addr(&address).unwrap();
        let first = Sole::at(&folder, 1, &name).unwrap();
        assert!(first.is_contested());
        drop(stranger);
        assert!(is_taken(Sole::at(&folder, 1, &name)), "the lock is held without the name");
    }

    #[test]
    fn without_the_folder_the_name_decides() {
        let name = name("name");
        let folder = Path::new("/nonexistent/run");
        let first = Sole::at(folder, 1, &name).unwrap();
        assert!(is_taken(Sole::at(folder, 1, &name)));
        drop(first);
        Sole::at(folder, 1, &name).unwrap();
    }

    #[test]
    fn a_namespace_has_a_lock_of_its_own_that_no_other_user_can_open() {
        let (_dir, folder) = place();
        let _first = lock(&folder, 1).unwrap().unwrap();
        assert!(lock(&folder, 2).unwrap().is_some());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o077;
        assert_eq!((mode(&folder), mode(&folder.join("probes-1.lock"))), (0, 0));
    }

    #[test]
    fn a_lock_that_is_a_link_leads_nowhere() {
        let (dir, folder) = place();
        let target = dir.path().join("target");
        std::os::unix::fs::symlink(&target, folder.join("probes-1.lock")).unwrap();
        assert!(lock(&folder, 1).unwrap().is_none());
        assert!(!target.exists());
    }

    #[test]
    fn a_lock_makes_no_folder_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("run");
        assert!(lock(&folder, 1).unwrap().is_none());
        assert!(!folder.exists());
    }
}
