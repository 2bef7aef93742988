//! Files and pipes from which the kernel sends without a copy through user memory: sendfile and splice.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::engine::socket::Socket;

/// A file in memory with this content (`memfd_create`).
pub fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    let fd = nix::sys::memfd::memfd_create(c"rxpath", nix::sys::memfd::MFdFlags::MFD_CLOEXEC)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(content)?;
    Ok(file.into())
}

impl Socket {
    /// Sends from a file; does it block, then as the socket does.
    #[inline]
    pub fn send_file(&self, file: &OwnedFd, offset: u64, len: usize) -> io::Result<usize> {
        let mut offset = offset as libc::off_t;
        // SAFETY: `offset` outlives the call; the descriptors are open.
        let sent = unsafe { libc::sendfile(self.fd(), file.as_raw_fd(), &raw mut offset, len) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// A pipe between a file and a socket.
#[derive(Debug)]
pub struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
}

impl Pipe {
    /// A pipe that holds `bytes` if the kernel lets it.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        // A pipe that stays smaller only takes more calls.
        // SAFETY: plain integers.
        unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, bytes as libc::c_int) };
        Ok(Self { read, write, held: 0 })
    }

    /// Sends up to `len` bytes of the file from `offset` on; what the pipe still holds goes first.
    ///
    /// `offset` is that of the first byte that no earlier call sent: what is held begins there.
    #[inline]
    pub fn send(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        len: usize,
        socket: &Socket,
    ) -> io::Result<usize> {
        if self.held == 0 {
            let mut offset = offset as libc::loff_t;
            // SAFETY: `offset` outlives the call; the descriptors are open.
            let moved = unsafe {
                libc::splice(
                    file.as_raw_fd(),
                    &raw mut offset,
                    self.write.as_raw_fd(),
                    std::ptr::null_mut(),
                    len,
                    libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK,
                )
            };
            self.held = usize::try_from(moved).map_err(|_| io::Error::last_os_error())?;
        }
        // SAFETY: the descriptors are open; a pipe and a socket take no offsets.
        let sent = unsafe {
            libc::splice(
                self.read.as_raw_fd(),
                std::ptr::null_mut(),
                socket.fd(),
                std::ptr::null_mut(),
                self.held,
                libc::SPLICE_F_MOVE,
            )
        };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        self.held -= sent;
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tcp::tests::pair;

    #[test]
    fn file_and_pipe_give_the_same_bytes() {
        let content: Vec<u8> = (0..100_000u32).map(|n| (n % 253) as u8).collect();
        let file = memory_file(&content).unwrap();
        let (client, server) = pair();
        let mut pipe = Pipe::new(65_536).unwrap();
        let mut sent = 0;
        while sent < 50_000 {
            sent += pipe.send(&file, sent as u64, 50_000 - sent, &client).unwrap();
        }
        while sent < content.len() {
            sent += client.send_file(&file, sent as u64, content.len() - sent).unwrap();
        }
        let mut got = vec![0; content.len()];
        let mut have = 0;
        while have < got.len() {
            have += server.recv(&mut got[have..], 0).unwrap();
        }
        assert!(got == content);
    }

    #[test]
    fn a_broken_connection_is_an_error_and_no_signal() {
        let (client, server) = pair();
        server.reset_on_close().unwrap();
        drop(server);
        let file = memory_file(&[1; 4096]).unwrap();
        let mut pipe = Pipe::new(4096).unwrap();
        let errors: Vec<bool> =
            (0..2).map(|_| pipe.send(&file, 0, 4096, &client).is_err()).collect();
        assert!(errors.contains(&true), "{errors:?}");
        assert!(client.send_file(&file, 0, 4096).is_err());
    }
}
