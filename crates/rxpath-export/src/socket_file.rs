//! The file of a Unix socket: made with it, and removed with it.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The file of a socket of this process.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl SocketFile {
    /// A socket that listens, and its file. A stale file is replaced: nobody listens there.
    ///
    /// # Errors
    /// When another socket or another file is there.
    pub(crate) fn bind(path: &Path) -> io::Result<(UnixListener, Self)> {
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
    use super::*;

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
