//! The sockets of one thread's connections, by slot.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use nix::errno::Errno;

use crate::engine::socket::Socket;

/// A socket for each open connection.
#[derive(Debug)]
pub(super) struct Sockets {
    /// System calls so far, those of the engine included.
    pub(super) calls: u64,
    to: SocketAddr,
    source: Option<IpAddr>,
    by_slot: Vec<Option<Socket>>,
}

impl Sockets {
    pub(super) fn new(to: SocketAddr, source: Option<IpAddr>, connections: usize) -> Self {
        let by_slot = (0..connections).map(|_| None).collect();
        Self { calls: 0, to, source, by_slot }
    }

    /// Begins to connect.
    pub(super) fn open(&mut self, slot: usize) -> Result<&Socket, Errno> {
        self.calls += if self.source.is_some() { 5 } else { 3 };
        let socket = Socket::tcp_from(self.to, self.source).map_err(errno)?;
        socket.begin_connect(self.to).map_err(errno)?;
        Ok(self.by_slot[slot].insert(socket))
    }

    /// How the connection that was begun has ended.
    pub(super) fn outcome(&mut self, slot: usize) -> Result<(), Errno> {
        self.calls += 1;
        self.get(slot).ok_or(Errno::EBADF)?.connected().map_err(errno)
    }

    /// The descriptor; -1 where there is none, which every call refuses with `EBADF`.
    #[inline]
    pub(super) fn fd(&self, slot: usize) -> RawFd {
        self.by_slot[slot].as_ref().map_or(-1, Socket::fd)
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Socket> {
        self.by_slot[slot].as_ref()
    }

    pub(super) fn close(&mut self, slot: usize) {
        if self.by_slot[slot].take().is_some() {
            self.calls += 1;
        }
    }

    /// Gives all away, open.
    pub(super) fn take(&mut self) -> Vec<Socket> {
        self.by_slot.iter_mut().filter_map(Option::take).collect()
    }
}

/// The errno of a failed call.
pub(super) fn errno(error: std::io::Error) -> Errno {
    Errno::try_from(error).unwrap_or(Errno::UnknownErrno)
}
