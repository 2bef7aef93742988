//! The file of a Unix socket: made with it, and removed with it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc;

/// How long to wait for the lock of the directory. An exporter has it for a moment. Another program may have it for as long as it
/// likes, and must not keep an exporter from starting.
const PATIENCE: Duration = Duration::from_secs(5);

/// The file of a socket of this process.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl SocketFile {
    /// A socket that listens, and its file. A stale file is replaced: nobody listens there. Of several exporters that start at
    /// once, one replaces it.
    ///
    /// # Errors
    /// When another socket or another file is there.
    pub(crate) fn bind(path: &Path) -> io::Result<(UnixListener, Self)> {
        Self::bind_within(path, PATIENCE)
    }

    fn bind_within(path: &Path, patience: Duration) -> io::Result<(UnixListener, Self)> {
        // Until the socket listens: to others, the file of one that does not listen yet is stale.
        let _turn = locked_directory(path, patience);
        remove_stale(path)?;
        let listener = UnixListener::bind(path)?;
        Ok((listener, Self { path: path.to_owned(), id: id(path)? }))
    }

    /// Removes the file, unless another one is in its place. The socket must still listen: until it closes, no other process takes
    /// the file for a stale one or gets its inode.
    pub(crate) fn remove(&self) {
        if id(&self.path).is_ok_and(|now| now == self.id) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// The directory of the file, locked: the lock leaves no file of its own behind. `None` where the directory cannot be read or
/// locked, or another program has it for too long. Then two that start at the same instant may replace each other's file.
fn locked_directory(path: &Path, patience: Duration) -> Option<File> {
    let parent = path.parent()?;
    let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    // No pipe in its place is waited for.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(directory);
    let (file, deadline) = (opened.ok()?, Instant::now() + patience);
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                // why: flock has no wait with a time limit; this one has the deadline above.
                std::thread::sleep(Duration::from_millis(1));
            }
            taken => return taken.is_ok().then_some(file),
        }
    }
}

/// A socket on which nobody listens is removed; anything else stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket
        && UnixStream::connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Exporters that start at once.
    const MANY: usize = 8;

    #[test]
    fn of_many_that_start_at_once_over_a_stale_file_one_serves() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("export.sock");
        // Without the lock, some rounds have several that serve.
        for _ in 0..50 {
            drop(UnixListener::bind(&path).unwrap());
            let start = Barrier::new(MANY);
            let starter = || {
                start.wait();
                SocketFile::bind(&path)
            };
            let all: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..MANY).map(|_| scope.spawn(starter)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let refused = all.iter().filter_map(|bound| bound.as_ref().err());
            let taken = refused.filter(|error| error.kind() == ErrorKind::AddrInUse).count();
            assert_eq!(taken, MANY - 1, "{all:?}");
            let (listener, file) = all.iter().find_map(|bound| bound.as_ref().ok()).unwrap();
            UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            file.remove();
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0, "a file was left behind");
    }

    #[test]
    fn another_program_with_the_lock_keeps_no_exporter_from_starting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("export.sock");
        drop(UnixListener::bind(&path).unwrap());
        let other = locked_directory(&path, Duration::ZERO).unwrap();
        assert!(locked_directory(&path, Duration::ZERO).is_none());
        let (_socket, file) = SocketFile::bind_within(&path, Duration::ZERO).unwrap();
        drop(other);
        assert!(locked_directory(&path, Duration::ZERO).is_some());
        file.remove();
        assert!(locked_directory(Path::new("export.sock"), PATIENCE).is_some());
    }

    #[test]
    fn only_the_own_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("export.sock");
        let (_first, file) = SocketFile::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (_second, its_file) = SocketFile::bind(&path).unwrap();
        file.remove();
        assert!(path.exists(), "it is that of the second socket");
        its_file.remove();
        assert!(!path.exists());
    }
}
